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

// workerSlot returns the slot of a process: the host and the address on which the process listens. A process that
// replaces a killed process has the same slot. Two processes cannot have the same slot at the same time, because only
// one can listen on the address. The slot is empty if the kernel chooses the port.
func workerSlot(listen string) string {
	host, err := os.Hostname()
	if _, port, e := net.SplitHostPort(listen); err != nil || e != nil || port == "0" {
		return ""
	}
	return host + "/" + listen
}

// takeOverStickyQueue returns an interceptor. With it a process receives the workflow tasks of the killed process
// that had the same slot. Temporal sends the tasks of a workflow to the sticky task queue of the worker that has the
// workflow in memory. The SDK gives that queue a new name at each start of the process. Without the interceptor,
// tasks are slow for ten seconds after a kill -9. Each task first waits in a queue that no process polls, until the
// sticky schedule-to-start timeout of five seconds ends. The interceptor replaces the queue's name by a name that
// depends on the slot. A worker that receives a task of a workflow that is not in its memory replays the history. So
// if two processes have the same slot by mistake, they only lose time.
//
// A shorter worker.Options.StickyScheduleToStartTimeout does not solve the problem. It must be longer than the time
// that a task waits for a busy worker; otherwise each burst costs every workflow two more history events and a
// replay. On an overloaded machine with two cores, this waiting time is on average 0.6 s for ports and 1.9 s for
// journal entries.
//
// The interceptor depends on how the SDK fills in requests; sticky_task_queue_test.go names the version of the SDK
// that was checked.
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

// renameStickyQueue gives a sticky task queue the name that belongs to the slot. It does not change other task
// queues.
func renameStickyQueue(slot string, q *taskqueue.TaskQueue) {
	if q.GetKind() == enums.TASK_QUEUE_KIND_STICKY {
		q.Name = stickyQueueName(slot, q.GetNormalName())
	}
}

// stickyQueueName returns the name of the sticky queue that belongs to the slot and to the task queue `queue`.
func stickyQueueName(slot, queue string) string { return slot + "/" + queue }
