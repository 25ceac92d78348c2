package workflows_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/tracing/temporaltrace"
	"berth/workflows"
)

// corpus returns the recorded histories by file name. A recorded history is never deleted, because workflow
// code that cannot replay a recorded history would break workflows that are running now.
func corpus(t *testing.T) map[string]*history.History {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf(
			"find the recorded histories testdata/*.json: got no file and error %v, want at least one file",
			err,
		)
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
			t.Fatalf("read the recorded history %s: got error %v, want none", file, err)
		}
		all[file] = h
	}
	return all
}

func TestReplay_EveryRecordedHistory(t *testing.T) {
	t.Parallel()
	r := worker.NewWorkflowReplayer()
	for _, queue := range contract.TaskQueues {
		workflows.Register(r, queue)
	}
	for file, h := range corpus(t) {
		if err := r.ReplayWorkflowHistory(nil, h); err != nil {
			t.Errorf("replay the recorded history %s: got error %v, want none", file, err)
		}
	}
}

// A workflow that runs while an operator turns traces on, and a traced workflow that moves to a process
// without traces, must continue.
func TestReplay_EveryRecordedHistoryWithTraces(t *testing.T) {
	t.Parallel()
	traced, err := temporaltrace.New(sdktrace.NewTracerProvider().Tracer(""))
	if err != nil {
		t.Fatal(err)
	}
	r, err := worker.NewWorkflowReplayerWithOptions(
		worker.WorkflowReplayerOptions{Interceptors: []interceptor.WorkerInterceptor{traced}},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, queue := range contract.TaskQueues {
		workflows.Register(r, queue)
	}
	header, err := converter.GetDefaultDataConverter().
		ToPayload(map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	if err != nil {
		t.Fatal(err)
	}
	withTrace := &common.Header{Fields: map[string]*common.Payload{"_tracer-data": header}}
	for file, h := range corpus(t) {
		for _, e := range h.Events {
			if a := e.GetWorkflowExecutionStartedEventAttributes(); a != nil {
				a.Header = withTrace
			}
			if a := e.GetWorkflowExecutionSignaledEventAttributes(); a != nil {
				a.Header = withTrace
			}
		}
		if err := r.ReplayWorkflowHistory(nil, h); err != nil {
			t.Errorf("replay the recorded history %s with traces: got error %v, want none", file, err)
		}
	}
}

func TestReplay_CorpusCoversEveryActivityAndWorkflow(t *testing.T) {
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
	for name := range activities.New(activities.Options{}).Functions() {
		want = append(want, name)
	}
	for _, name := range want {
		if !seen[name] {
			t.Errorf(
				"no recorded history contains %s, want at least one, because otherwise no test notices a change of this name",
				name,
			)
		}
	}
}

// localActivity returns the activity type that the marker of a local activity contains.
func localActivity(t *testing.T, marker *history.MarkerRecordedEventAttributes) string {
	t.Helper()
	for _, payload := range marker.Details["data"].GetPayloads() {
		var data struct{ ActivityType string }
		if err := json.Unmarshal(payload.GetData(), &data); err == nil && data.ActivityType != "" {
			return data.ActivityType
		}
	}
	t.Errorf("marker of a local activity: want an activity type, got %v", marker)
	return ""
}
