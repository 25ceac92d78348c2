package lease

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Types of lease notifications. If Blazar has the same notification, berth uses the name that Blazar uses.
// The suffix of a notification type says whether a step of the lease begins or has failed.
const (
	NotificationCreate           = "lease.create"
	NotificationUpdate           = "lease.update"
	NotificationDelete           = "lease.delete" // after the deletion
	NotificationHealth           = "lease.health" // a reservation lost, changed or regained resources
	NotificationBeforeEndRearmed = "lease.event.before_end_lease.stop"

	eventPrefix = "lease.event."
	beginSuffix = ".begin"
	errorSuffix = ".error"
)

// Notification is one lease notification.
type Notification struct {
	ID        int64
	MessageID uuid.UUID // message ID, the same for every delivery
	Kind      string
	At        time.Time
	Lease     Lease // state of the lease when the notification was created
}

// ForNotification returns the lease with what a notification says about its reservations. Each change of a
// lease stores a notification, so the requirements of the reservations, of up to 4 KiB each, are left out.
func (l Lease) ForNotification() Lease {
	all := make([]Reservation, len(l.Reservations))
	for i, r := range l.Reservations {
		all[i] = Reservation{
			ReservationDraft: ReservationDraft{Type: r.Type},
			ID:               r.ID,
			Status:           r.Status,
			MissingResources: r.MissingResources,
			ResourcesChanged: r.ResourcesChanged,
			LastError:        r.LastError,
		}
	}
	l.Reservations, l.Blockers = all, nil
	return l
}

// ReleasesResources reports whether the notification says that the lease releases its resources, because the
// lease begins to end or was deleted before its end.
func (n Notification) ReleasesResources() bool {
	end := n.Lease.event(EndLease)
	return n.Kind == eventPrefix+string(EndLease)+beginSuffix ||
		n.Kind == NotificationDelete && end != nil && end.Status == EventUndone
}

// IsRepeatable reports whether a client can cause notifications of the type any number of times for one
// lease: by updates, or by later dates of the before_end_lease event.
func IsRepeatable(kind string) bool {
	return kind == NotificationUpdate || strings.HasPrefix(kind, eventPrefix+string(BeforeEndLease))
}

// NotificationsFor returns the types of the notifications to send for the change of a lease from `was` to
// `is`, in order. If the status of `was` is empty, the lease has just been created.
func NotificationsFor(was, is Lease) []string {
	switch {
	case was.Status == "":
		return []string{NotificationCreate}
	case was.Status != is.Status:
		return transitionNotifications(was.Status, is.Status)
	}
	var kinds []string
	if changedByClient(was, is) {
		kinds = append(kinds, NotificationUpdate)
	}
	if healthChanged(was, is) {
		kinds = append(kinds, NotificationHealth)
	}
	old, now := was.event(BeforeEndLease), is.event(BeforeEndLease)
	if old == nil || now == nil || old.Status == now.Status {
		return kinds
	}
	switch now.Status {
	case EventUndone:
		return append(kinds, NotificationBeforeEndRearmed)
	case EventDone:
		return append(kinds, eventPrefix+string(BeforeEndLease))
	case EventFailed:
		return append(kinds, eventPrefix+string(BeforeEndLease)+errorSuffix)
	}
	return kinds
}

// transitionNotifications returns the notification types for a change of the lease's status.
func transitionNotifications(from, to Status) []string {
	start, end := eventPrefix+string(StartLease), eventPrefix+string(EndLease)
	switch {
	case to == Starting:
		return []string{start + beginSuffix}
	case from == Starting && to == Active:
		return []string{start}
	case from == Starting && to == Error:
		return []string{start + errorSuffix}
	case to == Terminating:
		return []string{end + beginSuffix}
	case from == Terminating && to == Terminated:
		return []string{end}
	case from == Terminating && to == Error:
		return []string{end + errorSuffix}
	case to == Deleting:
		return []string{NotificationDelete + beginSuffix}
	}
	return []string{NotificationUpdate}
}

// changedByClient reports whether the change comes from an update request: the name, a date or the request of
// a reservation differs.
func changedByClient(was, is Lease) bool {
	if was.Name != is.Name || !was.StartAt.Equal(is.StartAt) || !was.EndAt.Equal(is.EndAt) {
		return true
	}
	old, now := was.event(BeforeEndLease), is.event(BeforeEndLease)
	return old != nil && now != nil && !old.At.Equal(now.At) ||
		slices.ContainsFunc(reservationPairs(was, is), reservationPair.draftChanged)
}

// healthChanged reports whether the lease's health flag Degraded changed, or a reservation's health flag
// MissingResources or ResourcesChanged.
func healthChanged(was, is Lease) bool {
	return was.Degraded != is.Degraded ||
		slices.ContainsFunc(reservationPairs(was, is), func(p reservationPair) bool {
			return p.was.MissingResources != p.is.MissingResources ||
				p.was.ResourcesChanged != p.is.ResourcesChanged
		})
}

// reservationPair is a reservation before and after a change.
type reservationPair struct{ was, is Reservation }

func reservationPairs(was, is Lease) []reservationPair {
	all := make([]reservationPair, 0, len(is.Reservations))
	for i, r := range is.Reservations {
		if i < len(was.Reservations) {
			all = append(all, reservationPair{was.Reservations[i], r})
		}
	}
	return all
}

func (p reservationPair) draftChanged() bool {
	return !reflect.DeepEqual(p.was.ReservationDraft, p.is.ReservationDraft)
}
