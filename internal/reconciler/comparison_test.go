package reconciler

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/devstack/temporaltest"
	"berth/internal/network"
	"berth/internal/store"
	"berth/internal/store/outbox"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(temporaltest.Main(m, storetest.Main)) }

// lateVisibility is a client of a Temporal server whose visibility does not show any execution yet.
type lateVisibility struct{ client.Client }

func (lateVisibility) ListWorkflow(
	context.Context,
	*workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{}, nil
}

// fixture is a database with a port, and a Temporal namespace in which the workflow of each row is open.
type fixture struct {
	store     *store.Store
	namespace temporaltest.Namespace
	ids       []string // workflow IDs of the rows
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	f := fixture{store: storetest.New(t), namespace: temporaltest.New(t)}
	project, name := "p", "blue"
	networks, err := f.store.Network.CreateNetworks(t.Context(),
		[]network.NetworkChange{{Project: &project, Name: &name}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.store.Network.CreatePorts(t.Context(), []network.PortChange{{
		Network:        &networks[0].ID,
		Project:        &project,
		Name:           &name,
		SecurityGroups: &[]uuid.UUID{},
	}}); err != nil {
		t.Fatal(err)
	}
	for notes := storetest.ClaimNotes(t, f.store); len(notes) > 0; notes = storetest.ClaimNotes(t, f.store) {
		for _, n := range notes {
			f.ids = append(f.ids, n.ID)
			f.start(t, n.Workflow, n.ID)
		}
		if err := f.store.Outbox.Settle(t.Context(), "", notes); err != nil {
			t.Fatal(err)
		}
	}
	// notes of blocked entries, which are not due yet
	if _, err := f.store.DB.Exec(t.Context(), `delete from note`); err != nil {
		t.Fatal(err)
	}
	return f
}

// start starts a workflow that no worker runs.
func (f fixture) start(t *testing.T, workflow, id string) {
	t.Helper()
	if _, err := f.namespace.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: "no workers"}, workflow); err != nil {
		t.Fatal(err)
	}
}

// compare performs one comparison and returns its result.
func (f fixture) compare(t *testing.T, c client.Client) outbox.Projection {
	t.Helper()
	r := New(Options{
		DB:        f.store.DB,
		Store:     f.store.Outbox,
		Client:    c,
		Namespace: f.namespace.Name,
		Metrics:   prometheus.NewRegistry(),
	})
	if _, err := newComparison(r).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := f.store.Outbox.Projections(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found[0].ComparedAt = nil
	return found[0]
}

func TestComparison_LateVisibilityRestartsNoOpenWorkflow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	rows, err := f.store.Outbox.Rows(t.Context(), contract.EntityWorkflows, "")
	if err != nil {
		t.Fatal(err)
	}
	for id := range rows {
		f.start(t, contract.JournalEntry, id) // for the blocked entries; other workflows are open already
	}

	got := f.compare(t, lateVisibility{f.namespace.Client})

	if d := cmp.Diff(outbox.Projection{Name: outbox.Executions, Compared: int64(len(rows)), Examples: []string{}}, got); d != "" {
		t.Errorf("comparison with late visibility (-want +got):\n%s", d)
	}
	if notes := storetest.ClaimNotes(t, f.store); len(notes) > 0 {
		t.Errorf("notes after the comparison: got %+v, want none", notes)
	}

	if err := f.namespace.Client.TerminateWorkflow(t.Context(), f.ids[0], "", "by mistake"); err != nil {
		t.Fatal(err)
	}
	got = f.compare(t, lateVisibility{f.namespace.Client})
	if d := cmp.Diff(outbox.Projection{
		Name:       outbox.Executions,
		Compared:   int64(len(rows)),
		Unattended: 1,
		Examples:   f.ids[:1],
	}, got); d != "" {
		t.Errorf("comparison after the deletion of one execution (-want +got):\n%s", d)
	}
	if notes := storetest.ClaimNotes(t, f.store); len(notes) != 1 || notes[0].ID != f.ids[0] ||
		!notes[0].Restart {
		t.Errorf("notes after the comparison: got %+v, want one that restarts %s", notes, f.ids[0])
	}
}

// outdatedVisibility is a client of a Temporal server whose visibility shows the given executions as open for
// ever.
type outdatedVisibility struct {
	client.Client
	open []*workflow.WorkflowExecutionInfo
}

func (v outdatedVisibility) ListWorkflow(
	context.Context,
	*workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: v.open}, nil
}

// TestComparison_ExecutionOnlyInVisibilityIsStartedAgain deletes the execution of a port in Temporal, but not
// its record in visibility. Temporal leaves such a record behind if it writes the start of an execution to
// visibility after the deletion.
func TestComparison_ExecutionOnlyInVisibilityIsStartedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	rows, err := f.store.Outbox.Rows(t.Context(), contract.EntityWorkflows, "")
	if err != nil {
		t.Fatal(err)
	}
	outdated := outdatedVisibility{Client: f.namespace.Client}
	for id := range rows {
		f.start(t, contract.JournalEntry, id) // for the blocked entries; other workflows are open already
		outdated.open = append(outdated.open,
			&workflow.WorkflowExecutionInfo{Execution: &common.WorkflowExecution{WorkflowId: id}})
	}
	if _, err := f.namespace.Client.WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: f.namespace.Name, WorkflowExecution: &common.WorkflowExecution{WorkflowId: f.ids[0]}}); err != nil {
		t.Fatal(err)
	}
	for missing := new(serviceerror.NotFound); !errors.As(err, &missing) && t.Context().Err() == nil; {
		_, err = f.namespace.Client.DescribeWorkflowExecution(t.Context(), f.ids[0], "")
	}

	got := f.compare(t, outdated)

	if d := cmp.Diff(outbox.Projection{
		Name:       outbox.Executions,
		Compared:   int64(len(rows)),
		Unattended: 1,
		Examples:   f.ids[:1],
	}, got); d != "" {
		t.Errorf("comparison after the deletion of one execution (-want +got):\n%s", d)
	}
	if notes := storetest.ClaimNotes(t, f.store); len(notes) != 1 || notes[0].ID != f.ids[0] ||
		!notes[0].Restart {
		t.Errorf("notes after the comparison: got %+v, want one that restarts %s", notes, f.ids[0])
	}
}

func TestComparison_TellsAnExecutionWithoutRow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	orphan := contract.PortID(uuid.NewString())
	f.start(t, contract.Port, orphan)

	// until visibility is up to date
	for got := f.compare(t, f.namespace.Client); got.Orphans != 1; got = f.compare(t, f.namespace.Client) {
		if got.Orphans > 1 || t.Context().Err() != nil {
			t.Fatalf("comparison with one execution without a row: got %+v, want 1 orphan", got)
		}
	}

	history := f.namespace.Client.GetWorkflowHistory(t.Context(), orphan, "", false,
		enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		e, err := history.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() == contract.SignalChanged {
			return
		}
	}
	t.Error("the execution without a row got no signal, want the signal `changed`")
}
