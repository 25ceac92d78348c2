package lease

import (
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Kinds of notices: what others are told about a lease. The names are Blazar's where Blazar has one; a step that
// begins or fails has its name with a suffix.
const (
	NoticeCreate  = "lease.create"
	NoticeUpdate  = "lease.update"
	NoticeDelete  = "lease.delete" // it is gone
	NoticeHealth  = "lease.health" // a reservation lost, changed or got back resources
	NoticeRearmed = "lease.event.before_end_lease.stop"

	noticeEvent = "lease.event."
	begun       = ".begin"
	failure     = ".error"
)

// Notice is one thing that others are told about a lease.
type Notice struct {
	ID      int64
	Message uuid.UUID // the same however often it is sent
	Kind    string
	At      time.Time
	Lease   Lease // as it was then
}

// Ends tells whether the lease gives back what it has with this: it ends, or is deleted before its end.
func (n Notice) Ends() bool {
	end := n.Lease.event(EndLease)
	return n.Kind == noticeEvent+string(EndLease)+begun || n.Kind == NoticeDelete && end != nil && end.Status == Undone
}

// Notices are what the change of a lease means to those who listen, in their order. A lease without a status did not
// exist before.
func Notices(was, is Lease) []string {
	switch {
	case was.Status == "":
		return []string{NoticeCreate}
	case was.Status != is.Status:
		return transitionNotice(was.Status, is.Status)
	}
	var kinds []string
	if renewed(was, is) {
		kinds = append(kinds, NoticeUpdate)
	}
	if wounded(was, is) {
		kinds = append(kinds, NoticeHealth)
	}
	old, now := was.event(BeforeEndLease), is.event(BeforeEndLease)
	if old == nil || now == nil || old.Status == now.Status {
		return kinds
	}
	switch now.Status {
	case Undone:
		return append(kinds, NoticeRearmed)
	case Done:
		return append(kinds, noticeEvent+string(BeforeEndLease))
	case Failed:
		return append(kinds, noticeEvent+string(BeforeEndLease)+failure)
	}
	return kinds
}

// transitionNotice is the one notice of a change of status.
func transitionNotice(from, to Status) []string {
	start, end := noticeEvent+string(StartLease), noticeEvent+string(EndLease)
	switch {
	case to == Starting:
		return []string{start + begun}
	case from == Starting && to == Active:
		return []string{start}
	case from == Starting && to == Error:
		return []string{start + failure}
	case to == Terminating:
		return []string{end + begun}
	case from == Terminating && to == Terminated:
		return []string{end}
	case from == Terminating && to == Error:
		return []string{end + failure}
	case to == Deleting:
		return []string{NoticeDelete + begun}
	}
	return []string{NoticeUpdate}
}

// renewed tells whether a client changed the lease.
func renewed(was, is Lease) bool {
	if was.Name != is.Name || !was.StartAt.Equal(is.StartAt) || !was.EndAt.Equal(is.EndAt) {
		return true
	}
	old, now := was.event(BeforeEndLease), is.event(BeforeEndLease)
	return old != nil && now != nil && !old.At.Equal(now.At) || slices.ContainsFunc(pairs(was, is), pair.renewed)
}

// wounded tells whether the health of a reservation changed.
func wounded(was, is Lease) bool {
	return was.Degraded != is.Degraded || slices.ContainsFunc(pairs(was, is), func(p pair) bool {
		return p.was.MissingResources != p.is.MissingResources || p.was.ResourcesChanged != p.is.ResourcesChanged
	})
}

// pair is a reservation before and after a change.
type pair struct{ was, is Reservation }

func pairs(was, is Lease) []pair {
	all := make([]pair, 0, len(is.Reservations))
	for i, r := range is.Reservations {
		if i < len(was.Reservations) {
			all = append(all, pair{was.Reservations[i], r})
		}
	}
	return all
}

func (p pair) renewed() bool {
	return !reflect.DeepEqual(p.was.ReservationDraft, p.is.ReservationDraft)
}
