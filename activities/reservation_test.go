package activities_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

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
			l := createOneHourLease(t, s, "l", "p", start, lease.ReservationDraft{Type: lease.Device, Min: 1, Max: 1})
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
			changed, err := s.Lease.Lease(t.Context(), l.ID)
			if err != nil {
				t.Fatal(err)
			}
			if due := lease.Next(changed, time.Now()); changed.Status != lease.Active || due.Step != lease.StepWait {
				t.Errorf(
					"an %s lease after its change and ProvisionReservation: the next step is %s, want an ACTIVE lease that waits",
					changed.Status,
					due.Step,
				)
			}
		})
	}
}

// The answer of another service can be any bytes. If the database could not store an error that quotes them,
// the step of the lease would never end.
func TestProvisionReservation_RecordsAnErrorOfAnyBytes(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	cloud := &recordingCloud{onProvision: func(lease.CloudReservation) error {
		return &lease.CallError{Party: lease.PartyNova, Call: "GET /", Err: errors.New("answered \x00\xff with 500")}
	}}
	acts := newActivities(activities.Options{Store: s, Cloud: cloud})
	l := createLeases(t, s, url, "red")["red"]
	if _, err := s.Lease.BeginLease(t.Context(), l.ID, lease.StepStart); err != nil {
		t.Fatal(err)
	}
	failed := acts.ProvisionReservation(t.Context(), l.Reservations[0].ID)
	l, err := s.Lease.Lease(t.Context(), l.ID)
	if err != nil || failed == nil || strings.Contains(failed.Error(), "\x00") || len(l.FailedCalls()) != 1 ||
		!strings.Contains(l.FailedCalls()[0].Error, "with 500") {
		t.Errorf("a call fails with any bytes: got the error %q and the failed calls %+v, %v; want the call, without NUL",
			failed, l.FailedCalls(), err)
	}
}

// If a user moves the event to a later date while its action runs, the action must not run for the new date
// yet: at the new date, the images of the servers would exist already, and would be old.
func TestRunBeforeEndAction_MovedEventRunsAtItsNewDateOnly(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	cloud := &recordingCloud{onProvision: func(lease.CloudReservation) error { return nil }}
	acts := newActivities(activities.Options{Store: s, Cloud: cloud})
	l := createLeases(t, s, url, "red")["red"]
	if _, err := acts.AdvanceLeases(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-time.Minute).UTC().Truncate(time.Second)
	storetest.Exec(t, url, `update event set at = '`+at.Format(time.RFC3339)+`' where event_type = 'before_end_lease'`)
	if _, err := s.Lease.BeginLease(t.Context(), l.ID, lease.StepBeforeEnd); err != nil {
		t.Fatal(err)
	}
	if err := acts.RunBeforeEndAction(t.Context(), l.Reservations[0].ID); err != nil {
		t.Fatal(err)
	}
	later := l.EndAt.Add(-time.Minute)
	if _, err := s.Lease.UpdateLease(t.Context(), l.ID, lease.Change{BeforeEnd: &later}); err != nil {
		t.Fatal(err)
	}
	err := acts.RunBeforeEndAction(t.Context(), l.Reservations[0].ID)
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != activities.Conflict {
		t.Errorf("run the action of an event that was moved: got %v, want a Conflict", err)
	}
	if got := cloud.beforeEnd; len(got) != 1 || !got[0].Equal(at) {
		t.Errorf("due times of the actions in Nova: got %v, want only %v", got, at)
	}
}

// brokenCloud fails for the reservations of the project red with an error of any bytes.
type brokenCloud struct{ *recordingCloud }

func (c brokenCloud) Deprovision(ctx context.Context, r lease.CloudReservation) error {
	if r.Project == "red" {
		return errors.New("answered \x00\xff with 500")
	}
	return c.recordingCloud.Deprovision(ctx, r)
}

func TestHealReservations_ALeftoverWithAnErrorOfAnyBytesDelaysNoOther(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	cloud := brokenCloud{&recordingCloud{}}
	acts := newActivities(activities.Options{Store: storetest.Open(t, url), Cloud: cloud, HealingWindow: time.Hour})
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	activities.Register(env, acts.Functions())
	storetest.Exec(t, url, `
		insert into reservation_leftover (reservation_id, resource_type, project_id, services, due_at)
		select gen_random_uuid(), 'physical:host', project, '{}', at::timestamptz
		from (values ('red', '2001-01-01'), ('blue', '2002-01-01')) as l (project, at)`)
	if _, err := env.ExecuteActivity(acts.HealReservations); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(cloud.deprovisioned, []string{"blue"}) {
		t.Errorf("removed leftovers: got those of the projects %v, want the one of blue", cloud.deprovisioned)
	}
}

// A project can make the removal of its leftovers slow. They must not take the time of healing.
func TestHealReservations_LeftoversTakeALimitedTime(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	cloud := &recordingCloud{}
	acts := newActivities(activities.Options{Store: storetest.Open(t, url), Cloud: cloud, HealingWindow: time.Hour})
	acts.Timeouts.Leftovers = time.Nanosecond
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	activities.Register(env, acts.Functions())
	storetest.Exec(t, url, `
		insert into reservation_leftover (reservation_id, resource_type, project_id, services, due_at)
		select gen_random_uuid(), 'physical:host', 'red', '{}'::text[], '2001-01-01'::timestamptz from generate_series(1, 3)`)
	for round := range 2 {
		if _, err := env.ExecuteActivity(acts.HealReservations); err != nil {
			t.Fatal(err)
		}
		if got := len(cloud.deprovisioned); got != round+1 {
			t.Errorf("removed leftovers after round %d: got %d, want one more in each round", round+1, got)
		}
	}
}
