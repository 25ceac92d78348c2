package leasestore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/store/db"
)

// Unfinished counts the work on leases that is not finished, for example because a call to Nova failed or a
// process died.
type Unfinished struct {
	Quarantined int64 // hosts that a lease keeps because the end of the lease has failed
	PoolChanges int64 // hosts that must still be added to Nova's aggregate "freepool" or removed from it
	// reservations of ended leases whose repeated removal from Nova and Neutron has failed or is late
	Leftovers int64
	// leases with a step that a process has begun and not finished in time, and that no other process has
	// taken over
	Interrupted  int64
	FailingCalls int64 // reservations whose last call to Nova, Neutron, Keystone or Placement failed
	// hosts that are down and have not failed, because too many are down together
	SuspendedHosts int64
}

// leftoverLate is how long the removal of a leftover is due before it counts as unfinished work. A sweep
// removes leftovers regularly, so while leases are deleted, some removal is always due.
const leftoverLate = 5 * time.Minute

// Unfinished counts the unfinished work on leases.
func (s *Store) Unfinished(ctx context.Context) (Unfinished, error) {
	u, err := db.QueryOne(ctx, s.db, pgx.RowToStructByName[Unfinished], nil, `
		select
			(select count(distinct host_id) from (`+quarantineSQL+`) as q) as quarantined,
			(select count(*) from host_pooling) as pool_changes,
			(
				select count(*)
				from reservation_leftover
				where due_at <= clock_timestamp() - $1::interval or attempts > 0) as leftovers,
			(select count(*) from lease where batch_until <= clock_timestamp()) as interrupted,
			(select count(*) from reservation_failure) as failing_calls,
			(select count(*) from host where not failed and silent_at >= now() - $2::interval) as suspended_hosts`,
		leftoverLate, suspendedAge)
	if err != nil {
		return u, fmt.Errorf("count the unfinished work on leases: %w", err)
	}
	return u, nil
}
