package server

import (
	"context"
	"net"
	"os"
	"path"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"
)

// workerSlot returns the slot of a process: the host and the address on which the process listens, and the
// build ID of versioned workers. A process of the same version that replaces a killed process has the same
// slot as the killed process. A process of another version must not get the tasks of a pinned workflow. Two
// processes cannot have the same slot at the same time, because only one process can listen on the address.
// The slot of a process is empty if the process lets the kernel choose the port.
func workerSlot(listen string, o worker.DeploymentOptions) string {
	host, err := os.Hostname()
	if _, port, e := net.SplitHostPort(listen); err != nil || e != nil || port == "0" {
		return ""
	}
	return path.Join(host, listen, o.Version.BuildID)
}

// takeOverStickyQueue returns an interceptor. With the interceptor, a process receives the workflow tasks of
// the killed process that had the same slot. Temporal sends the tasks of a workflow to the sticky task queue
// of the worker that has the workflow in memory. The SDK gives the sticky task queue of a worker a new name
// at each start of the process. Without the interceptor, workflow tasks can take five seconds longer after a
// kill -9 of a process, because each task first waits in the sticky task queue of the killed process until
// the sticky schedule-to-start timeout of five seconds ends. The interceptor replaces the name of the sticky
// task queue by a name that depends on the slot. If a worker receives a task of a workflow that the worker
// does not have in memory, the worker replays the workflow's history. If two processes have the same slot by
// mistake, the only effect is therefore that they lose time with replays.
//
// A shorter worker.Options.StickyScheduleToStartTimeout does not solve the problem of tasks that wait for a
// killed process. StickyScheduleToStartTimeout must be longer than the time that a task waits for a busy
// worker; otherwise each burst of tasks costs every workflow two more history events and a replay. On an
// overloaded machine with two cores, a task waits for a busy worker on average 0.6 s in workflows of ports
// and 1.9 s in workflows of journal entries.
//
// The interceptor depends on how Temporal's Go SDK fills in its requests; sticky_task_queue_test.go names the
// version of the SDK for which the interceptor was checked.
func takeOverStickyQueue(slot string) grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context,
		method string,
		req, reply any,
		c *grpc.ClientConn,
		invoke grpc.UnaryInvoker,
		options ...grpc.CallOption,
	) error {
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

// renameStickyQueue gives a sticky task queue the name that belongs to the slot. renameStickyQueue does not
// change the name of a normal task queue.
func renameStickyQueue(slot string, q *taskqueue.TaskQueue) {
	if q.GetKind() == enums.TASK_QUEUE_KIND_STICKY {
		q.Name = stickyQueueName(slot, q.GetNormalName())
	}
}

// stickyQueueName returns the name of the sticky queue that belongs to the slot and to the task queue
// `queue`.
func stickyQueueName(slot, queue string) string { return slot + "/" + queue }
