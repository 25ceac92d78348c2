package leasestore_test

import (
	"errors"
	"slices"
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
	e.release(l) // as the workflow does at once
	if l = e.readLease(l.ID); !l.Reservations[0].HoldsResources() {
		t.Error("hosts of a lease with a failed start before its end: got none, want the reserved one")
	}
	e.beginStep(l.ID, lease.StepEnd)
	e.release(l)
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
	e.release(l)
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

// beginRelease begins the end or the deletion of an active lease.
func (t *fixture) beginRelease(l lease.Lease, step lease.Step) {
	t.Helper()
	if step == lease.StepDelete {
		if gone, err := t.Lease.DeleteLease(t.Context(), l.ID); gone || err != nil {
			t.Fatalf("delete an ACTIVE lease: got gone %t, error %v; want false", gone, err)
		}
	}
	t.beginStep(l.ID, step)
}

// A member can make the release of one reservation fail for ever. The hosts, floating IPs, network segments
// and devices of the other reservations of the lease must become free nevertheless.
func TestReleaseReservation_FreesResourcesAlthoughAnotherReservationFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step           lease.Step
		status, result lease.Status
	}{
		"end":           {lease.StepEnd, lease.Terminating, lease.Error},
		"deletion":      {lease.StepDelete, lease.Deleting, lease.Deleting},
		"after the end": {lease.StepClear, lease.Error, lease.Error},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newFixture(t, 2)
			vlan := e.registerSegment(100).ID
			d := onHost(1, 2, "cmp-1")
			d.Reservations = append(d.Reservations, segmentDraft(1, 2, "").Reservations...)
			d.Reservations = append(d.Reservations, onHost(1, 2, "cmp-2").Reservations...)
			l := e.createActive(d)
			nextDraft := onHost(3, 4, "cmp-1")
			nextDraft.Reservations = append(nextDraft.Reservations, segmentDraft(3, 4, "").Reservations...)
			next, blocked := e.createLease(nextDraft), e.createLease(onHost(3, 4, "cmp-2"))
			host, network, stays := l.Reservations[0].ID, l.Reservations[1].ID, l.Reservations[2].ID
			e.setDates(l, -3*time.Hour, -2*time.Hour)
			e.setDates(next, -time.Hour, time.Hour)
			e.setDates(blocked, -time.Hour, time.Hour)
			if c.step == lease.StepClear {
				e.beginStep(l.ID, lease.StepEnd)
				e.finishStep(l.ID, lease.StepEnd, map[uuid.UUID]string{host: "no", network: "no", stays: "no"})
			} else {
				e.beginRelease(l, c.step)
			}
			storetest.Exec(t, e.url, `delete from note`)

			for _, r := range []uuid.UUID{host, network, host, network} { // Temporal may repeat an activity
				if err := e.Lease.ReleaseReservation(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}

			l = e.readLease(l.ID)
			r := l.Reservations
			if l.Status != c.status || r[0].HoldsResources() || r[1].HoldsResources() || len(r[2].Hosts) != 1 {
				t.Errorf("lease of which all but the last reservation are released: got %s with %+v; want %s, and cmp-2",
					l.Status, r, c.status)
			}
			if hosts := e.inventoryHosts(host); len(hosts) > 0 {
				t.Errorf("hosts of the released reservation in Placement: got %v, want none", hosts)
			}
			notes, err := e.Outbox.Claim(t.Context(), "", 10, time.Minute)
			nudges := func(n contract.Note) bool { return n.ID == contract.LeaseID(next.ID.String()) }
			if err != nil || !slices.ContainsFunc(notes, nudges) {
				t.Errorf("notes after the release: got %+v, error %v; want one for the lease that waits", notes, err)
			}
			e.advance(1)
			e.expectStatus(next, lease.Active)
			e.expectStatus(blocked, lease.Pending)
			if got := e.readLease(next.ID).Reservations[1].ResourceIDs; !slices.Equal(got, []uuid.UUID{vlan}) {
				t.Errorf("segment of the next lease: got %v, want %s", got, vlan)
			}

			_, err = e.Lease.FinishLease(t.Context(), l.ID, c.step, map[uuid.UUID]string{stays: "Nova answered 500"})
			if (c.step == lease.StepDelete) != errors.Is(err, db.ErrConflict) {
				t.Errorf("finish the step with a failed reservation: got error %v; want ErrConflict of a deletion only", err)
			}
			if l = e.readLease(l.ID); l.Status != c.result || len(l.Reservations[2].Hosts) != 1 {
				t.Errorf("lease of which a reservation is not released: got %s with %+v; want %s with cmp-2",
					l.Status, l.Reservations, c.result)
			}

			e.release(l)
			if l.Status == lease.Error {
				c.step = lease.StepClear
			}
			if _, err := e.Lease.FinishLease(t.Context(), l.ID, c.step, nil); err != nil {
				t.Errorf("finish the step after the release of all reservations: got error %v, want none", err)
			}
			e.advance(1)
			e.expectStatus(blocked, lease.Active)
			e.expectStatus(next, lease.Active)
		})
	}
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
	e.release(before)
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
