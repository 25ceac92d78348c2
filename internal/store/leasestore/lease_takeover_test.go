package leasestore_test

import (
	"errors"
	"testing"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

// batchTimesOver sets the deadline of every running batch to the present time.
func (t *fixture) batchTimesOver() {
	t.Helper()
	storetest.Exec(t, t.url, `update lease set batch_until = now() where batch_until is not null`)
}

// takeOver takes over the steps that other processes have not finished in time, and finishes them.
func (t *fixture) takeOver() (begun, finished int) {
	t.Helper()
	started, ready, err := t.Lease.TakeOverLeases(t.Context(), true)
	if err == nil && len(started) > 0 {
		finished, _, err = t.Lease.FinishStartedLeases(t.Context(), started, ready)
	}
	if err != nil {
		t.Fatal(err)
	}
	return len(started), finished
}

func TestTakeOverLeases_FinishesStepsOfAKilledProcess(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	ending, starting := e.createActive(hostsDraft(1, 2, 1, 1)), e.createLease(hostsDraft(1, 2, 1, 1))
	e.makeDue(ending)
	storetest.Exec(t, e.url, `update event set status = 'DONE' where event_type = 'before_end_lease'`)
	e.startDue(starting)
	if started, _, err := e.Lease.BeginDueLeases(t.Context(), true); len(started) != 2 || err != nil {
		t.Fatalf("begin the due steps: got %d, error %v; want 2", len(started), err)
	}
	e.expectStatus(ending, lease.Terminating)
	e.expectStatus(starting, lease.Starting)
	if begun, _ := e.takeOver(); begun != 0 {
		t.Errorf("steps that are taken over while their process has time: got %d, want 0", begun)
	}

	e.batchTimesOver()
	begun, finished := e.takeOver()

	if begun != 2 || finished != 2 {
		t.Errorf(
			"steps that are taken over after their process was killed: got %d begun and %d finished, want 2 and 2",
			begun,
			finished,
		)
	}
	e.expectStatus(ending, lease.Terminated)
	e.expectStatus(starting, lease.Active)
	if got := e.inventoryHosts(starting.Reservations[0].ID); len(got) != 1 {
		t.Errorf("hosts in Placement of a lease whose start was taken over: got %v, want one", got)
	}
	e.batchTimesOver()
	if begun, _ := e.takeOver(); begun != 0 {
		t.Errorf("steps that are taken over twice: got %d, want 0", begun)
	}
}

func TestTakeOverLeases_LeavesDeletionsToTheirWorkflow(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	l := e.createLease(hostsDraft(1, 2, 1, 1))
	e.startDue(l)
	if started, _, err := e.Lease.BeginDueLeases(t.Context(), true); len(started) != 1 || err != nil {
		t.Fatalf("begin the due steps: got %d, error %v; want 1", len(started), err)
	}
	if gone, err := e.Lease.DeleteLease(t.Context(), l.ID); gone || err != nil {
		t.Fatalf("delete a lease in STARTING: got gone %t, error %v; want false", gone, err)
	}

	e.batchTimesOver()
	if begun, _ := e.takeOver(); begun != 0 {
		t.Errorf("steps of a deleted lease that are taken over: got %d, want 0", begun)
	}
	e.expectStatus(l, lease.Starting)
}

// A call to Nova or Neutron that is running while its lease is deleted can create an object after the
// deletion has removed all objects of the lease. Therefore berth later removes the objects of a deleted lease
// from Nova and Neutron once more.
func TestLeftovers_OfDeletedLeasesAreRemovedOnceMore(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	never, l := e.createLease(hostsDraft(3, 4, 1, 1)), e.createActive(hostsDraft(1, 2, 1, 1))
	e.deleteLease(never.ID)
	if gone, err := e.Lease.DeleteLease(t.Context(), l.ID); gone || err != nil {
		t.Fatalf("delete an ACTIVE lease: got gone %t, error %v; want false", gone, err)
	}
	e.beginStep(l.ID, lease.StepDelete)
	e.release(l)
	if _, err := e.Lease.FinishLease(t.Context(), l.ID, lease.StepDelete, nil); err != nil {
		t.Fatal(err)
	}
	due := func(want int) []leasestore.Leftover {
		t.Helper()
		leftovers, err := e.Lease.DueLeftovers(t.Context(), 10)
		if len(leftovers) != want || err != nil {
			t.Fatalf("leftovers that are due: got %+v, error %v; want %d", leftovers, err, want)
		}
		for _, f := range leftovers {
			if f.Project != "p" || len(f.ComputeHosts) != 1 || f.ComputeHosts[0].Service != "cmp-1" {
				t.Errorf("leftover of a deleted lease: got %+v, want the project p and the host cmp-1", f)
			}
		}
		return leftovers
	}
	due(0)
	storetest.Exec(t, e.url, `update reservation_leftover set due_at = now()`)
	first := due(1)[0]
	if first.ID != l.Reservations[0].ID {
		t.Errorf("leftover: got %+v, want the reservation of the deleted lease that had started", first)
	}

	if err := e.Lease.FinishLeftover(t.Context(), first, errors.New("Nova answered 500")); err != nil {
		t.Fatal(err)
	}
	due(0)
	storetest.Exec(t, e.url, `update reservation_leftover set due_at = now()`)
	if err := e.Lease.FinishLeftover(t.Context(), due(1)[0], nil); err != nil {
		t.Fatal(err)
	}
	due(0)
}
