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

// LatePorts lists at most `limit` ports that have unclaimed Nova events older than `age`, and whose workflow has a note that
// Temporal has not accepted yet. The port with the oldest event comes first.
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

// ClaimNovaEvents lists the undelivered Nova events of a port, oldest first. If none of the listed events is claimed, ClaimNovaEvents
// claims all of them for the duration `claim`; otherwise it claims none.
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
