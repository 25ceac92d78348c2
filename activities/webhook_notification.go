package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"berth/internal/delivery"
	"berth/internal/lease"
	"berth/internal/notify"
)

// noticeBatch is the maximum number of notifications that one query reads.
const noticeBatch = 100

// NotificationSender sends notifications.
type NotificationSender interface {
	Send(ctx context.Context, m notify.Notification) error
}

// recordedNotification is a notification in the store.
type recordedNotification struct {
	row     int64
	message notify.Notification
	before  func(context.Context) // called before each attempt to send the notification; can be nil
}

// NotifyWebhook sends the recorded notifications of a lease, a port or a trunk, oldest first, until no
// notification is left. NotifyWebhook sends a notification before it deletes the notification's row. A crash
// may therefore cause NotifyWebhook to send a notification twice with the same ID, but never to lose a
// notification.
func (a *Activities) NotifyWebhook(ctx context.Context, key string) error {
	defer startHeartbeat(ctx)()
	id, err := parseUUID(key)
	if err != nil {
		return err
	}
	if err := sendRecorded(
		ctx,
		a.Webhook,
		a.leaseSends,
		func() ([]recordedNotification, error) { return a.leaseNotifications(ctx, id) },
		a.Store.Lease.DeleteLeaseNotifications,
	); err != nil {
		return classify(err)
	}
	return classify(sendRecorded(
		ctx,
		a.ProvisioningWebhook,
		a.provisioningSends,
		func() ([]recordedNotification, error) { return a.provisioningNotifications(ctx, id) },
		a.Store.Notifications.DeleteProvisioningNotifications,
	))
}

func (a *Activities) leaseNotifications(ctx context.Context, id uuid.UUID) ([]recordedNotification, error) {
	notices, err := a.Store.Lease.LeaseNotifications(ctx, id, noticeBatch)
	all := make([]recordedNotification, len(notices))
	for i, n := range notices {
		all[i] = recordedNotification{row: n.ID, message: messageOf(n)}
		if a.Enforcement != nil && n.ReleasesResources() {
			all[i].before = func(ctx context.Context) {
				a.Enforcement.Notify(ctx, "on-end", notify.EnforcementRequest{
					User:    n.Lease.User,
					Project: n.Lease.Project,
					Lease:   payloadOf(n.Lease),
				})
			}
		}
	}
	return all, err
}

func (a *Activities) provisioningNotifications(
	ctx context.Context,
	id uuid.UUID,
) ([]recordedNotification, error) {
	notices, err := a.Store.Notifications.ProvisioningNotifications(ctx, id, noticeBatch)
	all := make([]recordedNotification, len(notices))
	for i, n := range notices {
		all[i] = recordedNotification{
			row: n.ID,
			message: notify.Notification{
				ID:        n.MessageID.String(),
				Publisher: provisioningPublisher,
				Type:      n.Notification.Type(),
				At:        n.At,
				Payload:   n.Notification,
			},
		}
	}
	return all, err
}

// MaxWebhookSends is the maximum number of objects whose notifications a process sends to one webhook at the
// same time. A send to a receiver that does not answer lasts until the timeout of the call, and a tenant can
// have any number of leases with notifications. So the sends must keep only a small part of the slots of the
// worker, which the steps of leases need too: of 1,000 with the default pool. A receiver that answers within
// 20 ms gets up to 3,000 notifications per second.
const MaxWebhookSends = 64

// sendSlots contains one element for each object whose notifications are sent to a webhook.
type sendSlots chan struct{}

// use calls f in a slot. If no slot is free, use does not wait, because a waiting activity would keep a slot
// of the worker; use then returns an error that makes Temporal retry the activity later.
func (s sendSlots) use(ctx context.Context, f func() error) error {
	select {
	case s <- struct{}{}:
		defer func() { <-s }()
		return f()
	default:
		return temporal.NewApplicationErrorWithOptions(
			fmt.Sprintf("%d other objects wait for the webhook receiver to answer", cap(s)),
			retryRequested,
			temporal.ApplicationErrorOptions{
				NextRetryDelay: min(time.Duration(activity.GetInfo(ctx).Attempt)*time.Second, maxWebhookPause),
				Category:       temporal.ApplicationErrorCategoryBenign,
			},
		)
	}
}

// maxWebhookPause is the maximum time before the next attempt of an activity that has found no free slot. The
// time grows by a second with each attempt.
const maxWebhookPause = 30 * time.Second

// sendRecorded sends the notifications that `read` returns, and deletes them, until `read` returns none.
func sendRecorded(
	ctx context.Context,
	to NotificationSender,
	slots sendSlots,
	read func() ([]recordedNotification, error),
	remove func(context.Context, []int64) error,
) error {
	for {
		all, err := read()
		if err != nil || len(all) == 0 {
			return err
		}
		err = slots.use(ctx, func() error {
			sent, err := sendInOrder(ctx, to, all)
			return errors.Join(remove(context.WithoutCancel(ctx), sent), err)
		})
		if err != nil {
			return err
		}
	}
}

// sendInOrder sends notifications in order. sendInOrder returns the IDs of the rows of the notifications that
// need no further attempt, because the webhook has accepted them or rejected them permanently. sendInOrder
// drops a permanently rejected notification, because the later notifications of the object would otherwise
// wait forever.
func sendInOrder(
	ctx context.Context,
	to NotificationSender,
	all []recordedNotification,
) (sent []int64, err error) {
	for _, n := range all {
		if n.before != nil {
			n.before(ctx)
		}
		if ctx.Err() != nil {
			return sent, ctx.Err()
		}
		err := sendOnce(ctx, to, n.message)
		if errors.Is(err, notify.ErrRejected) {
			activity.GetLogger(ctx).
				Error("the webhook permanently rejected a notification; the notification is dropped",
					"workflow", activity.GetInfo(ctx).WorkflowExecution.ID, "kind", n.message.Type, "message", n.message.ID, "error", err)
			err = nil
		}
		if err != nil {
			return sent, err
		}
		sent = append(sent, n.row)
	}
	return sent, nil
}

func sendOnce(ctx context.Context, to NotificationSender, m notify.Notification) error {
	ctx, stop := delivery.IgnoreCancellation(ctx)
	defer stop()
	return to.Send(ctx, m)
}

// provisioningPublisher is the publisher ID of provisioning notifications.
const provisioningPublisher = "berth.network"

// publisher is the publisher ID of Blazar's notifications.
const publisher = "blazar.lease"

func messageOf(n lease.Notification) notify.Notification {
	return notify.Notification{
		ID:        n.MessageID.String(),
		Publisher: publisher,
		Type:      n.Kind,
		At:        n.At,
		Payload:   payloadOf(n.Lease),
	}
}

// leasePayload is the payload of Blazar's lease notifications. The field trust_id is always null, because
// berth uses its own credentials instead of a Keystone trust.
type leasePayload struct {
	ID           string               `json:"lease_id"`
	Name         string               `json:"name"`
	User         string               `json:"user_id"`
	Project      string               `json:"project_id"`
	Trust        *string              `json:"trust_id"`
	Start        string               `json:"start_date"`
	End          string               `json:"end_date"`
	Status       lease.Status         `json:"status"`
	Degraded     bool                 `json:"degraded"`
	Created      string               `json:"created_at"`
	Updated      *string              `json:"updated_at"`
	Reservations []reservationPayload `json:"reservations"`
	Events       []eventPayload       `json:"events"`
}

type reservationPayload struct {
	ID               string                  `json:"id"`
	Type             string                  `json:"resource_type"`
	Status           lease.ReservationStatus `json:"status"`
	MissingResources bool                    `json:"missing_resources"`
	ResourcesChanged bool                    `json:"resources_changed"`
	LastError        string                  `json:"last_error,omitempty"`
}

type eventPayload struct {
	ID     string            `json:"id"`
	Type   lease.EventType   `json:"event_type"`
	Time   string            `json:"time"`
	Status lease.EventStatus `json:"status"`
}

func payloadOf(l lease.Lease) leasePayload {
	p := leasePayload{
		ID:           l.ID.String(),
		Name:         l.Name,
		User:         l.User,
		Project:      l.Project,
		Start:        formatDate(l.StartAt),
		End:          formatDate(l.EndAt),
		Status:       l.Status,
		Degraded:     l.Degraded,
		Created:      formatDate(l.CreatedAt),
		Reservations: []reservationPayload{},
		Events:       []eventPayload{},
	}
	if l.UpdatedAt != nil {
		at := formatDate(*l.UpdatedAt)
		p.Updated = &at
	}
	for _, r := range l.Reservations {
		p.Reservations = append(p.Reservations, reservationPayload{
			ID:               r.ID.String(),
			Type:             r.Type,
			Status:           r.Status,
			MissingResources: r.MissingResources,
			ResourcesChanged: r.ResourcesChanged,
			LastError:        r.LastError,
		})
	}
	for _, e := range l.Events {
		p.Events = append(p.Events, eventPayload{
			ID:     e.ID.String(),
			Type:   e.Type,
			Time:   formatDate(e.At),
			Status: e.Status,
		})
	}
	return p
}

// formatDate formats a time as Blazar does: in UTC, without a time zone.
func formatDate(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000") }
