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
// whose hypervisor is up and enabled are reservable. The others fail, but not those that are silent while too
// many are. UpdateHostStates does not change hosts of which the reading says nothing.
func (s *Store) UpdateHostStates(
	ctx context.Context,
	all []lease.Hypervisor,
) (states lease.HostStates, err error) {
	names, up, silent := make([]string, len(all)), make([]bool, len(all)), make([]bool, len(all))
	for i, h := range all {
		names[i], up[i], silent[i] = h.Hostname, h.Up, h.Silent
	}
	err = s.inTx(ctx, func(tx *transaction) error {
		states = lease.HostStates{}
		changed, err := db.QueryAll(ctx, tx, pgx.RowToStructByPos[changedHost], readStatesSQL, names, up, silent)
		if err != nil {
			return fmt.Errorf("update states of hosts: %w", err)
		}
		for _, h := range changed {
			if h.Recovered {
				states.Recovered = append(states.Recovered, h.Hostname)
			} else {
				states.Failed = append(states.Failed, h.Hostname)
			}
		}
		return failSilentHosts(ctx, tx, &states)
	})
	slices.Sort(states.Failed)
	slices.Sort(states.Recovered)
	return states, err
}

// failSilentHosts lets the hosts fail that the present reading has shown as silent, unless too many are.
func failSilentHosts(ctx context.Context, tx *transaction, states *lease.HostStates) error {
	var silent, hosts int
	if err := tx.QueryRow(ctx, `
		select count(*) filter (where silent_at = now()), count(*)
		from host
		where not failed`).Scan(&silent, &hosts); err != nil {
		return fmt.Errorf("count hosts that are silent: %w", err)
	}
	if lease.TooManySilent(silent, hosts) {
		states.Suspended = silent
		if _, err := tx.Exec(ctx, `
			update host
			set silent_readings = 1 - $1::integer
			where silent_at = now() and not failed`, lease.ReadingsAfterOutage); err != nil {
			return fmt.Errorf("store that too many hosts are silent together: %w", err)
		}
		return nil
	}
	failed, err := db.QueryAll(ctx, tx, pgx.RowTo[string], `
		update host
		set failed = true
		where silent_at = now() and not failed and silent_readings > 0
		returning hostname`)
	if err != nil {
		return fmt.Errorf("store that hosts have failed: %w", err)
	}
	states.Failed = append(states.Failed, failed...)
	return nil
}

// changedHost is a host that has failed, or has recovered, with the present reading.
type changedHost struct {
	Hostname  string
	Recovered bool
}

// readStatesSQL stores a reading and returns the hosts that had failed and are up again, and those that fail
// at once because their hypervisor is disabled.
const readStatesSQL = `
	with read as (
		select h.id, h.failed, s.up, s.silent, not s.up and (h.failed or not s.silent) as fails
		from host h
		join unnest($1::text[], $2::boolean[], $3::boolean[]) as s (hostname, up, silent) using (hostname)
		where not s.up or h.silent_at is not null or h.failed or not h.reservable
		order by h.id
		for no key update of h),
	stored as (
		update host h
		set reservable = r.up, failed = r.fails, silent_at = case when r.silent then now() end,
			silent_readings = case when r.silent then h.silent_readings + 1 else 0 end,
			updated_at = case when h.reservable = r.up then h.updated_at else clock_timestamp() end
		from read r
		where h.id = r.id
		returning h.hostname, r.up as recovered, r.failed <> r.fails as changed)
	select hostname, recovered
	from stored
	where changed`

// suspendedAge is how old the reading may be that makes a host count as one that does not fail. It is longer
// than a slow sweep, so that such hosts do not count for ever after BERTH_LEASE_MONITOR is turned off.
const suspendedAge = 15 * time.Minute
