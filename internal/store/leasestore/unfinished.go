package leasestore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/store/db"
)

// Unfinished counts the work on leases that Nova, Neutron or the process that does it holds up.
type Unfinished struct {
	Quarantined  int64 // hosts that a lease keeps because its end has failed
	PoolChanges  int64 // hosts whose change of the freepool Nova has not confirmed
	Leftovers    int64 // reservations of deleted leases whose removal from Nova and Neutron is due or has failed
	Interrupted  int64 // steps of leases that a process has begun and not finished in time, and that no process has taken over
	FailingCalls int64 // reservations whose last call of Nova, Neutron or the inventory failed
}

// Unfinished counts the unfinished work on leases.
func (s *Store) Unfinished(ctx context.Context) (Unfinished, error) {
	u, err := db.QueryOne(ctx, s.db, pgx.RowToStructByName[Unfinished], nil, `
		select
			(select count(distinct host_id) from (`+quarantineSQL+`) as q) as quarantined,
			(select count(*) from host_pooling) as pool_changes,
			(select count(*) from reservation_leftover where due_at <= clock_timestamp() or attempts > 0) as leftovers,
			(select count(*) from lease where batch_until <= clock_timestamp()) as interrupted,
			(select count(*) from reservation_failure) as failing_calls`)
	if err != nil {
		return u, fmt.Errorf("count the unfinished work on leases: %w", err)
	}
	return u, nil
}
