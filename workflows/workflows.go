// Package workflows defines the order of the steps of each workflow. A workflow reads its row, asks the pure rules which
// step is due, performs the step or waits, and reads the row again. It keeps no second copy of the row's state. The code
// is deterministic: every access to the database or to another service is an activity.
package workflows

import (
	"time"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
)

// Register registers the workflows of a task queue with its worker.
func Register(r worker.WorkflowRegistry, queue string) {
	for _, w := range []struct {
		name string
		run  any
	}{
		{contract.Port, Port},
		{contract.Announce, Announce},
		{contract.Lease, Lease},
		{contract.Webhook, Webhook},
		{contract.Pool, Pool},
		{contract.JournalEntry, JournalEntry},
		{contract.Maintenance, Maintenance},
		{contract.FullSync, MirrorRun},
		{contract.Recovery, MirrorRun},
		{contract.Audit, MirrorRun},
		{contract.Repair, MirrorRun},
	} {
		if contract.TaskQueue(w.name) == queue {
			r.RegisterWorkflowWithOptions(w.run, workflow.RegisterOptions{Name: w.name})
		}
	}
}

// messagesPerRun is the number of messages after which a workflow continues as new. It is far below the server's limit of
// 10,000 signals per run, and the web UI can still show such a history.
const messagesPerRun = 200

// shouldContinueAsNew reports whether the run has handled enough messages, or whether the server suggests a new run
// because the history is long. Large signals and signals with unknown names make a history long without being counted.
func shouldContinueAsNew(ctx workflow.Context, handled int) bool {
	return handled >= messagesPerRun || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

// failurePause is the pause before a workflow repeats an activity that should never fail finally, but has failed.
const failurePause = time.Minute

// changedSignals returns the channel of the signal "changed".
func changedSignals(ctx workflow.Context) workflow.ReceiveChannel {
	return workflow.GetSignalChannelWithOptions(ctx, contract.SignalChanged,
		workflow.SignalChannelOptions{Description: "The row has changed; the workflow reads it again"})
}

// discardAll removes all signals that wait in the channel and returns their number.
func discardAll(c workflow.ReceiveChannel) int {
	n := 0
	for c.ReceiveAsync(nil) {
		n++
	}
	return n
}
