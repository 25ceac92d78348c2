package activities_test

import (
	"testing"
	"time"

	"berth/activities"
	"berth/internal/lease"
	"berth/internal/odl"
	"berth/internal/store"
)

// newActivities returns activities whose time limits cannot be reached in a test, even on a slow machine. A
// test of a time limit sets the field of the limit in Timeouts.
func newActivities(o activities.Options) *activities.Activities {
	o.Timeouts = activities.Timeouts{
		ShortCall:  time.Hour,
		LongCall:   3 * time.Hour,
		CloudCall:  time.Hour,
		Round:      time.Hour,
		Record:     time.Hour,
		LoadLeases: time.Hour,
		Advance:    time.Hour,
		Expire:     time.Hour,
		Drain:      time.Hour,
		Trim:       time.Hour,
		Leftovers:  time.Hour,
	}
	return activities.New(o)
}

// newClient returns a client of the controller with the given URL. The timeouts of the client cannot be
// reached in a test.
func newClient(url string) (*odl.Client, error) {
	return odl.New(odl.Config{URL: url, Timeout: time.Hour, SharedTimeout: time.Hour})
}

// createOneHourLease creates a lease of one hour.
func createOneHourLease(
	t *testing.T,
	s *store.Store,
	name, project string,
	start time.Time,
	reservations ...lease.ReservationDraft,
) lease.Lease {
	t.Helper()
	l, err := s.Lease.CreateLease(t.Context(), lease.Draft{
		Name:         name,
		User:         "u",
		Project:      project,
		Start:        lease.RequestedDate{At: start},
		End:          lease.RequestedDate{At: start.Add(time.Hour)},
		Reservations: reservations,
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
