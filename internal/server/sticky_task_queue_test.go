package server

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"berth/internal/config"
)

// sdkChecked is the version of Temporal's Go SDK for which takeOverStickyQueue was last checked.
const sdkChecked = "v1.50.0"

// TestStickyQueueTakeover_CheckedWithThisSDK fails when the version of Temporal's Go SDK is not sdkChecked.
// If the test fails, look in the SDK's files internal_task_pollers.go and internal_worker.go for each use of
// getWorkerTaskQueue, and compare the uses with takeOverStickyQueue. After the comparison, run
// TestAcknowledgedWrites_SurviveKillOfProcess of internal/torture/kills, and set sdkChecked.
func TestStickyQueueTakeover_CheckedWithThisSDK(t *testing.T) {
	t.Parallel()
	modules, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(modules)) {
		if version, ok := strings.CutPrefix(strings.TrimSpace(line), "go.temporal.io/sdk "); ok {
			if version != sdkChecked {
				t.Errorf(
					"sticky_task_queue.go was checked with go.temporal.io/sdk %s, but go.mod has %s: check the names of sticky task queues and set sdkChecked",
					sdkChecked,
					version,
				)
			}
			return
		}
	}
	t.Error("go.mod: want a line with the version of go.temporal.io/sdk, got none")
}

func TestStickyQueueTakeover_NamesQueueAfterSlot(t *testing.T) {
	t.Parallel()
	sticky := func(name string) *taskqueue.TaskQueue {
		return &taskqueue.TaskQueue{Name: name, Kind: enums.TASK_QUEUE_KIND_STICKY, NormalName: "ports"}
	}
	completed := func(name string) *workflowservice.RespondWorkflowTaskCompletedRequest {
		return &workflowservice.RespondWorkflowTaskCompletedRequest{
			StickyAttributes: &taskqueue.StickyExecutionAttributes{WorkerTaskQueue: sticky(name)},
		}
	}
	normal := &taskqueue.TaskQueue{Name: "ports", Kind: enums.TASK_QUEUE_KIND_NORMAL}
	for name, c := range map[string]struct{ sent, want proto.Message }{
		"poll of sticky queue":          {&workflowservice.PollWorkflowTaskQueueRequest{TaskQueue: sticky("h:1")}, &workflowservice.PollWorkflowTaskQueueRequest{TaskQueue: sticky("h/:8778/ports")}},
		"poll of normal queue":          {&workflowservice.PollWorkflowTaskQueueRequest{TaskQueue: normal}, &workflowservice.PollWorkflowTaskQueueRequest{TaskQueue: normal}},
		"completion, workflow cached":   {completed("h:1"), completed("h/:8778/ports")},
		"completion, not cached":        {&workflowservice.RespondWorkflowTaskCompletedRequest{}, &workflowservice.RespondWorkflowTaskCompletedRequest{}},
		"shutdown of workflow worker":   {&workflowservice.ShutdownWorkerRequest{StickyTaskQueue: "h:1", TaskQueue: "ports"}, &workflowservice.ShutdownWorkerRequest{StickyTaskQueue: "h/:8778/ports", TaskQueue: "ports"}},
		"shutdown without sticky queue": {&workflowservice.ShutdownWorkerRequest{TaskQueue: "ports"}, &workflowservice.ShutdownWorkerRequest{TaskQueue: "ports"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got proto.Message
			err := takeOverStickyQueue("h/:8778")(
				t.Context(),
				"",
				proto.Clone(c.sent),
				nil,
				nil,
				func(_ context.Context, _ string, req, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
					got = req.(proto.Message)
					return nil
				},
			)
			if d := cmp.Diff(c.want, got, protocmp.Transform()); err != nil || d != "" {
				t.Errorf("intercept a request of the SDK: error %v, forwarded request (-want +got): %s",
					err, d)
			}
		})
	}
}

func TestWorkerSlot_EmptyIfKernelChoosesPort(t *testing.T) {
	t.Parallel()
	unversioned := worker.DeploymentOptions{}
	if a, b := workerSlot("127.0.0.1:8778", unversioned), workerSlot("127.0.0.1:8779", unversioned); a == "" || a == b ||
		a != workerSlot("127.0.0.1:8778", unversioned) {
		t.Errorf("slots of two addresses: got %q and %q, want two different names that do not change", a, b)
	}
	if got := workerSlot("127.0.0.1:0", unversioned); got != "" {
		t.Errorf("workerSlot with port 0: got %q, want an empty slot", got)
	}
}

func TestWorkerSlot_DiffersByBuildID(t *testing.T) {
	t.Parallel()
	slot := func(build string) string {
		return workerSlot("127.0.0.1:8778", deploymentOptions(config.WorkerDeployment{Name: "berth", BuildID: build}))
	}
	if a, b := slot("1.4.0"), slot("1.5.0"); a == b || a != slot("1.4.0") {
		t.Errorf("slots of two versions at one address: got %q and %q, want two different names that do not change", a, b)
	}
}
