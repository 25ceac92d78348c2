package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"

	"berth/internal/lease"
	"berth/internal/notify"
)

// noticesAtOnce is how many notices are read together.
const noticesAtOnce = 100

// Listener is who is told about leases.
type Listener interface {
	Send(ctx context.Context, m notify.Notification) error
}

// TellLease brings out what is recorded about a lease, oldest first, until nothing is left. World first, row second:
// those who listen may hear a message twice, under the same ID, and never miss one.
func (a *Activities) TellLease(ctx context.Context, key string) error {
	defer alive(ctx)()
	id, err := uuidOf(key)
	if err != nil {
		return err
	}
	for {
		notices, err := a.Store.LeaseNotices(ctx, id, noticesAtOnce)
		if err != nil || len(notices) == 0 {
			return verdict(err)
		}
		told, err := a.tell(ctx, notices)
		if err := errors.Join(a.Store.SettleLeaseNotices(context.WithoutCancel(ctx), told), err); err != nil {
			return verdict(err)
		}
	}
}

// tell sends notices in their order and returns those that need not be sent again. One that is refused for good is
// left behind, because the next ones must not wait for it.
func (a *Activities) tell(ctx context.Context, notices []lease.Notice) (told []int64, err error) {
	for _, n := range notices {
		if a.Enforcement != nil && n.Ends() {
			a.Enforcement.Notify(ctx, "on-end", notify.EnforcementRequest{User: n.Lease.User, Project: n.Lease.Project, Lease: payloadOf(n.Lease)})
		}
		err := a.Webhook.Send(ctx, messageOf(n))
		if errors.Is(err, notify.ErrRejected) {
			activity.GetLogger(ctx).Error("the webhook will never take this notice", "lease", n.Lease.ID, "kind", n.Kind, "message", n.Message, "error", err)
			err = nil
		}
		if err != nil {
			return told, err
		}
		told = append(told, n.ID)
	}
	return told, nil
}

// publisher is who speaks of leases, as Blazar calls itself.
const publisher = "blazar.lease"

func messageOf(n lease.Notice) notify.Notification {
	return notify.Notification{ID: n.Message.String(), Publisher: publisher, Type: n.Kind, At: n.At, Payload: payloadOf(n.Lease)}
}

// leasePayload is a lease as Blazar's notifications show one. trust_id is always null: berth acts with its own
// credentials.
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
	p := leasePayload{ID: l.ID.String(), Name: l.Name, User: l.User, Project: l.Project, Start: dated(l.StartAt), End: dated(l.EndAt),
		Status: l.Status, Degraded: l.Degraded, Created: dated(l.CreatedAt), Reservations: []reservationPayload{}, Events: []eventPayload{}}
	if l.UpdatedAt != nil {
		at := dated(*l.UpdatedAt)
		p.Updated = &at
	}
	for _, r := range l.Reservations {
		p.Reservations = append(p.Reservations, reservationPayload{ID: r.ID.String(), Type: r.Type, Status: r.Status,
			MissingResources: r.MissingResources, ResourcesChanged: r.ResourcesChanged, LastError: r.LastError})
	}
	for _, e := range l.Events {
		p.Events = append(p.Events, eventPayload{ID: e.ID.String(), Type: e.Type, Time: dated(e.At), Status: e.Status})
	}
	return p
}

// dated writes a date as Blazar does: UTC, without a zone.
func dated(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000") }
