package leasestore

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// TimeUntil returns the duration until the given time, measured by the database's clock, which decides which
// leases are due. If the given time has passed, the duration is negative.
func (s *Store) TimeUntil(ctx context.Context, at time.Time) (time.Duration, error) {
	var left time.Duration
	if err := s.db.QueryRow(ctx, `select $1::timestamptz - clock_timestamp()`, at).Scan(&left); err != nil {
		return 0, fmt.Errorf("read time until %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	return left, nil
}

// LeaseRanks returns the rank of each given lease. The rank of a lease is the number of leases that are due
// at the same instant and have a lower ID. The workflows of the leases with the ranks below lease.LeaderCount
// wake up first and run the due steps of all these leases. The map `due` contains, by lease ID, the instant
// at which the lease is due. The rank of a lease can change later, when other leases are created, changed or
// deleted.
func (s *Store) LeaseRanks(ctx context.Context, due map[uuid.UUID]time.Time) (map[uuid.UUID]int, error) {
	if len(due) == 0 {
		return nil, nil
	}
	ids, instants := make([]uuid.UUID, 0, len(due)), make([]time.Time, 0, len(due))
	for id, at := range due {
		ids, instants = append(ids, id), append(instants, at)
	}
	ranks := map[uuid.UUID]int{}
	var id uuid.UUID
	var rank int
	rows, err := s.db.Query(ctx, `
		select lease_id, rank
		from (
			select lease_id, at, rank() over (partition by at order by lease_id) - 1 as rank
			from event
			where status = 'UNDONE' and event_type <> 'before_end_lease' and at = any($2::timestamptz[])) e
		join unnest($1::uuid[], $2::timestamptz[]) as due (id, instant) on due.id = lease_id and due.instant = at`, ids, instants)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&id, &rank}, func() error { ranks[id] = rank; return nil })
	}
	if err != nil {
		return nil, fmt.Errorf("rank leases that are due at the same instant: %w", err)
	}
	return ranks, nil
}
