package reportstore

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/store/db"
)

// LateWindow is the time before its start from which on Waiting reports that another lease still has a host
// of a lease.
const LateWindow = 12 * time.Hour

// HeldHost is a host of a lease that another lease still has although its end has passed.
type HeldHost struct {
	Host       string
	Holder     uuid.UUID // the lease that still has the host
	HolderName string
	Since      time.Time // when the holder should have left the host
}

// nextStartsSQL selects the leases whose start is overdue or due within LateWindow. It reads at most as many
// events as the given parameter of the statement says.
func nextStartsSQL(most string) string {
	return fmt.Sprintf(`
		select lease_id
		from (
			select lease_id, event_type
			from event
			where status = 'UNDONE' and event_type <> 'before_end_lease' and at < now() + interval '%d seconds'
			order by at
			limit %s) due
		where event_type = 'start_lease'`, int(LateWindow.Seconds()), most)
}

// lateSQL selects the hosts of PENDING leases that another lease still has although its end has passed, as
// leasestore.blockersSQL does for leases whose start is due. For each host and holder, it selects the lease
// that gets the host next. The parameter is a query for the IDs of the leases. The clause `offset 0` makes
// PostgreSQL look up the rows of each of these leases, and not read all leases that have not ended.
func lateSQL(leases string) string {
	return fmt.Sprintf(`
		select distinct on (holder_id, host_id) id, name, status, start_at, host, holder_id, holder, since
		from (%s) waits
		cross join lateral (
			select l.id, l.name, l.status, l.start_at, h.id as host_id, h.hostname as host,
				holder.id as holder_id, holder.name as holder, upper(theirs.during) as since
			from lease l
			join reservation r on r.lease_id = l.id
			join host_allocation mine on mine.reservation_id = r.id
			join host_allocation theirs on theirs.host_id = mine.host_id and theirs.during << mine.during
			join reservation held on held.id = theirs.reservation_id
			join lease holder on holder.id = held.lease_id
			join host h on h.id = mine.host_id
			where l.id = waits.lease_id and l.status = 'PENDING'
				and upper(theirs.during) < now() - interval '%d seconds' and holder.id <> l.id and holder.status <> 'PENDING'
				and not (theirs.owner = mine.owner and (holder.status = 'ERROR'
					or holder.status in ('TERMINATING', 'DELETING') and upper(theirs.during) <= now() - interval '%d seconds'))
			offset 0) late
		order by holder_id, host_id, start_at, id`, leases, int(lease.OverdueAfter.Seconds()), int(lease.StuckAfter.Seconds()))
}

// maxHeld is the maximum number of hosts that HeldHosts returns.
const maxHeld = 10

// HeldHosts returns hosts of a PENDING lease that other leases still have although their end has passed, the
// longest overdue first.
func (s *Store) HeldHosts(ctx context.Context, id uuid.UUID) ([]HeldHost, error) {
	all, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[HeldHost], `
		select host, holder_id, holder, since
		from (`+lateSQL(`select $1::uuid as lease_id`)+`) s
		order by since, host
		limit $2`, id, maxHeld)
	if err != nil {
		return nil, fmt.Errorf("list the hosts of lease %s that other leases still have: %w", id, err)
	}
	return all, nil
}
