package lease_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/lease"
)

func TestNotifications_OnePerTransition(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to lease.Status
		want     string
	}{
		{"", lease.Pending, "lease.create"},
		{lease.Pending, lease.Starting, "lease.event.start_lease.begin"},
		{lease.Starting, lease.Active, "lease.event.start_lease"},
		{lease.Starting, lease.Error, "lease.event.start_lease.error"},
		{lease.Active, lease.Terminating, "lease.event.end_lease.begin"},
		{lease.Error, lease.Terminating, "lease.event.end_lease.begin"},
		{lease.Terminating, lease.Terminated, "lease.event.end_lease"},
		{lease.Terminating, lease.Error, "lease.event.end_lease.error"},
		{lease.Active, lease.Deleting, "lease.delete.begin"},
		{lease.Starting, lease.Deleting, "lease.delete.begin"},
	} {
		t.Run(string(tt.from+" to "+tt.to), func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff([]string{tt.want}, lease.NotificationsFor(lease.Lease{Status: tt.from}, lease.Lease{Status: tt.to})); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestNotifications_ChangesWithoutTransition(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	base := func() lease.Lease {
		return lease.Lease{
			Status:       lease.Active,
			Name:         "l",
			StartAt:      at,
			EndAt:        at.Add(time.Hour),
			Reservations: []lease.Reservation{{ReservationDraft: lease.ReservationDraft{Min: 1, Max: 1}}},
			Events:       []lease.Event{{Type: lease.BeforeEndLease, At: at, Status: lease.EventInProgress}},
		}
	}
	for name, tt := range map[string]struct {
		change func(was, is *lease.Lease)
		want   []string
	}{
		"nothing":           {func(_, _ *lease.Lease) {}, nil},
		"its name":          {func(_, is *lease.Lease) { is.Name = "m" }, []string{"lease.update"}},
		"its end":           {func(_, is *lease.Lease) { is.EndAt = at.Add(2 * time.Hour) }, []string{"lease.update"}},
		"a reservation":     {func(_, is *lease.Lease) { is.Reservations[0].Max = 2 }, []string{"lease.update"}},
		"its health":        {func(_, is *lease.Lease) { is.Degraded, is.Reservations[0].MissingResources = true, true }, []string{"lease.health"}},
		"before_end done":   {func(_, is *lease.Lease) { is.Events[0].Status = lease.EventDone }, []string{"lease.event.before_end_lease"}},
		"before_end failed": {func(_, is *lease.Lease) { is.Events[0].Status = lease.EventFailed }, []string{"lease.event.before_end_lease.error"}},
		"before_end begins": {func(was, _ *lease.Lease) { was.Events[0].Status = lease.EventUndone }, nil},
		"before_end rearmed": {func(was, is *lease.Lease) {
			was.Events[0].Status, is.Events[0].Status, is.Events[0].At = lease.EventDone, lease.EventUndone, at.Add(time.Minute)
		}, []string{"lease.update", "lease.event.before_end_lease.stop"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			was, is := base(), base()
			tt.change(&was, &is)
			if d := cmp.Diff(tt.want, lease.NotificationsFor(was, is)); d != "" {
				t.Error(d)
			}
		})
	}
}
