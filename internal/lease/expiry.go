package lease

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// hasStuckBlocker reports whether another lease holds a host that the lease needs, and it is unknown for how
// long.
func (l Lease) hasStuckBlocker() bool {
	return slices.ContainsFunc(l.Blockers, func(b Blocker) bool { return b.Stuck })
}

// expiryReason is the beginning of the reason why a lease could not start before its end.
const expiryReason = "the lease could not start before its end, because "

// Expire changes a PENDING lease that could not start before its end, because other leases still held its
// hosts: the start has failed, so the lease, its start_lease and end_lease events and its reservations get
// the status ERROR. Nothing has to be cleared in Nova and Neutron, because the lease has never started.
// Expire returns ErrTransition if the lease is not PENDING, if its end has not been reached, or if no stuck
// lease (see Blocker.Stuck) blocks it.
func Expire(l Lease, now time.Time) (Lease, error) {
	l = l.clone()
	start, end := l.event(StartLease), l.event(EndLease)
	if l.DeleteRequested || l.Status != Pending || start == nil || end == nil || !l.hasStuckBlocker() ||
		now.Before(end.At) {
		return l, transitionError(l, StepExpire)
	}
	var reasons []string
	for _, b := range l.Blockers {
		b = b.WithoutHost() // the project of the lease reads the reasons
		if b.Project != l.Project {
			b = b.Anonymous()
		}
		if b.Stuck {
			reasons = append(reasons, fmt.Sprintf("%s held %s", b.label(), b.resourceLabel()))
		}
	}
	start.Status, end.Status = EventFailed, EventFailed
	reason := expiryReason + strings.Join(reasons, " and ")
	for i := range l.Reservations {
		r := &l.Reservations[i]
		r.Status, r.LastError = ReservationError, reason
		r.Hosts, r.Slots, r.Addresses, r.ResourceIDs = nil, nil, nil, nil
	}
	l.Status = Error
	return l, CheckStatus(l)
}
