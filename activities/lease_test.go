package activities_test

import (
	"testing"
	"time"

	"berth/activities"
	"berth/internal/lease"
	"berth/internal/store/storetest"
)

func TestOperatorDecidesWhatReservationsLeaveOpen(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	l := leaseAt(t, s, time.Now().Add(time.Hour))
	for _, c := range []struct {
		asked    string
		snapshot bool
		want     string
	}{{"default", false, "default"}, {"default", true, "snapshot"}, {"", true, ""}, {"snapshot", false, "snapshot"}} {
		if _, err := s.UpdateLease(t.Context(), l.ID, lease.Change{Reservations: []lease.ReservationChange{{ID: l.Reservations[0].ID.String(), BeforeEnd: &c.asked}}}); err != nil {
			t.Fatal(err)
		}
		acts := activities.New(activities.Options{Store: s, Snapshot: c.snapshot, Patience: time.Minute})
		got, err := acts.Lease(t.Context(), l.ID.String())
		if err != nil || got.Reservations[0].BeforeEnd != c.want || got.Patience != time.Minute {
			t.Errorf("%q where snapshots are made by default (%t): %+v, %v", c.asked, c.snapshot, got.Reservations[0].BeforeEnd, err)
		}
	}
}
