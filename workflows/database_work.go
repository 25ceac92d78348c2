package workflows

import (
	"errors"

	"go.temporal.io/sdk/workflow"

	"berth/activities"
)

// runDatabaseWork runs an activity that needs only the database. The first attempts are a local activity. If
// the local activity fails because the database is unavailable, runDatabaseWork reports that the workflow
// waits for the database, and runs a regular activity, which Temporal retries without a limit. A workflow
// that waits for a regular activity adds no events to its history, and Temporal's UI shows the attempts. If
// the function `full` returns true while the regular activity is retried, runDatabaseWork cancels the
// activity and returns errInterrupted, so that the workflow can continue as new.
func runDatabaseWork(
	ctx workflow.Context,
	status *statusReporter,
	full func() bool,
	summary string,
	result any,
	activity string,
	args ...any,
) error {
	err := workflow.ExecuteLocalActivity(localFirstTry(ctx, summary), activity, args...).Get(ctx, result)
	if err == nil || !databaseMayReturn(ctx, err) {
		return err
	}
	if err := status.waitForDatabase(ctx, err); err != nil {
		return err
	}
	switch interrupted, err := executeUntilFull(remoteDatabase(ctx, summary), full, result, activity, args...); {
	case interrupted && err != nil:
		return errInterrupted
	case err != nil:
		return err
	}
	return status.databaseReturned(ctx)
}

// errInterrupted means that the workflow has interrupted an activity because the run has received many
// messages, and that the workflow must continue as new.
var errInterrupted = errors.New("the activity was interrupted")

// databaseMayReturn reports whether a regular activity should repeat database work that failed in a local
// activity.
func databaseMayReturn(ctx workflow.Context, err error) bool {
	return !isFinal(err) && !hasType(err, activities.BackendError) && ctx.Err() == nil
}
