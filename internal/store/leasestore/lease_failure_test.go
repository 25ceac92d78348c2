package leasestore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

func TestLease_FailedStartReleasesInventoryAndStillEnds(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	d := hostsDraft(1, 2, 1, 1)
	d.Reservations = append(d.Reservations, d.Reservations[0])
	l := e.createLease(d)
	e.makeDue(l)
	e.beginStep(l.ID, lease.StepStart)
	if err := e.Lease.AddToInventory(t.Context(), l.Reservations[0].ID); err != nil {
		t.Fatal(err)
	}
	failed := map[uuid.UUID]string{l.Reservations[1].ID: "no answer"}
	for range 2 {
		l = e.finishStep(l.ID, lease.StepStart, failed)
	}
	if l.Status != lease.Error || l.Reservations[1].LastError != "no answer" {
		t.Errorf("lease with a failed start: got %+v, want ERROR with the reason", l)
	}
	if got := e.inventoryHosts(l.Reservations[0].ID); len(got) != 0 {
		t.Errorf("hosts of a lease with a failed start in Placement: got %v, want none", got)
	}
	e.beginStep(l.ID, lease.StepEnd)
	e.removeFromInventory(l)
	l = e.finishStep(l.ID, lease.StepEnd, nil)
	if l.Status != lease.Error || len(l.Reservations[0].Hosts)+len(l.Reservations[1].Hosts) != 0 {
		t.Errorf("lease with a failed start after its end: got %+v, want ERROR without hosts", l)
	}
	if due := lease.Next(l, time.Now()); due.Step != lease.StepStop {
		t.Errorf("next step of a lease with a failed start after its end: got %+v, want stop", due)
	}
	e.createLease(hostsDraft(1, 2, 2, 2))
}

func TestLease_HostIsNotFreeAfterAFailedEnd(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	l := e.createActive(hostsDraft(1, 2, 1, 1))
	e.beginStep(l.ID, lease.StepEnd)
	l = e.finishStep(l.ID, lease.StepEnd, map[uuid.UUID]string{l.Reservations[0].ID: "server will not die"})
	if l.Status != lease.Error || len(l.Reservations[0].Hosts) != 1 {
		t.Errorf("lease with a failed end: got %+v, want ERROR with its host", l)
	}
	e.expectCreateFault(hostsDraft(5, 6, 1, 1), lease.NotEnoughHosts)

	if gone, err := e.Lease.DeleteLease(t.Context(), l.ID); gone || err != nil {
		t.Fatalf("delete a lease with a failed end: got gone %t, error %v; want false and no error",
			gone, err)
	}
	e.beginStep(l.ID, lease.StepDelete)
	_, err := e.Lease.FinishLease(t.Context(), l.ID, lease.StepDelete, map[uuid.UUID]string{l.Reservations[0].ID: "again"})
	if !errors.Is(err, db.ErrConflict) {
		t.Errorf(
			"finish the deletion of a lease that still has resources: got error %v, want ErrConflict",
			err,
		)
	}
	e.removeFromInventory(l)
	if last, err := e.Lease.FinishLease(t.Context(), l.ID, lease.StepDelete, nil); err != nil ||
		last.Status != lease.Deleting {
		t.Errorf("finish the deletion of a lease: got the last status %s, error %v; want DELETING",
			last.Status, err)
	}
	_, err = e.Lease.FinishLease(t.Context(), l.ID, lease.StepDelete, nil)
	if !errors.Is(err, db.ErrNotFound) {
		t.Errorf("finish the deletion of a lease twice: got error %v, want ErrNotFound", err)
	}
	e.createLease(hostsDraft(5, 6, 1, 1))
}

func TestLease_WaitsForTheEarlierLeaseOfItsHost(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	before := e.createActive(hostsDraft(1, 2, 1, 1))
	after := e.createLease(hostsDraft(1, 2, 1, 1))
	storetest.Exec(t, e.url, `update lease set start_at = now() where id = $1`, after.ID)
	storetest.Exec(t, e.url,
		`update event set at = now() where lease_id = $1 and event_type = 'start_lease'`, after.ID)

	after = e.readLease(after.ID)
	want := []lease.Blocker{
		{
			ID:      before.ID,
			Name:    "l",
			Project: "p",
			User:    "u",
			Host:    "cmp-1",
			Since:   before.EndAt,
		},
	}
	if d := cmp.Diff(want, after.Blockers); d != "" {
		t.Error(d)
	}
	e.beginStep(after.ID, lease.StepStart) // a worker that ignores the blockers
	err := e.Lease.AddToInventory(t.Context(), after.Reservations[0].ID)
	if faultKind(err) != lease.HostInUse {
		t.Errorf(
			"add a host, which another lease still has, to Placement: got error %v, want a fault of kind HostInUse",
			err,
		)
	}
	storetest.Exec(t, e.url, `
		with l as (update lease set status = 'PENDING' where id = $1)
		update event set status = 'UNDONE' where lease_id = $1`, after.ID)
	storetest.Exec(t, e.url, `delete from note`)

	e.beginStep(before.ID, lease.StepEnd)
	e.removeFromInventory(before)
	e.finishStep(before.ID, lease.StepEnd, nil)

	notes, err := e.Outbox.Claim(t.Context(), "", 10, time.Minute)
	if err != nil || len(notes) != 1 || notes[0].ID != contract.LeaseID(after.ID.String()) {
		t.Errorf(
			"notes after the earlier lease has ended: got %+v, error %v; want one for the lease that waits for the host",
			notes,
			err,
		)
	}
	if due := lease.Next(e.readLease(after.ID), time.Now().Add(time.Second)); due.Step != lease.StepStart {
		t.Errorf("next step of a lease whose blocker has ended: got %+v, want start", due)
	}
}

func TestLease_ShowsTheNextBlockersOnceItsStartIsDue(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	var first, last lease.Lease
	for i := range 12 {
		last = e.createLease(hostsDraft(i, i+1, 1, 1))
		if i == 0 {
			first = last
		}
		if last.Blockers != nil {
			t.Errorf("blockers of lease %d before its start is due: got %v, want none", i, last.Blockers)
		}
	}
	storetest.Exec(t, e.url, `update lease set start_at = now() where id = $1`, last.ID)

	got := e.readLease(last.ID).Blockers
	if len(got) != 10 || got[0].ID != first.ID {
		t.Errorf("blockers of the last lease: got %d: %v; want the 10 with the earliest ends", len(got), got)
	}
}
