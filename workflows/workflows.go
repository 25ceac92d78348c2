// Package workflows defines the workflows and the order of their steps. A workflow reads the row of its
// object, asks the rules of the domain packages (network, lease, journal) which step is due, performs the
// step or waits, and reads the row again. A workflow does not keep its own state next to the state in the
// row. Workflow code is deterministic: every access to the database or to another service is an activity.
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
		{contract.AgentNotifications, AgentNotifications},
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

// messagesPerRun is the number of signals and updates after which a workflow continues as new. messagesPerRun
// is far below Temporal's limit of 10,000 signals per run. Temporal's UI can show the history of a run with
// messagesPerRun messages.
const messagesPerRun = 200

// shouldContinueAsNew reports whether the run has handled enough messages, or whether the server suggests a
// new run because the history is long. The length of the history matters, too, because large signals and
// signals with unknown names make the history longer, but are not counted as messages.
func shouldContinueAsNew(ctx workflow.Context, handled int) bool {
	return handled >= messagesPerRun || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

// failurePause is the pause before a workflow repeats an activity that has failed with an error that Temporal
// does not retry. Such an error is unexpected: the workflow repeats only activities that should succeed in
// the end.
const failurePause = time.Minute

// changedSignals returns the channel of the signal "changed".
func changedSignals(ctx workflow.Context) workflow.ReceiveChannel {
	return workflow.GetSignalChannelWithOptions(ctx, contract.SignalChanged,
		workflow.SignalChannelOptions{Description: "The row has changed; the workflow reads it again"})
}

// discardAll removes all signals that wait in the channel, and returns the number of removed signals.
func discardAll(c workflow.ReceiveChannel) int {
	n := 0
	for c.ReceiveAsync(nil) {
		n++
	}
	return n
}
