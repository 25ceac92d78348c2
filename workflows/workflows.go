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

// Behaviors of workflow types in Temporal's Worker Versioning. A worker without Worker Versioning ignores
// them.
const (
	// upgraded is for workflows that are open as long as an object exists or another service is away. Pinned,
	// they would need the processes of the version that started them for years. A changed workflow can
	// therefore replay the histories of earlier versions.
	upgraded = workflow.VersioningBehaviorAutoUpgrade
	// pinned is for runs that end by themselves and soon: they end with the code that started them, so no
	// other version replays their histories.
	pinned = workflow.VersioningBehaviorPinned
)

// Register registers the workflows of a task queue with its worker.
func Register(r worker.WorkflowRegistry, queue string) {
	for _, w := range []struct {
		name     string
		run      any
		behavior workflow.VersioningBehavior
	}{
		{contract.Port, Port, upgraded},
		{contract.AgentNotifications, AgentNotifications, upgraded},
		{contract.Lease, Lease, upgraded},
		{contract.Webhook, Webhook, upgraded},
		{contract.Pool, Pool, upgraded},
		{contract.JournalEntry, JournalEntry, pinned},
		{contract.Maintenance, Maintenance, pinned},
		{contract.FullSync, MirrorRun, pinned},
		{contract.Recovery, MirrorRun, pinned},
		{contract.Audit, MirrorRun, pinned},
		{contract.Repair, MirrorRun, pinned},
	} {
		if contract.TaskQueue(w.name) == queue {
			r.RegisterWorkflowWithOptions(w.run,
				workflow.RegisterOptions{Name: w.name, VersioningBehavior: w.behavior})
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
