package leasestore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// stuckSQL is an SQL condition that the lease with the alias `of` is stuck: its end has failed, or calls to
// Nova, Neutron or Placement for one of its reservations have been failing for at least lease.StuckAfter. A
// stuck lease can keep its resources for a long time.
func stuckSQL(of string) string {
	return `(exists (select from event failed where failed.lease_id = ` + of + `.id and failed.event_type = 'end_lease' and failed.status = 'ERROR')
		or exists (
			select from reservation r
			join reservation_failure f on f.reservation_id = r.id
			where r.lease_id = ` + of + `.id and f.since <= clock_timestamp() - ` + stuckAfterSQL + `))`
}

// stuckAfterSQL is lease.StuckAfter as an SQL interval.
var stuckAfterSQL = `interval '` + strconv.Itoa(int(lease.StuckAfter.Seconds())) + ` seconds'`

// allocationTable is a table of allocations whose resources leases wait for.
type allocationTable struct {
	name  string
	key   string // column with the ID of the resource
	owner string // column that is equal in allocations that share a resource
	place string // columns host_id and resource_id of the table expression `blocker`
}

// allocationTables are the tables of hosts, and of network segments and devices.
var allocationTables = []allocationTable{
	{name: "host_allocation", key: "host_id", owner: "owner", place: "mine.key as host_id, null::uuid as resource_id"},
	{name: "resource_allocation", key: "resource_id", owner: "reservation_id", place: "null::bigint, mine.key"},
}

// eachTable joins an SQL text for each allocation table. In the text, %[1]s is the name of the table, %[2]s
// is its key, %[3]s is its owner, and %[4]s is its place.
func eachTable(separator, sql string) string {
	var all []string
	for _, t := range allocationTables {
		all = append(all, fmt.Sprintf(sql, t.name, t.key, t.owner, t.place))
	}
	return strings.Join(all, separator)
}

// blockersShown is the maximum number of blockers that a lease lists. If a lease has more blockers than
// blockersShown, it lists the blockers with the earliest end dates.
const blockersShown = 10

// blockersSQL is the beginning of an SQL query: the table expressions `holder` and `blocker`, which the query
// can read, and others that these need. A row of `blocker` says that the start of a lease (waiting_id) must
// wait until another lease (id) has released a resource (host_id or resource_id). The parameter is a query
// for the IDs of the leases whose blockers are needed; they must be PENDING, and their start must be due.
//
// A blocker has an earlier allocation (`theirs`) of a resource that is also allocated to the waiting lease
// (`mine`), and has not released the resource. A lease with a later allocation of the resource is a blocker
// if it has already started. An instance reservation does not block other instance reservations if its
// release has failed or takes too long (see heldTooLongSQL), because its slots (each is the capacity of a
// host for one instance) belong to no other reservation. A PENDING lease holds nothing in Nova and Neutron,
// and is a blocker only because it must start earlier than the waiting lease. If a PENDING lease itself waits
// for a resource of a stuck lease, it is not a blocker, so that the stuck lease blocks only the leases that
// need one of its resources.
//
// A lease may have a hundred reservations on the same hosts, and many leases may wait for the same hosts. So
// each side of a join has one row for a lease and a resource, and not one for each reservation; each lease is
// examined once; and of the PENDING blockers of a resource, `blocker` has only those that can be among the
// first blockersShown blockers of a lease.
func blockersSQL(waiting string) string {
	return `
	with waiting as materialized (` + waiting + `),
	` + allocationsSQL("mine", `(select id as lease_id from waiting)`) + `,
	` + holdersSQL("theirs", "mine", untilStartedSQL) + `,
	holder as materialized (
		select l.*, l.status <> 'PENDING' and ` + stuckSQL("l") + ` as stuck
		from (
			select lease_id, bool_or(earlier) as earlier
			from (` + eachTable(` union all `, `select lease_id, earlier from theirs_%[1]s`) + `) t
			group by lease_id) t
		cross join lateral (
			select id, name, project_id, user_id, status, end_at
			from lease
			where id = t.lease_id and (status <> 'PENDING' or t.earlier)
			offset 0) l),
	` + allocationsSQL("needed", `(select id as lease_id from holder where status = 'PENDING')`) + `,
	` + holdersSQL("held", "needed", untilStartedSQL) + `,
	third as materialized (
		select l.id
		from (` + eachTable(` union `, `select lease_id from held_%[1]s where earlier`) + `) h
		cross join lateral (select id from lease where id = h.lease_id and status <> 'PENDING' offset 0) l
		where ` + stuckSQL("l") + `),
	waits_for_stuck as materialized (` + eachTable(`
		union`, `
		select needed.lease_id
		from needed_%[1]s needed
		join held_%[1]s held on held.key = needed.key and held.owner <> needed.owner
			and upper(held.during) <= lower(needed.during)
		join third on third.id = held.lease_id`) + `),
	next as materialized (
		select id
		from holder
		where status = 'PENDING' and id not in (select lease_id from waits_for_stuck)),
	` + eachTable(`,
	`, `before_%[1]s as materialized (
		select t.key, t.lease_id, t.during, t.owner
		from theirs_%[1]s t
		join holder h on h.id = t.lease_id and h.status <> 'PENDING'
		union all
		select key, lease_id, during, owner
		from (
			select t.*, row_number() over (partition by t.key order by upper(t.during), t.lease_id) as place
			from theirs_%[1]s t
			join next on next.id = t.lease_id
			where t.earlier) t
		where place <= `+strconv.Itoa(blockersShown)+`)`) + `,
	blocker as materialized (
		select waiting_id, id, host_id, resource_id, bool_or(stuck) as stuck
		from (` + eachTable(`
			union all`, `
			select mine.lease_id as waiting_id, before.id, %[4]s, before.status <> 'PENDING' and (before.stuck or not r.earlier) as stuck
			from mine_%[1]s mine
			join before_%[1]s theirs on theirs.key = mine.key and theirs.lease_id <> mine.lease_id
			join holder before on before.id = theirs.lease_id
			cross join lateral (select upper(theirs.during) <= lower(mine.during) as earlier) r
			where r.earlier and not (mine.owner = theirs.owner and `+heldTooLongSQL+`)
				or lower(theirs.during) >= upper(mine.during) and before.status <> 'PENDING' and mine.owner <> theirs.owner`) + `) b
		group by waiting_id, id, host_id, resource_id)`
}

// heldTooLongSQL is an SQL condition on a blocker (`before`) that is past its end: its start or end has
// failed, it is stuck, or it has needed longer than lease.StuckAfter to end or to be deleted.
var heldTooLongSQL = `(before.status = 'ERROR' or before.stuck
					or before.status in ('TERMINATING', 'DELETING') and upper(theirs.during) <= now() - ` + stuckAfterSQL + `)`

// allocationsSQL is a table expression for each allocation table, with the resources of leases. The
// parameter `leases` is a table expression with the column lease_id. The clause `offset 0` makes PostgreSQL
// look up the allocations of each lease, and not read all allocations.
func allocationsSQL(name, leases string) string {
	return eachTable(`,
	`, name+`_%[1]s as materialized (
		select distinct l.lease_id, a.key, a.during, a.owner
		from `+leases+` l
		cross join lateral (
			select a.%[2]s as key, a.during, a.%[3]s as owner
			from reservation r
			join %[1]s a on a.reservation_id = r.id
			where r.lease_id = l.lease_id
			offset 0) a)`)
}

// untilStartedSQL is the time until which an allocation must begin to be one of a blocker. A PENDING blocker
// has an earlier allocation than the waiting lease. Every other blocker has started; the hour is much longer
// than lease.ClockSkew.
const untilStartedSQL = `greatest(k.latest, now() + interval '1 hour')`

// holdersSQL is a table expression for each allocation table, with the leases that have one of the resources
// in the table expression `of`, and whether their allocation is earlier than one of those in `of`. It does
// not read the allocations that begin after the time `until`; null: it reads all.
func holdersSQL(name, of, until string) string {
	return eachTable(`,
	`, name+`_%[1]s as materialized (
		select k.key, a.lease_id, a.during, a.owner, upper(a.during) <= k.latest as earlier
		from (select key, max(lower(during)) as latest from `+of+`_%[1]s group by key) k
		cross join lateral (
			select distinct r.lease_id, a.during, a.%[3]s as owner
			from %[1]s a
			join reservation r on r.id = a.reservation_id
			where a.%[2]s = k.key and a.during && tstzrange(null, `+until+`)) a)`)
}

// dueBlockersSQL is the query for the blockers of pending leases whose start is due.
var dueBlockersSQL = blockersSQL(`
		select id
		from lease
		where id = any($1) and status = 'PENDING' and start_at <= clock_timestamp() + $2::interval`) + `
	select waiting_id, id, name, project_id, user_id, coalesce((select hostname from host where host.id = host_id), ''),
		coalesce((select resource_type from reservable_resource f where f.id = resource_id), ''), end_at, stuck
	from (
		select b.waiting_id, b.host_id, b.resource_id, b.stuck, h.id, h.name, h.project_id, h.user_id, h.end_at,
			row_number() over (partition by b.waiting_id order by h.end_at, coalesce(b.host_id, 0), h.id, b.resource_id) as place
		from blocker b
		join holder h on h.id = b.id) b
	where place <= $3
	order by waiting_id, place`

// queueBlockers queues the query for the blockers of pending leases whose start is due.
func queueBlockers(batch *pgx.Batch, all []lease.Lease, byID map[uuid.UUID]*lease.Lease) {
	var pending []uuid.UUID
	for _, l := range all {
		if l.Status == lease.Pending {
			pending = append(pending, l.ID)
		}
	}
	if len(pending) == 0 {
		return
	}
	batch.Queue(dueBlockersSQL, pending, lease.ClockSkew, blockersShown).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var id uuid.UUID
			var b lease.Blocker
			if err := rows.Scan(&id, &b.ID, &b.Name, &b.Project, &b.User, &b.Host, &b.Resource, &b.Since, &b.Stuck); err != nil {
				return err
			}
			byID[id].Blockers = append(byID[id].Blockers, b)
		}
		return rows.Err()
	})
}

// overdueSQL is the from clause and the where clause of a query for the PENDING leases that are past their
// end.
const overdueSQL = `
	from event e
	join lease l on l.id = e.lease_id
	where e.status = 'UNDONE' and e.event_type = 'end_lease' and e.at <= now() and l.status = 'PENDING' and l.delete_requested_at is null`

// blockedPastEndSQL is the query of ExpireBlockedLeases.
var blockedPastEndSQL = blockersSQL(`select l.id`+overdueSQL) + `
	select l.id` + overdueSQL + ` and l.id in (select waiting_id from blocker where stuck)
	order by e.at, l.id
	limit $1
	for update of l skip locked`

// ExpireBlockedLeases sets PENDING leases to ERROR if they are past their end and still wait for a blocker
// that is stuck, or that has started although its allocation is later, and releases their resources.
// ExpireBlockedLeases skips leases that another transaction has locked, and expires at most advanceBatchSize
// leases. The result is the number of expired leases.
func (s *Store) ExpireBlockedLeases(ctx context.Context) (expired int, err error) {
	err = s.inTx(ctx, func(tx *transaction) error {
		ids, err := db.QueryAll(ctx, tx, pgx.RowTo[uuid.UUID], blockedPastEndSQL, advanceBatchSize)
		if err != nil {
			return fmt.Errorf("lock blocked leases: %w", err)
		}
		leases, err := readLeases(ctx, tx, `id = any($1)`, ids)
		if err != nil {
			return err
		}
		for _, was := range leases {
			if _, err := expireLease(ctx, tx, was); err != nil {
				return err
			}
		}
		expired = len(leases)
		return nil
	})
	return expired, err
}

// expireLease sets a locked lease to ERROR, because other leases held its resources until its end, and
// releases the resources of the lease.
func expireLease(ctx context.Context, tx *transaction, was lease.Lease) (lease.Lease, error) {
	now, err := databaseTime(ctx, tx)
	if err != nil {
		return was, err
	}
	is, err := lease.Expire(was, now)
	if err != nil {
		return was, asConflict(err)
	}
	nudges, err := followerNudges(ctx, tx, was.ID)
	if err != nil {
		return was, err
	}
	err = forEachType(reservationsOf(was), func(res resource, reservations []leaseReservation) error {
		ids := make([]uuid.UUID, len(reservations))
		for i, r := range reservations {
			ids[i] = r.ID
		}
		return res.release(ctx, tx, ids...)
	})
	if err != nil {
		return was, err
	}
	if err := saveLease(ctx, tx, was, is); err != nil {
		return was, err
	}
	return is, outbox.Enqueue(ctx, tx, append(nudges, nudgeLease(is, false))...)
}
