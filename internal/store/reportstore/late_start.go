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
// that gets the host next. The parameter is a query for the IDs of the leases.
//
// A lease may have a hundred reservations on the same hosts, and hundreds of leases may have the same hosts.
// So `waiting` and `held` have one row for a lease and a host, and a window finds the next lease for all
// holders of a host in one pass; a join would have a row for each two leases of a host. The clause `offset 0`
// makes PostgreSQL look up each lease, and not read all leases.
//
// `place` numbers the leases that wait for a host in the order of their starts. `whole` says that an
// allocation is that of a whole host, and not of instances. `only_whole` says that the holder keeps only
// reservations of the whole host waiting, as in leasestore.heldTooLongSQL.
func lateSQL(leases string) string {
	return fmt.Sprintf(`
		with waiting as materialized (
			select l.*, a.*, row_number() over (partition by a.host_id order by l.start_at, l.id) as place
			from (%s) due
			cross join lateral (
				select id, name, status, start_at
				from lease
				where id = due.lease_id and status = 'PENDING'
				offset 0) l
			cross join lateral (
				select distinct a.host_id, lower(a.during) as at, a.owner = r.id as whole
				from reservation r
				join host_allocation a on a.reservation_id = r.id
				where r.lease_id = l.id) a),
		held as (
			select h.*, a.ended, a.whole, l.*
			from (
				select host_id, (select hostname from host where id = host_id) as host
				from waiting
				group by host_id) h
			cross join lateral (
				select distinct r.lease_id, upper(a.during) as ended, a.owner = r.id as whole
				from host_allocation a
				join reservation r on r.id = a.reservation_id
				where a.host_id = h.host_id and a.during << tstzrange(now() - interval '%d seconds', null)) a
			cross join lateral (
				select id, name, status
				from lease
				where id = a.lease_id and status <> 'PENDING'
				offset 0) l),
		late as (
			select host_id, host, holder_id, holder, at as since,
				case when only_whole then min(place) filter (where whole) over later else min(place) over later end as place
			from (
				select host_id, at, place, whole, null as host, null::uuid as holder_id, null as holder, false as only_whole
				from waiting
				union all
				select host_id, ended, null, whole, host, id, name, not whole and (status = 'ERROR'
					or status in ('TERMINATING', 'DELETING') and ended <= now() - interval '%d seconds')
				from held) s
			window later as (partition by host_id order by at desc, place nulls last))
		select distinct on (holder_id, host_id) l.id, l.name, l.status, start_at, host, holder_id, holder, since
		from late
		join waiting l using (host_id, place)
		where holder_id is not null
		order by holder_id, host_id, place`, leases, int(lease.OverdueAfter.Seconds()), int(lease.StuckAfter.Seconds()))
}

// maxHeld is the maximum number of hosts that HeldHosts returns.
const maxHeld = 10

// heldHostsSQL is the query of HeldHosts.
var heldHostsSQL = `
	select host, holder_id, holder, since
	from (` + lateSQL(`select $1::uuid as lease_id`) + `) s
	order by since, host
	limit $2`

// HeldHosts returns hosts of a PENDING lease that other leases still have although their end has passed, the
// longest overdue first.
func (s *Store) HeldHosts(ctx context.Context, id uuid.UUID) ([]HeldHost, error) {
	all, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[HeldHost], heldHostsSQL, id, maxHeld)
	if err != nil {
		return nil, fmt.Errorf("list the hosts of lease %s that other leases still have: %w", id, err)
	}
	return all, nil
}
