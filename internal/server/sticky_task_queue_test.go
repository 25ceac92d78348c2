package server

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

func TestWhoFollowsAKilledProcessIsAskedForItsWorkflows(t *testing.T) {
	t.Parallel()
	sticky := func(name string) *taskqueue.TaskQueue {
		return &taskqueue.TaskQueue{Name: name, Kind: enums.TASK_QUEUE_KIND_STICKY, NormalName: "ports"}
	}
	completed := func(name string) *workflowservice.RespondWorkflowTaskCompletedRequest {
		return &workflowservice.RespondWorkflowTaskCompletedRequest{StickyAttributes: &taskqueue.StickyExecutionAttributes{WorkerTaskQueue: sticky(name)}}
	}
	normal := &taskqueue.TaskQueue{Name: "ports", Kind: enums.TASK_QUEUE_KIND_NORMAL}
	for name, c := range map[string]struct{ sent, want proto.Message }{
		"polls its own":         {&workflowservice.PollWorkflowTaskQueueRequest{TaskQueue: sticky("h:1")}, &workflowservice.PollWorkflowTaskQueueRequest{TaskQueue: sticky("h/:8778/ports")}},
		"polls that of all":     {&workflowservice.PollWorkflowTaskQueueRequest{TaskQueue: normal}, &workflowservice.PollWorkflowTaskQueueRequest{TaskQueue: normal}},
		"keeps the workflow":    {completed("h:1"), completed("h/:8778/ports")},
		"keeps none":            {&workflowservice.RespondWorkflowTaskCompletedRequest{}, &workflowservice.RespondWorkflowTaskCompletedRequest{}},
		"ends":                  {&workflowservice.ShutdownWorkerRequest{StickyTaskQueue: "h:1", TaskQueue: "ports"}, &workflowservice.ShutdownWorkerRequest{StickyTaskQueue: "h/:8778/ports", TaskQueue: "ports"}},
		"ends without workflow": {&workflowservice.ShutdownWorkerRequest{TaskQueue: "ports"}, &workflowservice.ShutdownWorkerRequest{TaskQueue: "ports"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got proto.Message
			err := inherit("h/:8778")(t.Context(), "", proto.Clone(c.sent), nil, nil,
				func(_ context.Context, _ string, req, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
					got = req.(proto.Message)
					return nil
				})
			if d := cmp.Diff(c.want, got, protocmp.Transform()); err != nil || d != "" {
				t.Errorf("error %v, %s", err, d)
			}
		})
	}
}

func TestASeatIsKnownBeforehandOrThereIsNone(t *testing.T) {
	t.Parallel()
	if a, b := seat("127.0.0.1:8778"), seat("127.0.0.1:8779"); a == "" || a == b || a != seat("127.0.0.1:8778") {
		t.Errorf("seats %q and %q", a, b)
	}
	if got := seat("127.0.0.1:0"); got != "" {
		t.Errorf("an address that is not known yet has the seat %q", got)
	}
}
