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
}

// allocationTables are the tables of hosts, and of network segments and devices.
var allocationTables = []allocationTable{
	{name: "host_allocation", key: "host_id", owner: "owner"},
	{name: "resource_allocation", key: "resource_id", owner: "reservation_id"},
}

// anySQL joins a condition for each allocation table with or.
func anySQL(condition func(allocationTable) string) string {
	var all []string
	for _, t := range allocationTables {
		all = append(all, condition(t))
	}
	return "(" + strings.Join(all, " or ") + ")"
}

// blockersSQL is the from clause and the where clause of a query for the blockers of the lease l: the leases
// (`before`) for which the start of l must wait. A blocker has an earlier allocation (`theirs`) of a resource
// that is also allocated to l (`mine`), and has not released the resource. A lease with a later allocation of
// the resource is a blocker if it has already started. An instance reservation does not block other instance
// reservations if its release has failed or takes too long (see heldTooLongSQL), because its slots (each is
// the capacity of a host for one instance) belong to no other reservation. A PENDING lease holds nothing in
// Nova and Neutron, and is a blocker only because it must start earlier than l. If a PENDING lease itself
// waits for a resource of a stuck lease, it is not a blocker, so that the stuck lease blocks only the leases
// that need one of its resources.
func (t allocationTable) blockersSQL() string {
	return t.format(`
	from reservation r
	join %[1]s mine on mine.reservation_id = r.id
	join %[1]s theirs on theirs.%[2]s = mine.%[2]s
	join reservation b on b.id = theirs.reservation_id
	join lease before on before.id = b.lease_id
	where r.lease_id = l.id and before.id <> l.id
		and (upper(theirs.during) <= lower(mine.during) and not (mine.%[3]s = theirs.%[3]s and `) + heldTooLongSQL + t.format(`)
			or lower(theirs.during) >= upper(mine.during) and before.status <> 'PENDING' and mine.%[3]s <> theirs.%[3]s)
		and (before.status <> 'PENDING' or not `) + anySQL(allocationTable.waitsForStuckSQL) + `)`
}

// heldTooLongSQL is an SQL condition on a blocker (`before`) that is past its end: its start or end has
// failed, it is stuck, or it has needed longer than lease.StuckAfter to end or to be deleted.
var heldTooLongSQL = `(before.status = 'ERROR'
			or before.status in ('TERMINATING', 'DELETING') and upper(theirs.during) <= now() - ` + stuckAfterSQL + `
			or before.status <> 'PENDING' and ` + stuckSQL("before") + `)`

// waitsForStuckSQL is an SQL condition that the lease `before` waits for a resource of a stuck lease.
func (t allocationTable) waitsForStuckSQL() string {
	return t.format(`exists (
			select from reservation waits
			join %[1]s needed on needed.reservation_id = waits.id
			join %[1]s held on held.%[2]s = needed.%[2]s and upper(held.during) <= lower(needed.during)
			join reservation holder on holder.id = held.reservation_id
			join lease third on third.id = holder.lease_id
			where waits.lease_id = before.id and third.status <> 'PENDING' and needed.%[3]s <> held.%[3]s and `) +
		stuckSQL("third") + `)`
}

// format returns the SQL text with the names of the table and its columns.
func (t allocationTable) format(sql string) string { return fmt.Sprintf(sql, t.name, t.key, t.owner) }

// isBlockedSQL is an SQL condition that the lease l has a blocker in the table.
func (t allocationTable) isBlockedSQL() string { return `exists (select ` + t.blockersSQL() + `)` }

// expiresSQL is an SQL condition that the lease l, if it has passed its end, expires instead of waiting
// longer, because one of its blockers meets stuckBlockerSQL.
func (t allocationTable) expiresSQL() string {
	return `exists (select ` + t.blockersSQL() + ` and ` + stuckBlockerSQL + `)`
}

// stuckBlockerSQL is an SQL condition on a blocker (`before`) of the lease l: the blocker is stuck, or the
// blocker has started although its allocation is later than that of l.
var stuckBlockerSQL = `before.status <> 'PENDING'
	and (lower(theirs.during) >= upper(mine.during) or ` + stuckSQL("before") + `)`

// blockersShown is the maximum number of blockers that a lease lists. If a lease has more blockers than
// blockersShown, it lists the blockers with the earliest end dates.
const blockersShown = 10

// queueBlockers queues the query for the blockers of pending leases whose start is due.
func queueBlockers(batch *pgx.Batch, ids []uuid.UUID, byID map[uuid.UUID]*lease.Lease) {
	of := func(t allocationTable) string {
		return `
			select before.id, before.name, before.project_id, before.user_id, before.end_at, mine.` + t.key + `, ` +
			stuckBlockerSQL + ` as stuck ` + t.blockersSQL()
	}
	batch.Queue(`
		select l.id, b.id, b.name, b.project_id, b.user_id, b.hostname, b.resource_type, b.end_at, b.stuck
		from lease l
		cross join lateral (
			select before.id, before.name, before.project_id, before.user_id, h.hostname, '' as resource_type, before.end_at, before.stuck, h.id as place
			from (`+of(allocationTables[0])+`) before
			join host h on h.id = before.host_id
			union all
			select before.id, before.name, before.project_id, before.user_id, '', f.resource_type, before.end_at, before.stuck, 0
			from (`+of(allocationTables[1])+`) before
			join reservable_resource f on f.id = before.resource_id
			order by end_at, place
			limit $3) b
		where l.id = any($1) and l.status = 'PENDING' and l.start_at <= clock_timestamp() + $2::interval
		order by l.id, b.end_at`, ids, lease.ClockSkew, blockersShown).Query(func(rows pgx.Rows) error {
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

// ExpireBlockedLeases sets PENDING leases to ERROR if they are past their end and still wait for a blocker
// that meets stuckBlockerSQL, for example a stuck lease, and releases their resources. ExpireBlockedLeases
// skips leases that another transaction has locked, and expires at most advanceBatchSize leases. The result
// is the number of expired leases.
func (s *Store) ExpireBlockedLeases(ctx context.Context) (expired int, err error) {
	err = s.inTx(ctx, func(tx *transaction) error {
		ids, err := db.QueryAll(ctx, tx, pgx.RowTo[uuid.UUID], `
			select l.id
			from event e
			join lease l on l.id = e.lease_id
			where e.status = 'UNDONE' and e.event_type = 'end_lease' and e.at <= now() and l.status = 'PENDING' and l.delete_requested_at is null
				and `+anySQL(allocationTable.expiresSQL)+`
			order by e.at, l.id
			limit $1
			for update of l skip locked`, advanceBatchSize)
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
