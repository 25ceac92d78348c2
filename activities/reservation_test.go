package activities_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/activities"
	"berth/internal/lease"
	"berth/internal/store/storetest"
)

// If a resource type needs no calls to Nova and Neutron, a change of an active reservation changes nothing
// there. If berth still counted the reservation as outdated, the workflow of its lease would repeat the
// update without a pause until the end of the lease.
func TestProvisionReservation_WithoutCallsEndsTheUpdate(t *testing.T) {
	t.Parallel()
	for name, cloud := range map[string]activities.Cloud{"neither Nova nor Neutron": nil, "Nova without calls for devices": &recordingCloud{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			acts := newActivities(activities.Options{Store: s, Cloud: cloud})
			device := map[string]string{
				"name":          uuid.NewString(),
				"device_type":   "container",
				"device_driver": "zun",
			}
			if _, err := s.Lease.RegisterResource(t.Context(), lease.Device, device); err != nil {
				t.Fatal(err)
			}
			start := time.Now().Add(time.Hour)
			l, err := s.Lease.CreateLease(t.Context(), lease.Draft{
				Name:         "l",
				User:         "u",
				Project:      "p",
				Start:        lease.RequestedDate{At: start},
				End:          lease.RequestedDate{At: start.Add(time.Hour)},
				Reservations: []lease.ReservationDraft{{Type: lease.Device, Min: 1, Max: 1}},
			})
			if err != nil {
				t.Fatal(err)
			}
			storetest.Exec(t, url, `update event set at = now() where event_type = 'start_lease'`)
			if _, err := acts.AdvanceLeases(t.Context(), time.Now()); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Lease.UpdateLease(t.Context(), l.ID, lease.Change{End: &lease.RequestedDate{At: start.Add(2 * time.Hour)}}); err != nil {
				t.Fatal(err)
			}
			if err := acts.ProvisionReservation(t.Context(), l.Reservations[0].ID); err != nil {
				t.Fatal(err)
			}
			if l, err = s.Lease.Lease(t.Context(), l.ID); err != nil {
				t.Fatal(err)
			}
			if due := lease.Next(l, time.Now()); l.Status != lease.Active || due.Step != lease.StepWait {
				t.Errorf(
					"an %s lease after its change and ProvisionReservation: the next step is %s, want an ACTIVE lease that waits",
					l.Status,
					due.Step,
				)
			}
		})
	}
}
