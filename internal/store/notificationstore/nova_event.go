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

const novaEventSelect = `
	select id, server, name, status, tag, clock_timestamp() - created_at as age, coalesce(claimed_until > clock_timestamp(), false) as claimed
	from nova_event
	where port_id = $1
	order by id`

// QueueNovaEvent queues the statement that records an event for Nova. The statement merges the undelivered
// network-changed events of one port into one event, because Nova reads the current port when it gets the
// event. The merged event gets a new ID, so that a delivery in progress, which deletes the old ID, does not
// delete the merged event.
func QueueNovaEvent(batch *pgx.Batch, port uuid.UUID, e network.NovaEvent) {
	batch.Queue(`
		insert into nova_event (port_id, server, name, status, tag)
		values ($1, $2, $3, $4, $5)
		on conflict (port_id, server) where name = 'network-changed' do update
		set id = default, claimed_until = null`, port, e.Server, e.Name, e.Status, e.Tag)
}

// QueueNovaEventsRead queues the query for the undelivered Nova events of a port, oldest first. When the
// batch runs, the events are stored in `into`.
func QueueNovaEventsRead(batch *pgx.Batch, port uuid.UUID, into *[]network.NovaEvent) {
	batch.Queue(novaEventSelect, port).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowToStructByName[network.NovaEvent])
		return err
	})
}

// NovaEvents lists the undelivered Nova events of a port, oldest first.
func (s *Store) NovaEvents(ctx context.Context, port uuid.UUID) ([]network.NovaEvent, error) {
	return NovaEvents(ctx, s.db, port)
}

// NovaEvents does the same as Store.NovaEvents in the caller's transaction.
func NovaEvents(ctx context.Context, q db.Querier, port uuid.UUID) ([]network.NovaEvent, error) {
	events, err := db.QueryAll(ctx, q, pgx.RowToStructByName[network.NovaEvent], novaEventSelect, port)
	if err != nil {
		return nil, fmt.Errorf("read Nova events: %w", err)
	}
	return events, nil
}

// ClaimNovaEvents lists the undelivered Nova events of a port, oldest first. If none of the listed events is
// claimed, ClaimNovaEvents claims all of them for the duration `claim`; otherwise it claims none.
func (s *Store) ClaimNovaEvents(
	ctx context.Context,
	port uuid.UUID,
	claim time.Duration,
) (events []network.NovaEvent, err error) {
	err = s.db.InTx(ctx, func(tx db.Tx) error {
		events, err = db.QueryAll(ctx, tx,
			pgx.RowToStructByName[network.NovaEvent], novaEventSelect+` for update`, port)
		if err != nil || slices.ContainsFunc(events, func(e network.NovaEvent) bool { return e.Claimed }) {
			return err
		}
		_, err = tx.Exec(
			ctx,
			`update nova_event set claimed_until = clock_timestamp() + $2::interval where port_id = $1`,
			port,
			claim,
		)
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
// exist.
func (s *Store) DeleteNovaEvents(ctx context.Context, ids []int64) error {
	if _, err := s.db.Exec(ctx, `delete from nova_event where id = any($1)`, ids); err != nil {
		return fmt.Errorf("delete Nova events: %w", err)
	}
	return nil
}
