package workflows_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"berth/internal/contract"
	"berth/internal/lease"
)

// attributeWrites returns the search attributes of each update in the history of the workflow's current run.
func (s *scenario) attributeWrites() (writes []map[string]any) {
	s.t.Helper()
	for i := s.client.GetWorkflowHistory(s.t.Context(), s.id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); i.HasNext(); {
		e, err := i.Next()
		if err != nil {
			s.t.Fatal(err)
		}
		a := e.GetUpsertWorkflowSearchAttributesEventAttributes()
		if a == nil {
			continue
		}
		write := map[string]any{}
		for name, payload := range a.GetSearchAttributes().GetIndexedFields() {
			var value any
			if err := converter.GetDefaultDataConverter().FromPayload(payload, &value); err != nil {
				s.t.Fatal(err)
			}
			write[name] = value
		}
		writes = append(writes, write)
	}
	return writes
}

func TestRealServer_PortWritesOnlyChangedAttributesAndWritesThemTogether(t *testing.T) {
	t.Parallel()
	w := &fakeRows{host: "cmp-1", project: "demo", blocks: []string{"L2"}}
	s := newScenario(t, contract.Port, contract.PortID(portID), w.functions())
	s.waitForState("DOWN")
	change := func(reads int, change func()) {
		t.Helper()
		w.mu.Lock()
		change()
		w.mu.Unlock()
		s.signal(contract.SignalChanged, nil)
		await(t, "the workflow has read the row", func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.reads >= reads
		})
	}

	change(2, func() { w.host = "cmp-2" })
	change(3, func() {})
	change(4, func() { w.host = "" })
	change(5, func() { w.deleted = true })
	s.finishAndRecord("port-moved", "")

	want := []map[string]any{
		{
			"BerthStatus":     "DOWN",
			"BerthWaitingFor": []any{"L2"},
			"BerthProject":    "demo",
			"BerthHost":       "cmp-1",
			"BerthResource":   "port",
		},
		{"BerthHost": "cmp-2"},
		{"BerthHost": nil},
		{"BerthStatus": "DELETED", "BerthWaitingFor": nil},
	}
	if d := cmp.Diff(want, s.attributeWrites()); d != "" {
		t.Errorf("search attributes that the workflow wrote (-want +got):\n%s", d)
	}
}

func TestRealServer_LeaseWritesMissingProject(t *testing.T) {
	t.Parallel()
	w := newFakeLease(time.Now, -2*time.Second, -time.Second)
	w.lease.Project = "demo"
	s := newScenario(t, contract.Lease, contract.LeaseID(leaseID.String()), w.functions())
	s.finishAndRecord("lease-project", "")

	writes := s.attributeWrites()
	found := 0
	for _, write := range writes {
		if write["BerthProject"] == "demo" && write["BerthResource"] == "lease" &&
			write["BerthStatus"] == string(lease.Pending) {
			found++
		}
	}
	if found != 1 {
		t.Errorf(
			"search attributes that the workflow wrote: got %v, want one write with the status, the project and the resource",
			writes,
		)
	}
}

// await waits until the condition is true, at most ten minutes.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("condition is still false after ten minutes: %s", what)
		}
	}
}

// Temporal terminates a workflow that writes a search attribute of more than 2,048 bytes.
func TestRealServer_EntryWithManyBlockersIsNotTerminated(t *testing.T) {
	t.Parallel()
	w := &fakeRows{entry: "pending", blockedReads: 1, moreBlockers: 500}
	s := newScenario(t, contract.JournalEntry, contract.JournalID("7"), w.functions())
	var found *workflow.WorkflowExecutionInfo
	await(t, "the workflow has written its search attributes, or has ended", func() bool {
		d, err := s.client.DescribeWorkflowExecution(t.Context(), s.id, "")
		found = d.GetWorkflowExecutionInfo()
		return err == nil && (found.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING ||
			len(found.GetSearchAttributes().GetIndexedFields()) > 0)
	})
	if found.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		t.Fatalf("workflow of an entry with 501 blockers: got the status %s, want it to wait", found.GetStatus())
	}
	s.signal(contract.SignalChanged, nil)

	if err := s.client.GetWorkflow(t.Context(), s.id, "").Get(t.Context(), nil); err != nil {
		t.Errorf("workflow of an entry with 501 blockers: got error %v, want it to end with the entry", err)
	}
	names, _ := s.attributeWrites()[0]["BerthWaitingFor"].([]any)
	if len(names) == 0 || len(names) > 500 || names[0] != "journal/1" {
		t.Errorf("search attribute of the entry: got %d names, want as many of the first as Temporal accepts",
			len(names))
	}
}
