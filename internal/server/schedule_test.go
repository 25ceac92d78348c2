package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/notify/notifytest"
	"berth/internal/server"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// TestSweep_RestartsWorkflowsThatEndedAbnormally runs a process without the role relay, so that no relay
// delivers the notes and the reconciler does not run.
func TestSweep_RestartsWorkflowsThatEndedAbnormally(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, "api,temporal")
	servertest.AwaitReady(t, a)
	base := "http://" + a.Address() + "/networking/v2.0/"
	var network struct{ Network struct{ ID string } }
	post(t, base+"networks", map[string]any{"network": map[string]any{"name": "blue"}}, &network)
	createPort := func() (key, id string) {
		var port struct{ Port struct{ ID string } }
		post(t, base+"ports", map[string]any{"port": map[string]any{"network_id": network.Network.ID}}, &port)
		return port.Port.ID, contract.PortID(port.Port.ID)
	}
	start := func(id, key string) client.WorkflowRun {
		run, err := a.Temporal.ExecuteWorkflow(
			t.Context(),
			client.StartWorkflowOptions{ID: id, TaskQueue: contract.TaskQueue(contract.Port)},
			contract.Port,
			contract.Input{Key: key},
		)
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	key, terminated := createPort()
	start(terminated, key)
	if err := a.Temporal.TerminateWorkflow(t.Context(), terminated, "", "by mistake"); err != nil {
		t.Fatal(err)
	}
	_, failed := createPort()
	if err := start(failed, "no UUID").Get(t.Context(), nil); err == nil {
		t.Fatal("run the workflow of a port with a key that is no UUID: got no error, want one")
	}
	_, waiting := createPort() // its workflow has never started
	storetest.Exec(t, a.DatabaseURL(), `update note set restart = false`)

	sweep := a.Temporal.ScheduleClient().GetHandle(t.Context(), contract.MaintenanceID(contract.KeySweep))
	want := []string{failed, terminated}
	slices.Sort(want)
	var got []string
	servertest.Await(t, "the sweep requests the restart of both workflows", func() bool {
		if err := sweep.Trigger(t.Context(), client.ScheduleTriggerOptions{}); err != nil {
			t.Error(err)
		}
		got = queryTexts(t, a.DatabaseURL(),
			`select workflow_id from note where restart order by workflow_id`)
		return len(got) >= len(want)
	})
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("workflows that the sweep restarts, without %s (-want +got):\n%s", waiting, d)
	}
}

func TestSweep_DeletesOldGenerationHistory(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, "api,temporal", "BERTH_HISTORY_AGE=1h", "BERTH_HISTORY_ROWS=3")
	servertest.AwaitReady(t, a)
	storetest.Exec(t, a.DatabaseURL(), `
		insert into generation_change (at, actor, cause, provider, provider_to)
		select now() - case when n = 4 then interval '2 hours' else interval '0' end, 'a', 'created', 'p', n
		from generate_series(1, 6) n`)
	storetest.Exec(t, a.DatabaseURL(), `
		insert into generation_conflict (hour, object_type, object_id, cause, writes, last_at)
		select date_trunc('hour', at), 'provider', id, 'traits', 1, at
		from (values ('old', now() - interval '2 hours'), ('new', now())) as c (id, at)`)

	sweep := a.Temporal.ScheduleClient().GetHandle(t.Context(), contract.MaintenanceID(contract.KeySweep))
	servertest.Await(t, "old changes and those above the maximum number are deleted", func() bool {
		if err := sweep.Trigger(t.Context(), client.ScheduleTriggerOptions{}); err != nil {
			t.Error(err)
		}
		left, err := a.Store().Inventory.ProviderHistory(t.Context(), "p", 0, 10)
		if err != nil || len(left) != 2 || *left[0].Provider.To != 6 || *left[1].Provider.To != 5 {
			return false
		}
		conflicts, err := a.Store().Inventory.Conflicts(t.Context(), 10)
		return err == nil && len(conflicts) == 1 && conflicts[0].UUID == "new"
	})
}

// A step of the sweep that fails must not stop the steps after it, and must not make the next round search
// for ended workflows from the same time again. The part with the step does not count as completed.
func TestSweep_ContinuesAfterAFailedStep(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, "api,temporal", "BERTH_HISTORY_AGE=1h")
	servertest.AwaitReady(t, a)
	begin := time.Now()
	storetest.ExecScript(t, a.DatabaseURL(), `
		alter table generation_change rename to removed;
		insert into generation_conflict (hour, object_type, object_id, cause, writes, last_at)
		values (now() - interval '2 hours', 'provider', 'old', 'traits', 1, now() - interval '2 hours')`)
	sweep := a.Temporal.ScheduleClient().GetHandle(t.Context(), contract.MaintenanceID(contract.KeySweep))
	if err := sweep.Trigger(t.Context(), client.ScheduleTriggerOptions{}); err != nil {
		t.Fatal(err)
	}
	servertest.Await(t, "the old conflict is deleted although the history cannot be read", func() bool {
		return len(queryTexts(t, a.DatabaseURL(), `select object_id from generation_conflict`)) == 0
	})
	var round contract.SweepResult
	servertest.Await(t, "a round ends with the failure of the step", func() bool {
		described, err := sweep.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, action := range described.Info.RecentActions {
			run := action.StartWorkflowResult
			if run == nil {
				continue
			}
			err := a.Temporal.GetWorkflow(t.Context(), run.WorkflowID, run.FirstExecutionRunID).Get(t.Context(), &round)
			if err == nil && len(round.Failures) > 0 {
				return true
			}
		}
		return false
	})
	if len(round.Failures) != 1 || !strings.Contains(round.Failures[0], "generation_change") {
		t.Errorf("failures of the round: got %q, want the one about the table generation_change", round.Failures)
	}
	if round.Until.Before(begin.Add(-time.Minute)) {
		t.Errorf("end of the searched period: got %v, want the beginning of the round, hardly before %v", round.Until, begin)
	}
	if done := queryTexts(t, a.DatabaseURL(), fmt.Sprintf(
		`select part from maintenance where part = 'sweep' and completed_at > '%s'`, round.Until.Format(time.RFC3339Nano))); len(done) > 0 {
		t.Error("the sweep counts as completed although a step of it has failed")
	}
}

// Each part of a round stores that it was completed, so that an operator notices a part that no longer runs.
// Nova refuses to list its hypervisors until the test mends it.
func TestSweep_MetricHasTheAgeOfEachPart(t *testing.T) {
	t.Parallel()
	var mended atomic.Bool
	stub := &notifytest.Nova{}
	nova := servertest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/os-hypervisors") && !mended.Load() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		stub.ServeHTTP(w, r)
	}))
	a := servertest.StartApp(t, "api,temporal", "BERTH_NOVA_URL="+nova, "BERTH_LEASE_MONITOR=on")
	servertest.AwaitReady(t, a)
	past := time.Now().Add(-time.Hour)
	storetest.ExecScript(t, a.DatabaseURL(), `
		insert into maintenance (part) values ('hosts') on conflict do nothing;
		update maintenance set completed_at = now() - interval '1 hour'`)
	sweep := a.Temporal.ScheduleClient().GetHandle(t.Context(), contract.MaintenanceID(contract.KeySweep))
	await := func(what string, want map[string]bool) {
		t.Helper()
		var got map[string]bool
		servertest.Await(t, what, func() bool {
			if err := sweep.Trigger(t.Context(), client.ScheduleTriggerOptions{}); err != nil {
				t.Error(err)
			}
			got = map[string]bool{}
			for part, at := range completedParts(t, a) {
				got[part] = at.After(past.Add(10 * time.Minute))
			}
			return cmp.Equal(want, got)
		})
	}
	await("every part but the read of the hosts was completed",
		map[string]bool{"sweep": true, "controller": true, "healing": true, "hosts": false})
	mended.Store(true)
	await("every part was completed",
		map[string]bool{"sweep": true, "controller": true, "healing": true, "hosts": true})
}

// completedParts returns when the parts of the maintenance were completed, from a scrape.
func completedParts(t *testing.T, a *server.App) map[string]time.Time {
	t.Helper()
	parts := map[string]time.Time{}
	for _, m := range completedPart.FindAllStringSubmatch(scrape(t, a), -1) {
		seconds, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		parts[m[1]] = time.Unix(int64(seconds), 0)
	}
	return parts
}

var completedPart = regexp.MustCompile(`(?m)^berth_maintenance_completed_timestamp_seconds\{part="(\w+)"\} (\S+)$`)

// post sends JSON as an administrator and decodes the response into `answer`.
func post(t *testing.T, url string, body, answer any) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", "admin")
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("POST %s: got %s %s, error %v; want a success", url, resp.Status, text, err)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		t.Fatalf("decode the response to POST %s as JSON: got error %v for the body %s, want no error",
			url, err, text)
	}
}

// queryTexts returns the first column of the rows that a query of the database with the given URL finds.
func queryTexts(t *testing.T, url, sql string) []string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	rows, err := c.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return texts
}
