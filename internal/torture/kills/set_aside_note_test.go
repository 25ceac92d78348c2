package kills

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"berth/internal/contract"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// TestSetAsideNote_EveryVerbOfStarterNote makes Temporal refuse the notes of two ports, because a search
// attribute in these notes is too long, so that the relay sets the notes aside. The processes stay ready,
// `starter doctor` and `starter note list` show the notes, and `starter note retry` delivers a note after its
// cause has ended.
func TestSetAsideNote_EveryVerbOfStarterNote(t *testing.T) {
	t.Parallel()
	s, _ := servertest.SharedDeployment(t)
	api := s.StartWorker("api")
	api.RegisterAgents()
	network := api.CreateNetwork("blue")
	api.CreateSubnet(network)
	one := contract.PortID(api.Create("port", servertest.PortBody(network)))
	other := contract.PortID(api.Create("port", servertest.PortBody(network)))
	if waiting := api.Starter("note", "list", "--state", "waiting"); !strings.Contains(waiting, one) ||
		!strings.Contains(waiting, other) {
		t.Errorf(
			"starter note list --state waiting without a relay: got the output below, want the notes of both ports\n%s",
			waiting,
		)
	}
	storetest.Exec(
		t, s.Database,
		`update note set attributes = jsonb_build_object('project', repeat('x', 100000)) where workflow_id in ($1, $2)`,
		one, other,
	)

	worker := s.StartWorker("relay,temporal")

	setAside := func(ids ...string) func() string {
		return func() string {
			list := api.Starter("note", "list", "--state", "set-aside")
			for _, id := range []string{one, other} {
				wanted := strings.Contains(strings.Join(ids, " "), id)
				if wanted != strings.Contains(list, id) {
					return fmt.Sprintf("want only the notes %v, got\n%s", ids, list)
				}
			}
			return ""
		}
	}
	s.Await("the notes of both ports are set aside", setAside(one, other))
	s.AwaitNone("every other note is delivered", `select workflow_id from note where set_aside_at is null`)
	for _, w := range []*servertest.Worker{api, worker} {
		w.AwaitReady()
	}
	doctor := exec.CommandContext(t.Context(), servertest.Program(t, "starter"), "doctor")
	doctor.Env = append(append(os.Environ(), s.Settings...), "BERTH_URL="+api.URL, "BERTH_TOKEN="+api.Token)
	if out, err := doctor.CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "Temporal refuses 2 notes") {
		t.Errorf(
			"starter doctor: got error %v and the output below, want a failure that names 2 refused notes\n%s",
			err,
			out,
		)
	}
	if list := api.Starter("note", "list"); !strings.Contains(list, one) || !strings.Contains(list, other) {
		t.Errorf("starter note list: got the output below, want the notes of both ports\n%s", list)
	}

	// berth itself also tries the other note again, when it is due
	storetest.Exec(t, s.Database, `update note set attributes = '{}' where workflow_id = $1`, one)
	if out := api.Starter("note", "retry", one); !strings.Contains(out, "1 notes are due now") {
		t.Errorf("starter note retry %s: got %q, want one note", one, out)
	}
	s.Await("only the note that was retried is delivered", setAside(other))
	storetest.Exec(t, s.Database, `update note set attributes = '{}'`)
	if out := api.Starter("note", "retry", "--all"); !strings.Contains(out, "1 notes are due now") {
		t.Errorf("starter note retry --all: got %q, want one note", out)
	}
	s.Await("all notes are delivered", setAside())
	if list := api.Starter("note", "list"); strings.Contains(list, "port/") {
		t.Errorf(
			"starter note list after the retries: got the output below, want no note of a port\n%s",
			list,
		)
	}
}
