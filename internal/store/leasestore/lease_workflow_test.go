package leasestore_test

import (
	"testing"
	"time"

	"berth/internal/contract"
	"berth/internal/lease"
)

// The workflow of a lease ends when no step of the lease is left. From then on, the lease must not count as a
// row without a workflow.
func TestWorkflows_LeaseNeedsOneUntilNoStepIsLeft(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 12)
	leases := map[string]lease.Lease{}
	for _, status := range []lease.Status{lease.Pending, lease.Starting, lease.Active, lease.Error, lease.Terminating, lease.Terminated, lease.Deleting} {
		leases[string(status)] = e.createInStatus(status)
	}
	failedStart := e.createInStatus(lease.Error)
	e.beginStep(failedStart.ID, lease.StepEnd)
	leases["failed start whose end is over"] = e.finishStep(failedStart.ID, lease.StepEnd, nil)
	failedEnd := e.failEnd(e.createInStatus(lease.Active))
	leases["failed end that keeps its host"] = failedEnd
	cleared := e.failEnd(e.createInStatus(lease.Active))
	e.release(cleared)
	leases["failed end that was cleared"] = e.finishStep(cleared.ID, lease.StepClear, nil)
	addresses := e.createLease(addressesDraft(e.registerAddresses(1), 1, 2, 1))
	e.makeDue(addresses)
	e.beginStep(addresses.ID, lease.StepStart)
	e.finishStep(addresses.ID, lease.StepStart, nil)
	leases["failed end that keeps its address"] = e.failEnd(addresses)

	rows, err := e.Outbox.Rows(t.Context(), []string{contract.Lease}, "")
	if err != nil {
		t.Fatal(err)
	}

	for name, l := range leases {
		l = e.readLease(l.ID)
		_, found := rows[contract.LeaseID(l.ID.String())]
		if due := lease.Next(l, time.Now()); found != (due.Step != lease.StepStop) {
			t.Errorf(
				"lease %s, whose next step is %s: is it listed as a row that must have a workflow? got %t, want %t",
				name, due.Step, found, !found,
			)
		}
	}
	if got := lease.Next(e.readLease(failedEnd.ID), time.Now()).Step; got != lease.StepClear {
		t.Errorf("next step of a lease whose end has failed: got %s, want clear", got)
	}
}
