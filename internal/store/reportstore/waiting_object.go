package reportstore

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
)

// WaitingObject is one object that waits for a party.
type WaitingObject struct {
	Type     string // port, trunk or lease
	ID       uuid.UUID
	Name     string
	Status   string
	Since    time.Time
	Deadline *time.Time // nil: none
	Reason   string     // the last error, if there is one
}

// WaitingQuery selects the objects that wait for one party.
type WaitingQuery struct {
	Party Party
	Name  string    // of the WaitingGroup
	Host  string    // of the WaitingGroup
	After uuid.UUID // the key of the last row that the previous page has examined
	Limit int       // maximum number of objects on the page
}

// maxExamined is the maximum number of rows that one page examines.
const maxExamined = 5000

// waitingObjectSQL has, for each party whose waiting objects have pages of their own, the query for one page.
// Each query reads at most $4 rows in the order of a key that begins after $3, and returns those that wait
// for the party ($1 and $2 are its name and host) together with the key. The condition of a port whose
// binding failed needs the host, because an index leads from the host to these ports.
var waitingObjectSQL = map[Party]string{
	Agent: `
		select s.object_id, s.object_type, s.object_id, coalesce(p.name, t.name, ''), coalesce(p.status, ''), s.since, s.deadline, ''
		from (select * from block where object_id > $3 and object_id <= ` + lastBlockSQL + `) s
		left join port p on s.object_type = 'port' and p.id = s.object_id
		left join trunk t on s.object_type = 'trunk' and t.id = s.object_id
		where s.entity = $1 and s.host = $2
		order by s.object_id`,
	Host: `
		select p.id, 'port', p.id, p.name, p.status, p.updated_at, null::timestamptz, $1
		from (select * from port where vif = '` + network.VIFFailed + `' and host = $2 order by host limit $4) p
		where p.id > $3
		order by p.id`,
	Lease: `
		select s.id, 'lease', s.id, s.name, s.status, s.since, s.start_at, ''
		from (` + lateSQL(nextStartsSQL("$4")) + `) s
		where s.holder = $1 and s.host = $2 and s.id > $3
		order by s.id`,
	Service: `
		select f.reservation_id, 'lease', l.id, l.name, l.status, f.since, f.next_at, f.call || ': ' || f.error || $2
		from (select * from reservation_failure where reservation_id > $3 order by reservation_id limit $4) f
		join reservation r on r.id = f.reservation_id
		join lease l on l.id = r.lease_id
		where f.party = $1
		order by f.reservation_id`,
	Nova: `
		select distinct on (e.port_id) e.port_id, 'port', e.port_id, coalesce(p.name, ''), coalesce(p.status, 'DELETED'), e.created_at, null::timestamptz, e.name || $1 || $2
		from (select * from nova_event where port_id > $3 order by port_id limit $4) e
		left join port p on p.id = e.port_id
		order by e.port_id, e.created_at`,
	Worker: `
		select l.id, 'lease', l.id, l.name, l.status, e.at, null::timestamptz, e.event_type || $1 || $2
		from (
			select *
			from event
			where status = 'UNDONE' and event_type <> 'before_end_lease' and at < now()
			order by at
			limit $4) e
		join lease l on l.id = e.lease_id
		where l.id > $3
		order by l.id`,
}

// lastBlockSQL is the key of the last object whose blocks one page examines. The page examines all blocks of
// this object.
const lastBlockSQL = `coalesce(
	(select object_id from block where object_id > $3 order by object_id offset $4 - 1 limit 1), 'ffffffff-ffff-ffff-ffff-ffffffffffff')`

// HasPages reports whether the objects that wait for the party have pages of their own.
func HasPages(p Party) bool { return waitingObjectSQL[p] != "" }

// WaitingObjects returns one page of the objects that wait for a party, and the value of WaitingQuery.After
// for the next page, or uuid.Nil if the page is the last. A page may be shorter than its limit although it is
// not the last, because each page examines a limited number of rows. WaitingObjects returns db.ErrNotFound if
// the objects that wait for the party have no pages.
func (s *Store) WaitingObjects(
	ctx context.Context,
	q WaitingQuery,
) (page []WaitingObject, next uuid.UUID, err error) {
	sql := waitingObjectSQL[q.Party]
	if sql == "" {
		return nil, next, fmt.Errorf("%w: waiting objects of party %q", db.ErrNotFound, q.Party)
	}
	var keys []uuid.UUID
	page, err = db.QueryAll(ctx, s.db, func(row pgx.CollectableRow) (o WaitingObject, err error) {
		var key uuid.UUID
		err = row.Scan(&key, &o.Type, &o.ID, &o.Name, &o.Status, &o.Since, &o.Deadline, &o.Reason)
		keys = append(keys, key)
		return o, err
	}, sql+` limit `+fmt.Sprint(q.Limit+1), q.Name, q.Host, q.After, maxExamined)
	if err != nil {
		return nil, next, fmt.Errorf("list what waits for %s: %w", q.Party, err)
	}
	if len(page) > q.Limit {
		return page[:q.Limit], keys[q.Limit-1], nil
	}
	if q.Party == Agent {
		next, err = s.lastExaminedBlock(ctx, q.After)
	}
	return page, next, err
}

// lastExaminedBlock returns the key of the last object that a page which begins after the given key examines,
// or uuid.Nil if the page examines all objects that are left.
func (s *Store) lastExaminedBlock(ctx context.Context, after uuid.UUID) (last uuid.UUID, err error) {
	last, err = db.QueryOne(ctx, s.db, pgx.RowTo[uuid.UUID], nil, `
		select object_id from block where object_id > $1 order by object_id offset $2 limit 1`, after, maxExamined-1)
	if err != nil {
		return last, fmt.Errorf("list what waits for agents: %w", err)
	}
	return last, nil
}
