package notificationstore

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// ProvisioningNotification is an undelivered notification that nothing blocks a port or a trunk any more.
type ProvisioningNotification struct {
	ID           int64
	MessageID    uuid.UUID // stays the same when the notification is sent again
	At           time.Time
	Notification network.ProvisioningNotification
}

// AppendProvisioning records a provisioning notification in the caller's transaction, and enqueues a note for
// the workflow that sends it to the webhook.
func AppendProvisioning(ctx context.Context, tx db.Tx, n network.ProvisioningNotification) error {
	if _, err := tx.Exec(ctx, `insert into provisioning_notification (object_id, notification) values ($1, $2)`, n.ObjectID, n); err != nil {
		return fmt.Errorf("record provisioning notification: %w", err)
	}
	return outbox.Enqueue(ctx, tx, contract.Nudge{
		Workflow:   contract.Webhook,
		ID:         contract.WebhookID(n.ObjectID.String()),
		Summary:    "webhooks of " + n.ObjectType + " " + n.ObjectID.String(),
		Attributes: contract.Attributes{Project: n.Project, Resource: "webhook"},
	})
}

// ProvisioningNotifications lists at most `limit` undelivered notifications of a port or trunk, oldest first.
func (s *Store) ProvisioningNotifications(
	ctx context.Context,
	object uuid.UUID,
	limit int,
) ([]ProvisioningNotification, error) {
	all, err := db.QueryAll(ctx, s.db, pgx.RowToStructByName[ProvisioningNotification], `
		select id, message_id, at, notification
		from provisioning_notification
		where object_id = $1
		order by id
		limit $2`, object, limit)
	if err != nil {
		return nil, fmt.Errorf("read provisioning notifications of %s: %w", object, err)
	}
	return all, nil
}

// DeleteProvisioningNotifications deletes the notifications with the given IDs, after their delivery.
// DeleteProvisioningNotifications ignores IDs of notifications that do not exist.
func (s *Store) DeleteProvisioningNotifications(ctx context.Context, ids []int64) error {
	if _, err := s.db.Exec(ctx, `delete from provisioning_notification where id = any($1)`, ids); err != nil {
		return fmt.Errorf("delete provisioning notifications: %w", err)
	}
	return nil
}
