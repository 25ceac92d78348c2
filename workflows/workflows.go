// Package workflows says in which order things happen. Each workflow looks at its row, asks the pure rules what
// is due, does it or waits, and looks again; it keeps no second copy of the state. Everything here is
// deterministic: the world is reached through activities only.
package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"berth/activities"
	"berth/internal/contract"
)

// do names the activities; nothing is ever called through it.
var do *activities.Activities

// Register makes the workflows of a task queue known to its worker.
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

// messagesPerRun is after how many messages a workflow continues as new: far below the server's wall of 10,000
// signals a run, and a history that a browser still shows.
const messagesPerRun = 200

// full tells whether a run should hand over to a new one: it has had its share of messages, or the server finds its
// history long, as it becomes by huge signals and by those of unknown names, which nobody counts.
func full(ctx workflow.Context, handled int) bool {
	return handled >= messagesPerRun || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

// The time-out ladder: an attempt outlasts the calls inside it; see activities.BriefCall and activities.LongCall.
const (
	QuickAttempt   = 5 * time.Second
	OnceAttempt    = 4 * time.Second
	PatientAttempt = 15 * time.Second
	LongAttempt    = 15 * time.Minute
	CloudAttempt   = 2 * time.Minute
)

// HeartbeatTimeout is how soon the death of a process in the middle of an attempt is noticed.
const HeartbeatTimeout = 5 * time.Second

// longPause is before the next try of what should never fail for good, and did.
const longPause = time.Minute

// quickPatience is how long the database may be away before a workflow fails, to be started anew by a sweep. Unless it is
// said, the time of one attempt is that of all.
const quickPatience = 24 * time.Hour

// quick is for a few statements on PostgreSQL: tried until the database answers.
func quick(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout:    QuickAttempt,
		ScheduleToCloseTimeout: quickPatience,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    100 * time.Millisecond,
			BackoffCoefficient: 2,
			MaximumInterval:    5 * time.Second,
			// What a neighbour does not want is asked again in a form that can be seen; see insistent.
			NonRetryableErrorTypes: []string{activities.Unwilling},
		},
		Summary: summary,
	})
}

// brisk is quick for what is asked again in a form that can be seen: all attempts have the time of one.
func brisk(ctx workflow.Context, summary string) workflow.Context {
	o := workflow.GetLocalActivityOptions(quick(ctx, summary))
	o.ScheduleToCloseTimeout = QuickAttempt
	return workflow.WithLocalActivityOptions(ctx, o)
}

// once is for the first try of what may fail for long: short, and not repeated in this form.
func once(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: OnceAttempt,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:             summary,
	})
}

// patient is for a neighbour that may be away for long: tried for as long as it takes, each attempt and the next
// retry visible in the UI.
func patient(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: PatientAttempt,
		HeartbeatTimeout:    HeartbeatTimeout,
		WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    500 * time.Millisecond,
			BackoffCoefficient: 2,
			MaximumInterval:    10 * time.Second,
		},
		Summary: summary,
	})
}

// persevering is for a step that may have much to do: as patient, but for longer, and known to live by its heartbeats.
func persevering(ctx workflow.Context, summary string) workflow.Context {
	o := workflow.GetActivityOptions(patient(ctx, summary))
	o.StartToCloseTimeout = LongAttempt
	return workflow.WithActivityOptions(ctx, o)
}

// Insistence is how long a lease asks a neighbour again before it takes no for an answer.
const Insistence = 10 * time.Minute

// insistent is for a neighbour without which a lease cannot go on: as patient, but only for so long.
func insistent(ctx workflow.Context, summary string, within time.Duration) workflow.Context {
	o := workflow.GetActivityOptions(patient(ctx, summary))
	o.StartToCloseTimeout, o.ScheduleToCloseTimeout = CloudAttempt, within
	return workflow.WithActivityOptions(ctx, o)
}

// nudged is the channel of the `changed` signal.
func nudged(ctx workflow.Context) workflow.ReceiveChannel {
	return workflow.GetSignalChannelWithOptions(ctx, contract.SignalChanged,
		workflow.SignalChannelOptions{Description: "The row has changed: look again"})
}

// drain takes everything that waits in the channel and returns how much it was.
func drain(c workflow.ReceiveChannel) int {
	n := 0
	for c.ReceiveAsync(nil) {
		n++
	}
	return n
}
