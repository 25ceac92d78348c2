package networkstore

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

// LatePorts lists the ports that have unclaimed Nova events that are older than `age`, and a note that Temporal has not accepted. LatePorts
// reads at most `limit` events, oldest first. A port may be listed several times.
func (s *Store) LatePorts(ctx context.Context, age time.Duration, limit int) ([]uuid.UUID, error) {
	return s.late(ctx, `
		select port_id
		from nova_event
		where created_at < clock_timestamp() - $1::interval and (claimed_until is null or claimed_until < clock_timestamp())
			and `+outbox.Exists(`'port/' || port_id`)+`
		order by id
		limit $2`, age, limit)
}

// LateNetworks does the same as LatePorts for the networks of unsent notifications to agents.
func (s *Store) LateNetworks(ctx context.Context, age time.Duration, limit int) ([]uuid.UUID, error) {
	return s.late(ctx, `
		select network_id
		from announcement
		where told_at is null and at < clock_timestamp() - $1::interval and (claimed_until is null or claimed_until < clock_timestamp())
			and `+outbox.Exists(`'announce/' || network_id`)+`
		order by id
		limit $2`, age, limit)
}

func (s *Store) late(ctx context.Context, sql string, args ...any) ([]uuid.UUID, error) {
	all, err := db.QueryAll(ctx, s.db, pgx.RowTo[uuid.UUID], sql, args...)
	if err != nil {
		return nil, fmt.Errorf("list late deliveries: %w", err)
	}
	return all, nil
}

// ClaimNovaEvents lists the undelivered Nova events of a port, oldest first. If none of them is claimed, ClaimNovaEvents claims all of them
// for the given time; otherwise it claims none.
func (s *Store) ClaimNovaEvents(ctx context.Context, port uuid.UUID, claim time.Duration) (events []network.NovaEvent, err error) {
	err = s.inTx(ctx, func(tx *transaction) error {
		events, err = db.QueryAll(ctx, tx, pgx.RowToStructByName[network.NovaEvent], novaEventSelect+` for update`, port)
		if err != nil || slices.ContainsFunc(events, func(e network.NovaEvent) bool { return e.Claimed }) {
			return err
		}
		_, err = tx.Exec(ctx, `update nova_event set claimed_until = clock_timestamp() + $2::interval where port_id = $1`, port, claim)
		return err
	})
	return events, err
}

// ClaimNotifications lists at most `limit` unsent notifications of a network, oldest first. If none of them is claimed, ClaimNotifications
// claims all of them for the given time; otherwise it claims none.
func (s *Store) ClaimNotifications(ctx context.Context, id uuid.UUID, claim time.Duration, limit int) (all []network.AgentNotification, err error) {
	err = s.inTx(ctx, func(tx *transaction) error {
		all, err = db.QueryAll(ctx, tx, pgx.RowToStructByName[network.AgentNotification], notificationSelect+` for update`, id, limit)
		if err != nil || slices.ContainsFunc(all, func(a network.AgentNotification) bool { return a.Claimed }) {
			return err
		}
		ids := make([]int64, len(all))
		for i, a := range all {
			ids[i] = a.ID
		}
		_, err = tx.Exec(ctx, `update announcement set claimed_until = clock_timestamp() + $2::interval where id = any($1)`, ids, claim)
		return err
	})
	return all, err
}
