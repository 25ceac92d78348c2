package notificationstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// MaxNovaEvents is the maximum number of Nova events that one read returns.
const MaxNovaEvents = 200

// maxUnsentEvents is the maximum number of undelivered network-changed events of one port, and also of its
// other events. A project can give its port another server with each request, so these events can have any
// number of servers.
const maxUnsentEvents = 100

const novaEventSelect = `
	select id, server, name, status, tag, project, clock_timestamp() - created_at as age,
		coalesce(claimed_until > clock_timestamp(), false) as claimed
	from nova_event
	where port_id = $1 and id > $2
	order by id
	limit $3`

// deleteSuperseded deletes the events of the common table expression `superseded`. It keeps those that a
// process is sending or deleting.
const deleteSuperseded = `,
	locked as (
		select e.id
		from nova_event e
		join superseded s on s.id = e.id
		where coalesce(e.claimed_until <= clock_timestamp(), true)
		for update of e skip locked),
	deleted as (
		delete from nova_event
		where id in (select id from locked))`

// insertChangedEvent inserts a network-changed event. It merges the undelivered events of one port and server
// into one event, because Nova reads the current port when it gets the event. The merged event gets a new ID,
// so that a delivery in progress, which deletes the old ID, does not delete the merged event.
const insertChangedEvent = `
	with superseded as (
		select id
		from nova_event
		where port_id = $1 and name = 'network-changed' and server <> $2
		order by id desc
		offset $7)` + deleteSuperseded + `
	insert into nova_event (port_id, server, name, status, tag, project)
	values ($1, $2, $3, $4, $5, $6)
	on conflict (port_id, server) where name = 'network-changed' do update
	set id = default, project = excluded.project, claimed_until = null`

// insertStatusEvent inserts another event, in place of an equal one that is undelivered. The new event comes
// after the other events of the port, because Nova must get them in order.
const insertStatusEvent = `
	with superseded as (
		select id
		from nova_event
		where port_id = $1 and (server, name, status, tag) = ($2, $3, $4, $5)
		union all
		(select id
		from nova_event
		where port_id = $1 and name <> 'network-changed' and (server, name, status, tag) <> ($2, $3, $4, $5)
		order by id desc
		offset $7))` + deleteSuperseded + `
	insert into nova_event (port_id, server, name, status, tag, project)
	values ($1, $2, $3, $4, $5, $6)`

// QueueNovaEvent queues the statement that records an event for Nova. The statement deletes the undelivered
// events of the port that the event replaces, and the oldest ones if there are too many.
func QueueNovaEvent(batch *pgx.Batch, port uuid.UUID, e network.NovaEvent) {
	insert := insertStatusEvent
	if e.Name == network.NovaNetworkChanged {
		insert = insertChangedEvent
	}
	batch.Queue(insert, port, e.Server, e.Name, e.Status, e.Tag, e.Project, maxUnsentEvents-1)
}

// QueueNovaEventsRead queues the query for the undelivered Nova events of a port, oldest first and at most
// MaxNovaEvents. When the batch runs, the events are stored in `into`.
func QueueNovaEventsRead(batch *pgx.Batch, port uuid.UUID, into *[]network.NovaEvent) {
	batch.Queue(novaEventSelect, port, 0, MaxNovaEvents).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowToStructByName[network.NovaEvent])
		return err
	})
}

// NovaEvents lists the undelivered Nova events of a port whose ID is greater than `after`, oldest first and
// at most MaxNovaEvents.
func (s *Store) NovaEvents(ctx context.Context, port uuid.UUID, after int64) ([]network.NovaEvent, error) {
	return NovaEvents(ctx, s.db, port, after)
}

// NovaEvents does the same as Store.NovaEvents in the caller's transaction.
func NovaEvents(ctx context.Context, q db.Querier, port uuid.UUID, after int64) ([]network.NovaEvent, error) {
	events, err := db.QueryAll(ctx, q, pgx.RowToStructByName[network.NovaEvent],
		novaEventSelect, port, after, MaxNovaEvents)
	if err != nil {
		return nil, fmt.Errorf("read Nova events: %w", err)
	}
	return events, nil
}

// ClaimNovaEvents lists the same events as NovaEvents. If none of the listed events is claimed,
// ClaimNovaEvents claims all of them for the duration `claim`; otherwise it claims none.
func (s *Store) ClaimNovaEvents(
	ctx context.Context,
	port uuid.UUID,
	after int64,
	claim time.Duration,
) (events []network.NovaEvent, err error) {
	err = s.db.InTx(ctx, func(tx db.Tx) error {
		events, err = db.QueryAll(ctx, tx, pgx.RowToStructByName[network.NovaEvent],
			novaEventSelect+` for update`, port, after, MaxNovaEvents)
		if err != nil || slices.ContainsFunc(events, func(e network.NovaEvent) bool { return e.Claimed }) {
			return err
		}
		ids := make([]int64, len(events))
		for i, e := range events {
			ids[i] = e.ID
		}
		_, err = tx.Exec(ctx, `
			update nova_event
			set claimed_until = clock_timestamp() + $2::interval
			where id = any($1)`, ids, claim)
		return err
	})
	return events, err
}

// LatePorts lists at most `limit` ports that have unclaimed Nova events older than `age`, and whose workflow
// has a note that Temporal has not accepted yet. The port with the oldest event comes first.
func (s *Store) LatePorts(ctx context.Context, age time.Duration, limit int) ([]uuid.UUID, error) {
	ports, err := db.QueryAll(ctx, s.db, pgx.RowTo[uuid.UUID], `
		select port_id
		from nova_event
		where created_at < clock_timestamp() - $1::interval and (claimed_until is null or claimed_until < clock_timestamp())
			and `+outbox.Exists(`'port/' || port_id`)+`
		group by port_id
		order by min(id)
		limit $2`, age, limit)
	if err != nil {
		return nil, fmt.Errorf("list ports with late Nova events: %w", err)
	}
	return ports, nil
}

// DeleteNovaEvents deletes Nova events that were delivered. DeleteNovaEvents ignores events that do not
// exist. While another transaction keeps some of the events locked, DeleteNovaEvents waits for these, but has
// already deleted the others.
func (s *Store) DeleteNovaEvents(ctx context.Context, ids []int64) error {
	if err := s.writeUnlockedFirst(ctx, "nova_event", `delete from nova_event`, ids); err != nil {
		return fmt.Errorf("delete Nova events: %w", err)
	}
	return nil
}
