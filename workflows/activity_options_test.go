package workflows_test

import (
	"testing"
	"time"

	"berth/activities"
	"berth/internal/store/journalstore"
	"berth/workflows"
)

// TestTimeoutsAreNested checks that the timeout of a call is shorter than the timeout of the attempt that
// makes the call, and that the timeout of an attempt is shorter than the time for all retries.
func TestTimeoutsAreNested(t *testing.T) {
	t.Parallel()
	defaults := activities.New(activities.Options{}).Timeouts
	for _, c := range []struct {
		name         string
		inner, outer time.Duration
	}{
		{"a short call within a single local attempt", activities.ShortCallTimeout, workflows.SingleAttemptTimeout},
		{"a single local attempt within the claim duration of a journal entry", workflows.SingleAttemptTimeout, journalstore.DefaultClaimDuration},
		{"two heartbeats within the heartbeat timeout", 2 * activities.HeartbeatInterval, workflows.HeartbeatTimeout},
		{"the calls for one reservation within an attempt", activities.CloudCallTimeout, workflows.CloudAttemptTimeout},
		{"an attempt at a reservation within the retry time", workflows.CloudAttemptTimeout, workflows.DefaultCloudRetryTime},
		{"a short call within a local database attempt", activities.ShortCallTimeout, workflows.LocalDatabaseTimeout},
		{"a short call and the record of its result within a single local attempt", defaults.ShortCall + defaults.Record, workflows.SingleAttemptTimeout},
		{"a read of several leases within a local database attempt", defaults.LoadLeases, workflows.LocalDatabaseTimeout},
		{"the wait for due leases within a local database attempt", defaults.Advance, workflows.LocalDatabaseTimeout},
		{"the parts of a maintenance round within the round", 2*workflows.SweepRetryTime + workflows.HealRetryTime, workflows.MaintenanceTimeout},
		{"the deletions of old rows within the time of the sweep", 3 * defaults.Trim, workflows.SweepRetryTime},
		{"a long call within a regular attempt", activities.LongCallTimeout, workflows.RemoteAttemptTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.inner >= c.outer {
				t.Errorf("inner timeout %s and outer timeout %s: want the inner timeout to be shorter",
					c.inner, c.outer)
			}
		})
	}
}
