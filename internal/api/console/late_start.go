package console

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
)

// lateStart is a lease that starts late on a host, and the reason.
type lateStart struct {
	Lease  uuid.UUID
	Name   string
	Host   leasestore.CalendarHost
	Reason string
	// Holder is the lease that should have left the host; nil: no other lease is to blame
	Holder *leasestore.Booking
}

// lateStarts returns the leases that have not started although their time has come, and the next lease of
// each host that an earlier lease, whose end is overdue, still holds.
func lateStarts(hosts []leasestore.CalendarHost, now time.Time) (all []lateStart) {
	for _, h := range hosts {
		var holder *leasestore.Booking
		for i, b := range h.Bookings { // sorted by start
			if b.Status != lease.Pending && b.Status != lease.Starting {
				if isOverdueHolder(b, now) {
					holder = &h.Bookings[i]
				}
				continue
			}
			late := lateStart{Lease: b.Lease, Name: b.Name, Host: h, Holder: holder}
			switch {
			case now.Sub(b.Start) > lease.OverdueAfter:
				late.Reason = fmt.Sprintf("its start is overdue since %s", utc(b.Start))
			case holder != nil:
				late.Reason = fmt.Sprintf("it starts at %s", utc(b.Start))
			default:
				continue
			}
			all, holder = append(all, late), nil
		}
	}
	return all
}

// isOverdueHolder reports whether the lease of a booking still has the host although its end has passed. A
// lease with the status ERROR keeps a whole host until its resources are removed, and an instance reservation
// of such a lease does not keep other instances from the host.
func isOverdueHolder(b leasestore.Booking, now time.Time) bool {
	switch {
	case b.Status == lease.Pending || b.Status == lease.Terminated:
		return false
	case b.Status == lease.Error && b.Type != lease.PhysicalHost:
		return false
	}
	return now.Sub(b.End) > lease.OverdueAfter
}
