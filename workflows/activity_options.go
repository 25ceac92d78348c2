package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"berth/activities"
	"berth/internal/text"
)

// Timeouts of one attempt of an activity. The timeout of an attempt is longer than the timeout of each call
// that the attempt makes to another service. The timeouts of the calls are activities.ShortCallTimeout,
// activities.LongCallTimeout and activities.CloudCallTimeout.
const (
	LocalDatabaseTimeout = 5 * time.Second
	SingleAttemptTimeout = 4 * time.Second
	RemoteAttemptTimeout = 15 * time.Second
	CloudAttemptTimeout  = 2 * time.Minute
	LongRunningTimeout   = 15 * time.Minute
)

// HeartbeatTimeout is the time without a heartbeat after which the server notices that the process of a
// regular activity has died.
const HeartbeatTimeout = 5 * time.Second

// DefaultCloudRetryTime is how long a step of a lease retries failed Nova and Neutron calls if the operator
// does not set BERTH_LEASE_PATIENCE.
const DefaultCloudRetryTime = 10 * time.Minute

// localFirstTry returns a context with options for local activities that run a few PostgreSQL statements. If
// such a local activity fails, the workflow repeats it as a regular activity. The SDK retries these local
// activities, but limits all attempts together to LocalDatabaseTimeout, because the history of the workflow
// grows while a local activity is retried.
func localFirstTry(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout:    LocalDatabaseTimeout,
		ScheduleToCloseTimeout: LocalDatabaseTimeout,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    100 * time.Millisecond,
			BackoffCoefficient: 2,
			MaximumInterval:    5 * time.Second,
			// If another service refuses a call, the SDK does not retry the local activity, because the
			// workflow repeats the call as a regular activity with the options of remoteLimited.
			NonRetryableErrorTypes: []string{activities.BackendError},
		},
		Summary: text.Summary(summary),
	})
}

// localSingleAttempt returns a context with options for the first call to another service: a local activity
// with one short attempt. If the local activity fails, the workflow repeats the call as a regular activity.
func localSingleAttempt(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: SingleAttemptTimeout,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:             text.Summary(summary),
	})
}

// remoteUnlimited returns a context with options for calls to another service that may be unavailable for a
// long time. Temporal retries an activity with the options of remoteUnlimited without a limit. Temporal's UI
// shows the number of attempts, the last failure and the time of the next retry.
func remoteUnlimited(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: RemoteAttemptTimeout,
		HeartbeatTimeout:    HeartbeatTimeout,
		WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    500 * time.Millisecond,
			BackoffCoefficient: 2,
			MaximumInterval:    10 * time.Second,
		},
		Summary: text.Summary(summary),
	})
}

// remoteDatabase returns a context with the options of remoteUnlimited for a regular activity that runs a few
// PostgreSQL statements. Such an activity sends no heartbeats, because it is short.
func remoteDatabase(ctx workflow.Context, summary string) workflow.Context {
	o := workflow.GetActivityOptions(remoteUnlimited(ctx, summary))
	o.HeartbeatTimeout = 0
	o.RetryPolicy.NonRetryableErrorTypes = []string{activities.BackendError} // as in localFirstTry
	return workflow.WithActivityOptions(ctx, o)
}

// longRunning returns a context with the options of remoteUnlimited, but with a longer timeout of one
// attempt. The heartbeats of a long-running activity show Temporal that the process of the activity is alive.
func longRunning(ctx workflow.Context, summary string) workflow.Context {
	o := workflow.GetActivityOptions(remoteUnlimited(ctx, summary))
	o.StartToCloseTimeout = LongRunningTimeout
	return workflow.WithActivityOptions(ctx, o)
}

// limitRetries returns a context whose activities are retried for at most the given time. An attempt ends at
// the same time.
func limitRetries(ctx workflow.Context, retryTime time.Duration) workflow.Context {
	o := workflow.GetActivityOptions(ctx)
	o.ScheduleToCloseTimeout = retryTime
	o.StartToCloseTimeout = min(o.StartToCloseTimeout, retryTime)
	return workflow.WithActivityOptions(ctx, o)
}

// remoteLimited returns a context with options for the calls of a lease's step. They are the options of
// remoteUnlimited with two differences: the timeout of one attempt is CloudAttemptTimeout, and the retries
// end after `retryTime`.
func remoteLimited(ctx workflow.Context, summary string, retryTime time.Duration) workflow.Context {
	o := workflow.GetActivityOptions(remoteUnlimited(ctx, summary))
	o.StartToCloseTimeout, o.ScheduleToCloseTimeout = CloudAttemptTimeout, retryTime
	return workflow.WithActivityOptions(ctx, o)
}
