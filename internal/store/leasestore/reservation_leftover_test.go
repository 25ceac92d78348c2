package leasestore_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

// leftovers makes all leftovers due, and returns them.
func (t *fixture) leftovers() []leasestore.Leftover {
	t.Helper()
	storetest.Exec(t, t.url, `update reservation_leftover set due_at = now()`)
	all, err := t.Lease.DueLeftovers(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// An attempt to update Nova and Neutron can be running while the lease ends. It can create objects after the
// end has removed all objects, so they are removed once more, when the attempt can no longer run.
func TestLeftovers_OfLeasesThatEndDuringAnUpdateAreRemovedOnceMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		alone, updated bool
	}{
		"ended by a sweep":                      {false, true},
		"ended by its workflow":                 {true, true},
		"ended by a sweep, without an update":   {false, false},
		"ended by its workflow, without update": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newFixture(t, 2)
			l := e.createActiveUntil(2)
			r := l.Reservations[0].ID
			if c.updated {
				e.updateLease(l.ID, hostCountChange(l, 2, 2))
			}
			e.makeDue(l)
			e.beginStep(l.ID, lease.StepBeforeEnd)
			e.finishStep(l.ID, lease.StepBeforeEnd, nil)
			if c.alone {
				e.beginStep(l.ID, lease.StepEnd)
				e.release(l)
				e.finishStep(l.ID, lease.StepEnd, nil)
			} else {
				e.advance(1)
			}
			e.expectStatus(l, lease.Terminated)
			if early, err := e.Lease.DueLeftovers(t.Context(), 10); len(early) != 0 || err != nil {
				t.Errorf("leftovers at the end: got %+v, error %v; want none yet", early, err)
			}
			all := e.leftovers()
			if !c.updated {
				if len(all) != 0 {
					t.Errorf("leftovers of a lease that nothing updates: got %+v, want none", all)
				}
				return
			}
			if len(all) != 1 || all[0].ID != r || all[0].Project != "p" || len(all[0].ComputeHosts) != 2 {
				t.Errorf("leftovers: got %+v, want the reservation with both hosts", all)
			}
		})
	}
}

// Nothing else would delete what an attempt creates after the end of the lease.
func TestLeftovers_NeutronIDsOfAnEndedLeaseAreRemovedOnceMore(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	l := e.createActive(addressesDraft(e.registerAddresses(1), 1, 2, 1))
	claim := lease.CloudReservation{Reservation: l.Reservations[0], Lease: l.ID, Project: l.Project}
	save := func(id string) {
		t.Helper()
		ids := leasestore.NeutronIDs{CreatedFloatingIPs: []string{id}}
		if err := e.Lease.SaveNeutronIDs(t.Context(), claim, ids); err != nil {
			t.Fatal(err)
		}
	}
	save("while ACTIVE")
	if all := e.leftovers(); len(all) != 0 {
		t.Errorf("leftovers of an ACTIVE lease: got %+v, want none", all)
	}
	e.beginStep(l.ID, lease.StepEnd)
	e.finishStep(l.ID, lease.StepEnd, nil)
	save("late")
	all := e.leftovers()
	if len(all) != 1 || all[0].Project != "p" || !slices.Equal(all[0].FloatingIPIDs, []string{"late"}) {
		t.Errorf("leftovers of a TERMINATED lease: got %+v, want the late floating IP", all)
	}
}

// An attempt can store an ID for a leftover while a sweep removes what was stored before. What has the ID
// must be removed, too.
func TestFinishLeftover_KeepsWhatWasStoredDuringTheRemoval(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failure      error
		clockSetBack bool // of the database, during the removal
	}{
		"that succeeded":                  {},
		"that failed":                     {failure: errors.New("Neutron answered 500")},
		"in which the clock was set back": {clockSetBack: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newFixture(t, 0)
			claim := lease.CloudReservation{
				Project: "p",
				Reservation: lease.Reservation{
					ID:               uuid.New(),
					ReservationDraft: lease.ReservationDraft{Type: lease.FloatingIP},
				},
			}
			keep := func(id string) {
				t.Helper()
				claim.FloatingIPIDs = []string{id}
				if err := e.Lease.KeepLeftover(t.Context(), claim); err != nil {
					t.Fatal(err)
				}
			}
			read := func() leasestore.Leftover {
				t.Helper()
				all := e.leftovers()
				if len(all) != 1 {
					t.Fatalf("leftovers: got %+v, want one", all)
				}
				return all[0]
			}
			finish := func(f leasestore.Leftover, failure error) {
				t.Helper()
				if err := e.Lease.FinishLeftover(t.Context(), f, failure); err != nil {
					t.Fatal(err)
				}
			}
			keep("early")
			removed := read()
			if c.clockSetBack {
				removed.DueAt = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
				storetest.Exec(t, e.url, `update reservation_leftover set due_at = $1`, removed.DueAt)
			}
			keep("late")
			finish(removed, c.failure)
			again := read()
			if slices.Sort(again.FloatingIPIDs); !slices.Equal(again.FloatingIPIDs, []string{"early", "late"}) || again.Attempts != 0 {
				t.Errorf("leftover after the removal: got %+v, want the floating IPs early and late, and no failed attempt", again)
			}
			finish(again, nil)
			if all := e.leftovers(); len(all) != 0 {
				t.Errorf("leftovers after the second removal: got %+v, want none", all)
			}
		})
	}
}

// A sweep removes a limited number of leftovers. Those of one project, and those that failed before, delay no
// other.
func TestDueLeftovers_ProjectsTakeTurns(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	storetest.Exec(t, e.url, `
		insert into reservation_leftover (reservation_id, resource_type, project_id, services, due_at, attempts)
		select gen_random_uuid(), 'network', 'noisy', '{}'::text[], '2001-01-01'::timestamptz, 9 from generate_series(1, 20)
		union all select gen_random_uuid(), 'network', 'noisy', '{}', '2002-01-01', 8
		union all select gen_random_uuid(), 'network', 'quiet', '{}', '2003-01-01', 0`)
	all, err := e.Lease.DueLeftovers(t.Context(), 3)
	if err != nil || len(all) != 3 {
		t.Fatalf("due leftovers: got %+v, error %v; want three", all, err)
	}
	for i, want := range []leasestore.Leftover{
		{CloudReservation: lease.CloudReservation{Project: "quiet"}, Attempts: 0},
		{CloudReservation: lease.CloudReservation{Project: "noisy"}, Attempts: 8},
		{CloudReservation: lease.CloudReservation{Project: "noisy"}, Attempts: 9},
	} {
		if got := all[i]; got.Project != want.Project || got.Attempts != want.Attempts || got.ID == uuid.Nil {
			t.Errorf("leftover %d: got %+v, want one of the project %s with %d attempts", i, got, want.Project, want.Attempts)
		}
	}
}
