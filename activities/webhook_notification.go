package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"

	"berth/internal/delivery"
	"berth/internal/lease"
	"berth/internal/notify"
)

// noticeBatch is the maximum number of lease notifications that one query reads.
const noticeBatch = 100

// NotificationSender sends notifications of leases.
type NotificationSender interface {
	Send(ctx context.Context, m notify.Notification) error
}

// NotifyWebhook sends the recorded notifications of a lease, oldest first, until no notification is left. NotifyWebhook sends a
// notification before it deletes the notification's row. A crash may therefore cause NotifyWebhook to send a notification twice with the
// same ID, but never to lose a notification.
func (a *Activities) NotifyWebhook(ctx context.Context, key string) error {
	defer startHeartbeat(ctx)()
	id, err := parseUUID(key)
	if err != nil {
		return err
	}
	for {
		notices, err := a.Store.Lease.LeaseNotifications(ctx, id, noticeBatch)
		if err != nil || len(notices) == 0 {
			return classify(err)
		}
		sent, err := a.sendNotices(ctx, notices)
		if err := errors.Join(a.Store.Lease.DeleteLeaseNotifications(context.WithoutCancel(ctx), sent), err); err != nil {
			return classify(err)
		}
	}
}

// sendNotices sends notifications in order. sendNotices returns the IDs of the notifications that need no
// further attempt, because the webhook has accepted them or rejected them permanently. sendNotices drops a
// permanently rejected notification, because the later notifications of the lease would otherwise wait forever.
func (a *Activities) sendNotices(ctx context.Context, notices []lease.Notification) (sent []int64, err error) {
	for _, n := range notices {
		if a.Enforcement != nil && n.ReleasesResources() {
			a.Enforcement.Notify(ctx, "on-end", notify.EnforcementRequest{User: n.Lease.User, Project: n.Lease.Project, Lease: payloadOf(n.Lease)})
		}
		if ctx.Err() != nil {
			return sent, ctx.Err()
		}
		err := a.sendNotice(ctx, n)
		if errors.Is(err, notify.ErrRejected) {
			activity.GetLogger(ctx).Error("the webhook permanently rejected a notification; the notification is dropped", "lease", n.Lease.ID, "kind", n.Kind, "message", n.MessageID, "error", err)
			err = nil
		}
		if err != nil {
			return sent, err
		}
		sent = append(sent, n.ID)
	}
	return sent, nil
}

func (a *Activities) sendNotice(ctx context.Context, n lease.Notification) error {
	ctx, stop := delivery.IgnoreCancellation(ctx)
	defer stop()
	return a.Webhook.Send(ctx, messageOf(n))
}

// publisher is the publisher ID of Blazar's notifications.
const publisher = "blazar.lease"

func messageOf(n lease.Notification) notify.Notification {
	return notify.Notification{ID: n.MessageID.String(), Publisher: publisher, Type: n.Kind, At: n.At, Payload: payloadOf(n.Lease)}
}

// leasePayload is the payload of Blazar's lease notifications. The field trust_id is always null, because berth uses its own credentials
// instead of a Keystone trust.
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
	p := leasePayload{ID: l.ID.String(), Name: l.Name, User: l.User, Project: l.Project, Start: formatDate(l.StartAt), End: formatDate(l.EndAt),
		Status: l.Status, Degraded: l.Degraded, Created: formatDate(l.CreatedAt), Reservations: []reservationPayload{}, Events: []eventPayload{}}
	if l.UpdatedAt != nil {
		at := formatDate(*l.UpdatedAt)
		p.Updated = &at
	}
	for _, r := range l.Reservations {
		p.Reservations = append(p.Reservations, reservationPayload{ID: r.ID.String(), Type: r.Type, Status: r.Status,
			MissingResources: r.MissingResources, ResourcesChanged: r.ResourcesChanged, LastError: r.LastError})
	}
	for _, e := range l.Events {
		p.Events = append(p.Events, eventPayload{ID: e.ID.String(), Type: e.Type, Time: formatDate(e.At), Status: e.Status})
	}
	return p
}

// formatDate formats a time as Blazar does: in UTC, without a time zone.
func formatDate(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000") }
