package kills

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/odl/odltest"
	"berth/internal/server/servertest"
)

// TestJournal_PauseHoldsEntriesUntilResume pauses the journal with `starter`, records entries, and kills the
// worker. During the pause, no request may reach the controller, and the workflow of each entry must say what
// the entry waits for. After the resumption, berth must send all entries in order.
func TestJournal_PauseHoldsEntriesUntilResume(t *testing.T) {
	t.Parallel()
	s, temporal := servertest.SharedDeployment(t)
	api, victim := s.StartWorker("api"), s.StartWorker("relay,temporal")
	before := api.CreateNetwork("before")
	s.AwaitNone("all entries before the pause are mirrored", servertest.UnfinishedEntries)
	sent := len(s.Controller.Requests())

	api.Starter("journal", "pause", "--reason", "upgrade of the controller")
	checkPausedMetric(api, "1")
	free, blocked := recordWhilePaused(s, api, before)
	awaitPauseShown(s, temporal, free, blocked)
	victim.Kill()
	s.StartWorker("relay,temporal")
	more, _ := recordWhilePaused(s, api, before)
	awaitPauseShown(s, temporal, more, blocked)
	got := slices.DeleteFunc(s.Controller.Requests()[sent:],
		func(r controllerRequest) bool { return !strings.HasPrefix(r.Path, odltest.BasePath) })
	if len(got) > 0 {
		t.Errorf(
			"while the journal is paused: the controller got %d requests about objects, want none; the first is %+v",
			len(got),
			got[0],
		)
	}

	api.Starter("journal", "resume", "--reason", "the upgrade is done")

	checkPausedMetric(api, "0")
	s.AwaitMirroredAndAudited(api)
	if out := api.Starter("journal", "list"); strings.Contains(out, "pending") {
		t.Errorf("list the journal after the resumption: got pending entries, want none:\n%s", out)
	}
	for _, id := range slices.Concat(free, more, blocked) {
		var p contract.EntryProgress
		if err := temporal.GetWorkflow(t.Context(), id, "").Get(t.Context(), &p); err != nil ||
			p.State != "completed" ||
			p.Attempts != 1 {
			t.Errorf("result of the workflow %s: got %+v, error %v; want completed after one attempt",
				id, p, err)
		}
	}
}

// recordWhilePaused creates a network with a subnet and renames an existing network twice. It returns the
// workflow IDs of the new entries: `free` are those of the entries that wait only for the end of the pause,
// and `blocked` are those of the entries that also wait for other entries.
func recordWhilePaused(
	s *servertest.Deployment,
	api *servertest.Worker,
	existing string,
) (free, blocked []string) {
	s.Helper()
	last := s.Rows(`select max(seq)::text from journal_entry`)[0]
	api.CreateSubnet(api.CreateNetwork("while paused"))
	for _, name := range []string{"first", "second"} {
		api.Must("PUT", "/networking/v2.0/networks/"+existing,
			servertest.Object{"network": servertest.Object{"name": name}})
	}
	const entries = `select 'journal/' || seq from journal_entry where seq > $1::text::bigint and `
	const isBlocked = `exists (select from journal_dep d where d.entry = seq) order by seq`
	return s.Rows(entries+`not `+isBlocked, last), s.Rows(entries+isBlocked, last)
}

// awaitPauseShown waits until the workflow of each entry says what the entry waits for.
func awaitPauseShown(s *servertest.Deployment, temporal client.Client, free, blocked []string) {
	s.Helper()
	if len(free) == 0 || len(blocked) == 0 {
		s.Fatalf(
			"entries recorded while the journal is paused: got %d without blockers and %d with blockers, want both kinds",
			len(free),
			len(blocked),
		)
	}
	for _, id := range slices.Concat(free, blocked) {
		waitsFor, sentence := "an administrator", "the journal is paused by admin since "
		if slices.Contains(blocked, id) {
			waitsFor, sentence = "journal/", "waits for entry "
		}
		s.Await("the workflow "+id+" says what it waits for", func() string {
			var why contract.Why
			answer, err := temporal.QueryWorkflow(s.Context(), id, "", contract.QueryWhy)
			if err == nil {
				err = answer.Get(&why)
			}
			if err == nil && len(why.Waiting) > 0 && strings.HasPrefix(why.Waiting[0].For, waitsFor) &&
				strings.Contains(why.Sentence, sentence) {
				return ""
			}
			return fmt.Sprint(why, err)
		})
	}
}

// checkPausedMetric checks the value of the metric berth_journal_paused.
func checkPausedMetric(api *servertest.Worker, want string) {
	api.T.Helper()
	answer, err := http.Get(api.URL + "/metrics")
	if err != nil {
		api.T.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(body), "\nberth_journal_paused "+want+"\n") {
		api.T.Errorf("read the metrics: want berth_journal_paused %s, got error %v and\n%s", want, err, body)
	}
}
