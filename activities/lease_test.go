package activities_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/activities"
	"berth/internal/lease"
	"berth/internal/store/storetest"
)

func TestReadLease_AppliesOperatorSettings(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	l := createLease(t, s)
	for _, c := range []struct {
		requested         string
		snapshotByDefault bool
		want              string
	}{{"default", false, "default"}, {"default", true, "snapshot"}, {"", true, ""}, {"snapshot", false, "snapshot"}} {
		if _, err := s.Lease.UpdateLease(t.Context(), l.ID, lease.Change{Reservations: []lease.ReservationChange{{ID: l.Reservations[0].ID.String(), BeforeEnd: &c.requested}}}); err != nil {
			t.Fatal(err)
		}
		acts := newActivities(
			activities.Options{Store: s, SnapshotByDefault: c.snapshotByDefault, CloudRetryTime: time.Minute},
		)
		got, err := acts.ReadLease(t.Context(), l.ID.String())
		// fields that no step needs are empty
		want := lease.ReservationDraft{
			Type:      lease.PhysicalHost,
			BeforeEnd: c.want,
		}
		if d := cmp.Diff(want, got.Reservations[0].ReservationDraft); d != "" || err != nil ||
			got.CloudRetryTime != time.Minute {
			t.Errorf(
				"read a lease with before_end %q, snapshot by default %t: reservation (-want +got) %s; retry time %s, want 1m; error %v, want none",
				c.requested, c.snapshotByDefault, d, got.CloudRetryTime, err,
			)
		}
	}
}
