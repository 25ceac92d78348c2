package workflows_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"berth/activities"
	"berth/internal/contract"
	"berth/workflows"
)

// corpus is the recorded histories, by file. They are kept for ever: code that no longer replays one of them
// would break a workflow that is running now.
func corpus(t *testing.T) map[string]*history.History {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded histories: %v", err)
	}
	all := map[string]*history.History{}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
		_ = f.Close()
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[file] = h
	}
	return all
}

func TestEveryRecordedHistoryReplays(t *testing.T) {
	t.Parallel()
	r := worker.NewWorkflowReplayer()
	for _, queue := range []string{contract.PortQueue, contract.LeaseQueue, contract.JournalQueue} {
		workflows.Register(r, queue)
	}
	for file, h := range corpus(t) {
		if err := r.ReplayWorkflowHistory(nil, h); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestCorpusCoversEveryActivityAndWorkflow(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, h := range corpus(t) {
		for _, e := range h.Events {
			if a := e.GetWorkflowExecutionStartedEventAttributes(); a != nil {
				seen[a.WorkflowType.Name] = true
			}
			if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
				seen[a.ActivityType.Name] = true
			}
			if a := e.GetMarkerRecordedEventAttributes(); a != nil && a.MarkerName == "LocalActivity" {
				seen[localActivity(t, a)] = true
			}
		}
	}
	want := append([]string{contract.Maintenance}, contract.EntityWorkflows...)
	methods := reflect.TypeFor[*activities.Activities]()
	for i := range methods.NumMethod() {
		want = append(want, methods.Method(i).Name)
	}
	for _, name := range want {
		if !seen[name] {
			t.Errorf("no recorded history has %s: record one, or a rename of it passes unseen", name)
		}
	}
}

// localActivity is the type of the local activity that a marker records.
func localActivity(t *testing.T, marker *history.MarkerRecordedEventAttributes) string {
	t.Helper()
	for _, payload := range marker.Details["data"].GetPayloads() {
		var data struct{ ActivityType string }
		if err := json.Unmarshal(payload.GetData(), &data); err == nil && data.ActivityType != "" {
			return data.ActivityType
		}
	}
	t.Errorf("a local activity's marker without its type: %v", marker)
	return ""
}
