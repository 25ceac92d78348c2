package leasestore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// notificationSet is the state of a lease, with the types of the notifications that are to be stored about
// the lease.
type notificationSet struct {
	lease.Lease
	types []string
}

// enqueueNotifications stores lease notifications in the caller's transaction and nudges the workflows that
// deliver them. If the configuration does not enable lease notifications, enqueueNotifications does nothing.
func enqueueNotifications(ctx context.Context, tx *transaction, all ...notificationSet) error {
	if !tx.config.Notifications {
		return nil
	}
	batch, nudges := &pgx.Batch{}, []contract.Nudge{}
	for _, n := range all {
		if len(n.types) == 0 {
			continue
		}
		snapshot, err := json.Marshal(n.ForNotification())
		if err != nil {
			return fmt.Errorf("encode notification of lease %s: %w", n.ID, err)
		}
		for _, kind := range n.types {
			batch.Queue(`
				insert into lease_notification (lease_id, message_id, kind, lease)
				values ($1, $2, $3, $4)`, n.ID, uuid.New(), kind, snapshot)
			if lease.IsRepeatable(kind) {
				queueOldNotifications(batch, n.ID, kind)
			}
		}
		nudges = append(nudges, contract.Nudge{
			Workflow:   contract.Webhook,
			ID:         contract.WebhookID(n.ID.String()),
			NotRunning: n.types[0] == lease.NotificationCreate,
			Summary:    "webhooks of lease " + n.Name,
			Attributes: contract.Attributes{Project: n.Project, Resource: "webhook"},
		})
	}
	if len(nudges) == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("store lease notifications: %w", err)
	}
	return outbox.Enqueue(ctx, tx, nudges...)
}

// maxUnsentRepeats is the maximum number of unsent notifications of one lease and one type that a client can
// cause any number of times. While the receiver is down, a client can update a lease, and move its
// before_end_lease event, any number of times. Each notification contains the state of the lease, so the
// newest ones are enough. The other types follow from the life cycle of the lease, and are all kept.
const maxUnsentRepeats = 100

// queueOldNotifications deletes the oldest unsent notifications of one type about a lease if there are too
// many. It skips those that were sent and are being deleted.
func queueOldNotifications(batch *pgx.Batch, id uuid.UUID, kind string) {
	batch.Queue(`
		with old as (
			select id
			from lease_notification
			where lease_id = $1 and kind = $2
			order by id desc
			offset $3),
		locked as (
			select n.id
			from lease_notification n
			join old on old.id = n.id
			for update of n skip locked)
		delete from lease_notification
		where id in (select id from locked)`, id, kind, maxUnsentRepeats)
}

// LeaseNotifications returns at most `limit` undelivered notifications of a lease, oldest first.
func (s *Store) LeaseNotifications(
	ctx context.Context,
	id uuid.UUID,
	limit int,
) ([]lease.Notification, error) {
	all, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[lease.Notification], `
		select id, message_id, kind, at, lease
		from lease_notification
		where lease_id = $1
		order by id
		limit $2`, id, limit)
	if err != nil {
		return nil, fmt.Errorf("read notifications of lease %s: %w", id, err)
	}
	return all, nil
}

// DeleteLeaseNotifications deletes the notifications with the given IDs, after their delivery. If no
// notification has a given ID, DeleteLeaseNotifications ignores the ID.
func (s *Store) DeleteLeaseNotifications(ctx context.Context, ids []int64) error {
	if _, err := s.db.Exec(ctx, `delete from lease_notification where id = any($1)`, ids); err != nil {
		return fmt.Errorf("delete lease notifications: %w", err)
	}
	return nil
}
