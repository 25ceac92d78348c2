package leasestore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/store/db"
)

// UpdateHostStates stores what a reading of the hypervisors says about the states of the hosts: only hosts
// whose hypervisor is up and enabled are reservable. The others fail, unless too many are down together.
// UpdateHostStates does not change hosts of which the reading says nothing.
func (s *Store) UpdateHostStates(
	ctx context.Context,
	all []lease.Hypervisor,
) (states lease.HostStates, err error) {
	names, up := make([]string, len(all)), make([]bool, len(all))
	for i, h := range all {
		names[i], up[i] = h.Hostname, h.Up
	}
	err = s.inTx(ctx, func(tx *transaction) error {
		states = lease.HostStates{}
		if states.Recovered, err = db.QueryAll(ctx, tx, pgx.RowTo[string], readStatesSQL, names, up); err != nil {
			return fmt.Errorf("update states of hosts: %w", err)
		}
		var down, hosts int
		if err := tx.QueryRow(ctx, `
			select count(*) filter (where down_seen_at = now()), count(*)
			from host
			where not failed`).Scan(&down, &hosts); err != nil {
			return fmt.Errorf("count hosts that are down: %w", err)
		}
		if lease.TooManyDown(down, hosts) {
			states.Suspended = down
			if _, err := tx.Exec(ctx, `
				update host
				set down_readings = 1 - $1::integer
				where down_seen_at = now() and not failed`, lease.ReadingsAfterOutage); err != nil {
				return fmt.Errorf("store that too many hosts are down together: %w", err)
			}
			return nil
		}
		states.Failed, err = db.QueryAll(ctx, tx, pgx.RowTo[string], `
			update host
			set failed = true
			where down_seen_at = now() and not failed and down_readings > 0
			returning hostname`)
		if err != nil {
			return fmt.Errorf("store that hosts have failed: %w", err)
		}
		return nil
	})
	slices.Sort(states.Failed)
	slices.Sort(states.Recovered)
	return states, err
}

// readStatesSQL stores a reading and returns the names of the hosts that had failed and are up again.
const readStatesSQL = `
	with read as (
		select h.id, h.failed, s.up
		from host h
		join unnest($1::text[], $2::boolean[]) as s (hostname, up) using (hostname)
		where not s.up or h.down_seen_at is not null or h.failed or not h.reservable
		order by h.id
		for no key update of h),
	stored as (
		update host h
		set reservable = r.up, failed = r.failed and not r.up, down_seen_at = case when not r.up then now() end,
			down_readings = case when r.up then 0 else h.down_readings + 1 end,
			updated_at = case when h.reservable = r.up then h.updated_at else clock_timestamp() end
		from read r
		where h.id = r.id
		returning h.hostname, r.failed and r.up as recovered)
	select hostname
	from stored
	where recovered`

// suspendedAge is how old the reading may be that makes a host count as one that does not fail. It is longer
// than a slow sweep, so that such hosts do not count for ever after BERTH_LEASE_MONITOR is turned off.
const suspendedAge = 15 * time.Minute
