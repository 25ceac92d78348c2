package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"berth/activities"
)

// Timeouts of one attempt. Each is longer than the calls that the attempt makes: compare activities.ShortCallTimeout,
// activities.LongCallTimeout and activities.CloudCallTimeout.
const (
	LocalDatabaseTimeout = 5 * time.Second
	SingleAttemptTimeout = 4 * time.Second
	RemoteAttemptTimeout = 15 * time.Second
	CloudAttemptTimeout  = 2 * time.Minute
	LongRunningTimeout   = 15 * time.Minute
)

// HeartbeatTimeout is the time after which the server notices that the process of a regular activity has died.
const HeartbeatTimeout = 5 * time.Second

// localDatabaseRetryTime is how long local activities are retried while the database is unavailable. Then the workflow
// fails, and the sweep restarts it. Without this setting, the SDK limits all attempts to the timeout of one.
const localDatabaseRetryTime = 24 * time.Hour

// DefaultCloudRetryTime is how long a lease's step retries failed Nova and Neutron calls, unless the operator sets
// another time.
const DefaultCloudRetryTime = 10 * time.Minute

// localDatabase is for local activities that run a few PostgreSQL statements. They are retried until the database answers.
func localDatabase(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout:    LocalDatabaseTimeout,
		ScheduleToCloseTimeout: localDatabaseRetryTime,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    100 * time.Millisecond,
			BackoffCoefficient: 2,
			MaximumInterval:    5 * time.Second,
			// A call that another service refuses is repeated as a regular activity, see remoteLimited.
			NonRetryableErrorTypes: []string{activities.BackendError},
		},
		Summary: summary,
	})
}

// localFirstTry is localDatabase for activities that the workflow repeats as regular ones: all attempts together have the
// time of one.
func localFirstTry(ctx workflow.Context, summary string) workflow.Context {
	o := workflow.GetLocalActivityOptions(localDatabase(ctx, summary))
	o.ScheduleToCloseTimeout = LocalDatabaseTimeout
	return workflow.WithLocalActivityOptions(ctx, o)
}

// localSingleAttempt is for the first call to another service: a local activity with one short attempt. If it fails, the
// workflow repeats the call as a regular activity.
func localSingleAttempt(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: SingleAttemptTimeout,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:             summary,
	})
}

// remoteUnlimited is for calls to another service that may be unavailable for long. The activity is retried without a
// limit; the UI shows each attempt and the next retry.
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
		Summary: summary,
	})
}

// longRunning is remoteUnlimited with a longer attempt. Heartbeats show that the process lives.
func longRunning(ctx workflow.Context, summary string) workflow.Context {
	o := workflow.GetActivityOptions(remoteUnlimited(ctx, summary))
	o.StartToCloseTimeout = LongRunningTimeout
	return workflow.WithActivityOptions(ctx, o)
}

// remoteLimited is for the calls of a lease's step: remoteUnlimited, but retries end after the given time.
func remoteLimited(ctx workflow.Context, summary string, retryTime time.Duration) workflow.Context {
	o := workflow.GetActivityOptions(remoteUnlimited(ctx, summary))
	o.StartToCloseTimeout, o.ScheduleToCloseTimeout = CloudAttemptTimeout, retryTime
	return workflow.WithActivityOptions(ctx, o)
}
