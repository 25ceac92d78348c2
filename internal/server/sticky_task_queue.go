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

// workerSlot names the place of a process: its host and the address on which it listens. A process that replaces a killed one has the same slot,
// and two processes cannot have it at the same time, because only one can listen on the address. The slot is empty if the port is chosen by
// the kernel.
func workerSlot(listen string) string {
	host, err := os.Hostname()
	if _, port, e := net.SplitHostPort(listen); err != nil || e != nil || port == "0" {
		return ""
	}
	return host + "/" + listen
}

// takeOverStickyQueue lets a process receive the workflow tasks of the killed process whose slot it has. Temporal sends the tasks of a workflow
// to the sticky task queue of the worker that has the workflow in memory. The SDK gives that queue a new name at each start of the process. Without the interceptor, for ten seconds
// after a kill -9, each task would first wait in a queue that nobody polls, for the sticky schedule-to-start timeout of five seconds. The
// interceptor replaces the queue's name by one that depends on the slot. A worker that receives a task of a workflow that is not in its memory
// replays the history, so if two processes have the same slot by mistake, they only lose time.
//
// A shorter worker.Options.StickyScheduleToStartTimeout is no substitute. It must exceed the time that a task waits for a busy worker, or each
// burst costs every workflow two more history events and a replay. On an overloaded machine of two cores that time is 0.6 s for ports and 1.9 s
// for journal entries on average.
//
// This depends on how the SDK fills in requests; sticky_task_queue_test.go names the version that it was checked with.
func takeOverStickyQueue(slot string) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, c *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		switch r := req.(type) {
		case *workflowservice.PollWorkflowTaskQueueRequest:
			renameStickyQueue(slot, r.GetTaskQueue())
		case *workflowservice.RespondWorkflowTaskCompletedRequest:
			renameStickyQueue(slot, r.GetStickyAttributes().GetWorkerTaskQueue())
		case *workflowservice.ShutdownWorkerRequest:
			if r.GetStickyTaskQueue() != "" {
				r.StickyTaskQueue = stickyQueueName(slot, r.GetTaskQueue())
			}
		}
		return invoke(ctx, method, req, reply, c, options...)
	}
}

// renameStickyQueue gives a sticky task queue the name that belongs to the slot. It leaves other task queues alone.
func renameStickyQueue(slot string, q *taskqueue.TaskQueue) {
	if q.GetKind() == enums.TASK_QUEUE_KIND_STICKY {
		q.Name = stickyQueueName(slot, q.GetNormalName())
	}
}

// stickyQueueName returns the name of the slot's sticky queue of that task queue.
func stickyQueueName(slot, queue string) string { return slot + "/" + queue }
