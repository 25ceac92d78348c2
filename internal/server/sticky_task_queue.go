package server

import (
	"context"
	"net"
	"os"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// cachedWorkflows is how many workflows of all task queues a process keeps in memory, the least recently used leave
// first: at some 45 KiB each they take no more than 250 MiB. One that is not there is replayed when something happens to it.
const cachedWorkflows = 5000

// seat names the place where a process runs: one that starts where another was killed has the same, and no two have it at
// a time, since only one can listen on the address. It is empty if the address is not known beforehand.
func seat(listen string) string {
	host, err := os.Hostname()
	if _, port, e := net.SplitHostPort(listen); err != nil || e != nil || port == "0" {
		return ""
	}
	return host + "/" + listen
}

// inherit has a process take over the workflows of the one that was killed in its seat. Temporal delivers what happens to
// a workflow to a task queue of the worker alone that has it in memory; the SDK gives that a new name with each start, so
// that for ten seconds after a kill everything would wait out five seconds for nobody. Here the name is the seat's. Who
// is asked for a workflow that it has not in memory replays it, so that a seat that two have by mistake costs only time.
func inherit(seat string) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, c *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		switch r := req.(type) {
		case *workflowservice.PollWorkflowTaskQueueRequest:
			settle(seat, r.GetTaskQueue())
		case *workflowservice.RespondWorkflowTaskCompletedRequest:
			settle(seat, r.GetStickyAttributes().GetWorkerTaskQueue())
		case *workflowservice.ShutdownWorkerRequest:
			if r.GetStickyTaskQueue() != "" {
				r.StickyTaskQueue = own(seat, r.GetTaskQueue())
			}
		}
		return invoke(ctx, method, req, reply, c, options...)
	}
}

// settle gives a worker's own task queue the seat's name.
func settle(seat string, q *taskqueue.TaskQueue) {
	if q.GetKind() == enums.TASK_QUEUE_KIND_STICKY {
		q.Name = own(seat, q.GetNormalName())
	}
}

// own is the name of a seat's own task queue beside that one.
func own(seat, queue string) string { return seat + "/" + queue }
