package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
	"berth/internal/devstack/temporaltest"
	"berth/internal/store/storetest"
)

// portLike speaks to the command line as a port's workflow does: it waits for DHCP and L2, in any order.
func portLike(ctx workflow.Context, _ contract.Input) error {
	remaining := []string{"DHCP", "L2"}
	since := workflow.Now(ctx)
	take := func(r contract.Report) {
		switch {
		case r.Revision == 1: // of an earlier binding
			return
		case r.Event == "begun" || r.Event == "lost":
			if !slices.Contains(remaining, r.Entity) {
				remaining = append(remaining, r.Entity)
			}
			return
		}
		remaining = slices.DeleteFunc(remaining, func(e string) bool { return e == r.Entity && r.Host == "cmp-1" })
	}
	if err := workflow.SetQueryHandler(ctx, contract.QueryWhy, func() (contract.Why, error) {
		w := contract.Why{Object: workflow.GetInfo(ctx).WorkflowExecution.ID, State: "DOWN", Sentence: "waiting for " + strings.Join(remaining, " and ")}
		for _, e := range remaining {
			w.Waiting = append(w.Waiting, contract.Waiting{For: e, Since: &since})
		}
		return w, nil
	}); err != nil {
		return err
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, contract.UpdateProvisioningComplete,
		func(ctx workflow.Context, r contract.Report) (contract.ReportResult, error) {
			take(r)
			return contract.ReportResult{Status: "DOWN", Remaining: slices.Clone(remaining)}, nil
		}, workflow.UpdateHandlerOptions{Validator: func(_ workflow.Context, r contract.Report) error {
			if r.Entity == "NONSENSE" {
				return sdk.NewApplicationError("nobody waits for NONSENSE", "report")
			}
			return nil
		}}); err != nil {
		return err
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var r contract.Report
			workflow.GetSignalChannel(ctx, contract.SignalProvisioningComplete).Receive(ctx, &r)
			take(r)
		}
	})
	return workflow.Await(ctx, func() bool { return len(remaining) == 0 })
}

// bench is a command line between a stub of the API and a namespace of a real Temporal server.
type bench struct {
	namespace temporaltest.Namespace
	environ   []string
	id        string // of a port whose workflow runs
	young     object // a port that has no workflow yet
}

func newBench(t *testing.T) bench {
	t.Helper()
	n := temporaltest.New(t)
	for _, queue := range []string{contract.PortQueue, contract.LeaseQueue, contract.JournalQueue} {
		w := worker.New(n.Client, queue, worker.Options{})
		w.RegisterWorkflowWithOptions(portLike, workflow.RegisterOptions{Name: contract.Port})
		w.RegisterActivity(func() error { return nil })
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
	}
	s, url := newStub(t)
	port := s.add("ports", object{"name": "web-1", "berth:why": object{"sentence": "the API's own words"}})
	id := port["id"].(string)
	if _, err := n.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: contract.PortID(id), TaskQueue: contract.PortQueue},
		contract.Port, contract.Input{Key: id}); err != nil {
		t.Fatal(err)
	}
	return bench{n, []string{"BERTH_DATA=" + t.TempDir(), "BERTH_URL=" + url, "TEMPORAL_ADDRESS=" + n.Address, "TEMPORAL_NAMESPACE=" + n.Name},
		id, s.add("ports", object{"name": "young"})}
}

// starter runs a command line and returns its exit code and everything that it said.
func (b bench) starter(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), args, b.environ, &out, &out)
	if err != nil {
		report(&out, err)
	}
	return exitCode(err), out.String()
}

func expect(t *testing.T, b bench, code int, wanted string, args ...string) {
	t.Helper()
	got, said := b.starter(t, args...)
	if got != code || !strings.Contains(said, wanted) {
		t.Errorf("starter %s: exit code %d, said:\n%s\nwant %d and %q", strings.Join(args, " "), got, said, code, wanted)
	}
}

func TestAgentSignalsAndAsksForAVerdict(t *testing.T) {
	t.Parallel()
	b := newBench(t)

	expect(t, b, 0, "waiting for DHCP and L2 (says its workflow)", "why", "port/web-1")
	expect(t, b, exitOther, "nobody waits for NONSENSE", "signal", "port/web-1", "--entity", "NONSENSE", "--host", "cmp-1", "--ack")
	expect(t, b, 0, "DOWN, still blocked by DHCP, L2", "signal", "port/web-1", "--entity", "L2", "--host", "elsewhere", "--ack")
	expect(t, b, 0, "DOWN, still blocked by DHCP, L2", "signal", "port/web-1", "--entity", "L2", "--host", "cmp-1", "--revision", "1", "--ack")
	expect(t, b, 0, "DOWN, still blocked by DHCP", "signal", "port/web-1", "--entity", "L2", "--host", "cmp-1", "--revision", "2", "--ack")
	expect(t, b, 0, "DOWN, still blocked by DHCP, L2", "signal", "port/web-1", "--entity", "L2", "--host", "cmp-1", "--event", "lost", "--ack")
	expect(t, b, 0, "L2 on cmp-1 is reported", "signal", "port/"+b.id, "--entity", "L2", "--host", "cmp-1", "--event", "complete")
	expect(t, b, 0, "waiting for DHCP (says its workflow)", "why", "port/web-1")
	expect(t, b, 0, `"remaining": []`, "signal", "port/web-1", "--entity", "DHCP", "--host", "cmp-1", "--ack", "-o", "json")
	if err := b.namespace.Client.GetWorkflow(t.Context(), contract.PortID(b.id), "").Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}

	expect(t, b, exitNotFound, "is closed", "signal", "port/web-1", "--entity", "L2", "--host", "cmp-1")
	expect(t, b, exitNotFound, "is closed", "signal", "port/web-1", "--entity", "L2", "--host", "cmp-1", "--ack")
	expect(t, b, 0, "the API's own words (says the API; no workflow runs for it)", "why", "port/web-1")
	expect(t, b, exitNotFound, "could not be found", "why", "port/"+uuid.NewString())
}

func TestWhyAsksAlsoWhoHasNoRow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := uuid.NewString()
	for word, workflow := range map[string]string{"pool/cmp-1": contract.PoolID("cmp-1"), "webhook/" + id: contract.WebhookID(id),
		"announce/" + id: contract.AnnounceID(id), "odl/full-sync": contract.RunID(contract.KeyFullSync)} {
		expect(t, b, exitNotFound, "no workflow runs as "+workflow, "why", word)
		if _, err := b.namespace.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: workflow, TaskQueue: contract.PortQueue},
			contract.Port, contract.Input{Key: id}); err != nil {
			t.Fatal(err)
		}
		expect(t, b, 0, workflow+": waiting for DHCP and L2 (says its workflow)", "why", word)
		if err := b.namespace.Client.TerminateWorkflow(t.Context(), workflow, "", "enough"); err != nil {
			t.Fatal(err)
		}
		expect(t, b, 0, workflow+": It has ended; it begins again when there is something to do. (says Temporal)", "why", word)
	}
}

// The row of a port is there a moment before its workflow.
func TestAReportWaitsForTheWorkflowOfAPortThatExists(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{nil, {"--ack"}} {
		b := newBench(t)
		id := b.young["id"].(string)
		time.AfterFunc(300*time.Millisecond, func() {
			if _, err := b.namespace.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: contract.PortID(id), TaskQueue: contract.PortQueue},
				contract.Port, contract.Input{Key: id}); err != nil {
				t.Error(err)
			}
		})

		expect(t, b, 0, "port/"+id, append([]string{"signal", "port/young", "--entity", "L2", "--host", "cmp-1"}, more...)...)
		expect(t, b, exitNotFound, "no workflow runs as port/"+uuid.Nil.String(),
			append([]string{"signal", "port/" + uuid.Nil.String(), "--entity", "L2", "--host", "cmp-1"}, more...)...)
	}
}

func TestVerdictOfAPortWithoutWorkersComesTooLate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := uuid.NewString()
	if _, err := b.namespace.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: contract.PortID(id), TaskQueue: "nobody"},
		contract.Port, contract.Input{Key: id}); err != nil {
		t.Fatal(err)
	}

	expect(t, b, exitWait, "gave no verdict within 1s", "signal", "port/"+id, "--entity", "L2", "--host", "cmp-1", "--ack", "--timeout", "1s")
}

func TestDoctorFindsWhatIsThereAndWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.environ = append(b.environ, "BERTH_DATABASE_URL="+storetest.URL(t))

	code, said := b.starter(t, "doctor")
	if code != 0 || strings.Contains(said, "FAIL") || strings.Count(said, "ok  ") != 5 {
		t.Errorf("exit code %d, said:\n%s", code, said)
	}

	b.environ = append(b.environ, "TEMPORAL_NAMESPACE=temporal-system", "BERTH_ODL_URL=http://127.0.0.1:1", "BERTH_DATABASE_URL=postgres://u@127.0.0.1:1/d")
	code, said = b.starter(t, "doctor")
	for _, wanted := range []string{
		"nobody works on ports", "Start a worker with the role temporal",
		"temporal operator search-attribute create --namespace temporal-system", "--name BerthWaitingFor --type KeywordList",
		"cannot reach OpenDaylight at http://127.0.0.1:1", "cannot reach the database",
	} {
		if !strings.Contains(said, wanted) {
			t.Errorf("the doctor does not say %q:\n%s", wanted, said)
		}
	}
	if code != exitUnavailable {
		t.Errorf("exit code %d", code)
	}
}

func TestMigrateTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	b := bench{environ: []string{"BERTH_DATA=" + t.TempDir(), "BERTH_DATABASE_URL=" + storetest.URL(t)}}

	expect(t, b, 0, "the schema is up to date", "migrate")
	expect(t, b, 0, "00001_note.sql", "migrate", "--status")
}

func TestTroublesKnowTheirExitCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		code int
	}{
		"none":    {nil, exitOK},
		"unknown": {errors.New("x"), exitOther},
		"usage":   {usage("x"), exitUsage},
		"wrapped": {errors.Join(errors.New("x"), away("the API", "", errors.New("y"))), exitUnavailable},
	} {
		if got := exitCode(c.err); got != c.code {
			t.Errorf("%s: %d", name, got)
		}
	}
}
