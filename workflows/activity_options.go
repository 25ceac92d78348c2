package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"berth/activities"
)

// Timeouts of one attempt of an activity. Each timeout is longer than the calls that the attempt makes. The limits of
// these calls are activities.ShortCallTimeout, activities.LongCallTimeout and activities.CloudCallTimeout.
const (
	LocalDatabaseTimeout = 5 * time.Second
	SingleAttemptTimeout = 4 * time.Second
	RemoteAttemptTimeout = 15 * time.Second
	CloudAttemptTimeout  = 2 * time.Minute
	LongRunningTimeout   = 15 * time.Minute
)

// HeartbeatTimeout is the time without a heartbeat after which the server notices that the process of a regular
// activity has died.
const HeartbeatTimeout = 5 * time.Second

// localDatabaseRetryTime is how long a local activity is retried while the database is unavailable. After this time
// the workflow fails, and the sweep restarts it. Without this limit, the SDK would limit all attempts together to the
// timeout of one attempt.
const localDatabaseRetryTime = 24 * time.Hour

// DefaultCloudRetryTime is how long a lease's step retries failed Nova and Neutron calls if the operator sets no
// other time.
const DefaultCloudRetryTime = 10 * time.Minute

// localDatabase returns a context with options for local activities that run a few PostgreSQL statements. The
// activities are retried until the database answers.
func localDatabase(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout:    LocalDatabaseTimeout,
		ScheduleToCloseTimeout: localDatabaseRetryTime,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    100 * time.Millisecond,
			BackoffCoefficient: 2,
			MaximumInterval:    5 * time.Second,
			// If another service refuses a call, the workflow repeats the call as a regular activity with the options
			// of remoteLimited.
			NonRetryableErrorTypes: []string{activities.BackendError},
		},
		Summary: summary,
	})
}

// localFirstTry returns a context with the options of localDatabase, but limits all attempts together to the time of
// one attempt. It is for local activities that the workflow repeats as regular activities.
func localFirstTry(ctx workflow.Context, summary string) workflow.Context {
	o := workflow.GetLocalActivityOptions(localDatabase(ctx, summary))
	o.ScheduleToCloseTimeout = LocalDatabaseTimeout
	return workflow.WithLocalActivityOptions(ctx, o)
}

// localSingleAttempt returns a context with options for the first call to another service: a local activity with one
// short attempt. If it fails, the workflow repeats the call as a regular activity.
func localSingleAttempt(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: SingleAttemptTimeout,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:             summary,
	})
}

// remoteUnlimited returns a context with options for calls to another service that may be unavailable for a long
// time. The activity is retried without a limit; Temporal's UI shows each attempt and the next retry.
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

// longRunning returns a context with the options of remoteUnlimited, but with a longer attempt. Heartbeats show that
// the process is alive.
func longRunning(ctx workflow.Context, summary string) workflow.Context {
	o := workflow.GetActivityOptions(remoteUnlimited(ctx, summary))
	o.StartToCloseTimeout = LongRunningTimeout
	return workflow.WithActivityOptions(ctx, o)
}

// remoteLimited returns a context with options for the calls of a lease's step. They equal those of remoteUnlimited,
// but the retries end after the given time.
func remoteLimited(ctx workflow.Context, summary string, retryTime time.Duration) workflow.Context {
	o := workflow.GetActivityOptions(remoteUnlimited(ctx, summary))
	o.StartToCloseTimeout, o.ScheduleToCloseTimeout = CloudAttemptTimeout, retryTime
	return workflow.WithActivityOptions(ctx, o)
}
