package leasestore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store/storetest"
)

// setDates moves a lease, its start and end events and its host allocations to the given times, counted from
// now.
func (t *fixture) setDates(l lease.Lease, from, to time.Duration) {
	t.Helper()
	storetest.Exec(
		t, t.url,
		`update lease set start_at = now() + $2::interval, end_at = now() + $3::interval where id = $1`,
		l.ID, from, to,
	)
	storetest.Exec(t, t.url, `
		update event
		set at = now() + case event_type when 'start_lease' then $2::interval else $3::interval end
		where lease_id = $1`, l.ID, from, to)
	storetest.Exec(t, t.url, `
		update host_allocation
		set during = tstzrange(now() + $2::interval, now() + $3::interval)
		where reservation_id in (select id from reservation where lease_id = $1)`, l.ID, from, to)
}

// onHosts returns the draft of a lease of the hosts whose names are at most `last`.
func onHosts(from, to, hosts int, last string) lease.Draft {
	d := hostsDraft(from, to, hosts, hosts)
	d.Reservations[0].HypervisorProperties = `["<=", "$hypervisor_hostname", "` + last + `"]`
	return d
}

// onHost returns the draft of a lease of one host.
func onHost(from, to int, name string) lease.Draft {
	d := hostsDraft(from, to, 1, 1)
	d.Reservations[0].HypervisorProperties = `["==", "$hypervisor_hostname", "` + name + `"]`
	return d
}

// failEnd makes the end of an active lease fail, so that the lease keeps its hosts.
func (t *fixture) failEnd(l lease.Lease) lease.Lease {
	t.Helper()
	t.beginStep(l.ID, lease.StepEnd)
	return t.finishStep(l.ID, lease.StepEnd, map[uuid.UUID]string{l.Reservations[0].ID: "Nova answered 500"})
}

// TestLease_FailedEndBlocksOnlyLeasesOfItsHosts creates three leases, one after the other in time. The end of
// the first lease fails, the second lease shares a host with the first, and the third lease shares another
// host with the second. The third lease must start.
func TestLease_FailedEndBlocksOnlyLeasesOfItsHosts(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	stuck := e.createActive(onHost(1, 2, "cmp-1"))
	between, last := e.createLease(onHosts(3, 4, 2, "cmp-2")), e.createLease(onHost(5, 6, "cmp-2"))
	e.setDates(stuck, -3*time.Hour, -2*time.Hour)
	e.setDates(between, -time.Hour, time.Hour)
	e.setDates(last, time.Hour, 2*time.Hour)
	stuck = e.failEnd(stuck)

	e.advance(0)

	if got := e.readLease(between.ID); got.Status != lease.Pending || len(got.Blockers) != 1 ||
		got.Blockers[0].ID != stuck.ID {
		t.Errorf(
			"lease that needs the host of a failed end: got %s with blockers %+v, want PENDING and blocked by the lease whose end failed",
			got.Status,
			got.Blockers,
		)
	}

	e.setDates(between, -2*time.Hour, -time.Hour)
	e.setDates(last, -time.Hour, time.Hour)
	if got := e.readLease(last.ID); len(got.Blockers) != 0 {
		t.Errorf(
			"lease of a host that only a blocked PENDING lease shares: got blockers %+v, want none",
			got.Blockers,
		)
	}
	e.advance(1)
	e.expectStatus(last, lease.Active)
}

// A lease that could not start before its end, because another lease held its host, ends in ERROR and keeps
// no host.
func TestLease_BlockedLeasePastItsEndFails(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	stuck := e.createActive(onHost(1, 2, "cmp-1"))
	blocked := e.createLease(onHosts(3, 4, 2, "cmp-2"))
	e.setDates(stuck, -3*time.Hour, -2*time.Hour)
	e.setDates(blocked, -2*time.Hour, -time.Hour)
	stuck = e.failEnd(stuck)
	if due := lease.Next(e.readLease(blocked.ID), time.Now()); due.Step != lease.StepExpire {
		t.Errorf("next step of a blocked lease after its end: got %+v, want expire", due)
	}

	n, err := e.Lease.ExpireBlockedLeases(t.Context())

	if n != 1 || err != nil {
		t.Errorf("expire the blocked leases whose end is over: got %d, error %v; want 1", n, err)
	}
	got := e.readLease(blocked.ID)
	if got.Status != lease.Error || eventOf(got, lease.StartLease).Status != lease.EventFailed ||
		eventOf(got, lease.EndLease).Status != lease.EventFailed {
		t.Errorf(
			"blocked lease after its end: got %s with the events %+v, want ERROR with failed events",
			got.Status,
			got.Events,
		)
	}
	if r := got.Reservations[0]; len(r.Hosts) != 0 || strings.Contains(r.LastError, "cmp-1") ||
		!strings.Contains(r.LastError, stuck.ID.String()) {
		t.Errorf(
			"reservation of a blocked lease after its end: got %+v, want no hosts and an error that names the blocking lease and no host",
			r,
		)
	}
	if due := lease.Next(got, time.Now()); due.Step != lease.StepStop {
		t.Errorf("next step of a lease that has expired: got %+v, want stop", due)
	}
	if n, err := e.Lease.ExpireBlockedLeases(t.Context()); n != 0 || err != nil {
		t.Errorf("expire the blocked leases again: got %d, error %v; want 0", n, err)
	}
	if _, err := e.Lease.BeginLease(t.Context(), stuck.ID, lease.StepExpire); err == nil {
		t.Error("expire a lease that is not PENDING: got no error, want ErrConflict")
	}
	if gone, err := e.Lease.DeleteLease(t.Context(), blocked.ID); !gone || err != nil {
		t.Errorf("delete a lease that has expired: got gone %t, error %v; want it gone at once", gone, err)
	}
}

// A lease whose start and end are both overdue, and that no other lease blocks, still starts and then ends.
func TestLease_OverdueLeaseThatNothingBlocksDoesNotExpire(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	first, second := e.createLease(hostsDraft(1, 2, 1, 1)), e.createLease(hostsDraft(2, 3, 1, 1))
	e.setDates(first, -4*time.Hour, -3*time.Hour)
	e.setDates(second, -2*time.Hour, -time.Hour)
	if got := e.readLease(second.ID).Blockers; len(got) != 1 || got[0].ID != first.ID {
		t.Errorf("blockers of the second of two overdue leases of a host: got %+v, want the first lease", got)
	}

	if n, err := e.Lease.ExpireBlockedLeases(t.Context()); n != 0 || err != nil {
		t.Errorf("expire the blocked leases: got %d, error %v; want 0", n, err)
	}
	if _, err := e.advanceAll(nil); err != nil {
		t.Fatal(err)
	}
	e.expectStatus(first, lease.Terminated)
	e.expectStatus(second, lease.Terminated)
}

// A pending lease on a host that another lease has failed to release moves to a healthy host, if one is free.
func TestReservationHeal_MovesPendingLeasesOffHostsOfAFailedEnd(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	stuck := e.createActive(onHost(1, 2, "cmp-1"))
	moves, stays := e.createLease(onHost(3, 4, "cmp-1")), e.createLease(onHost(5, 6, "cmp-1"))
	storetest.Exec(t, e.url,
		`update reservation set hypervisor_properties = '' where id = $1`, moves.Reservations[0].ID)
	instances := lease.Draft{
		Name:    "l",
		User:    "u",
		Project: "p",
		Start:   lease.RequestedDate{At: hour(7)},
		End:     lease.RequestedDate{At: hour(8)},
		Reservations: []lease.ReservationDraft{{
			Type:                 lease.VirtualInstance,
			Amount:               1,
			VCPUs:                1,
			MemoryMB:             1,
			HypervisorProperties: `["==", "$hypervisor_hostname", "cmp-1"]`,
		}},
	}
	slots := e.createLease(instances)
	storetest.Exec(t, e.url,
		`update reservation set hypervisor_properties = '' where id = $1`, slots.Reservations[0].ID)
	e.setDates(stuck, -2*time.Hour, -time.Hour)
	e.setDates(moves, -time.Minute, time.Hour)
	e.failEnd(stuck)

	for range 2 {
		e.updateHostsAndHeal(nil, 24*time.Hour)
	}

	e.expectHealth(moves, health{Hosts: []int64{2}})
	e.expectHealth(stays, health{Hosts: []int64{1}})
	e.expectHealth(slots, health{Hosts: []int64{2}})
	e.advance(1)
	e.expectStatus(moves, lease.Active)
}

// If possible, a new lease gets no hosts that a late lease, which is past its end, still holds.
func TestCreateLease_PrefersHostsThatWereReleasedInTime(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	late := e.createActive(onHost(1, 2, "cmp-1"))
	e.createLease(onHost(20, 21, "cmp-2"))
	e.setDates(late, -2*time.Hour, -time.Hour)
	e.beginStep(late.ID, lease.StepEnd)

	if got := e.createLease(hostsDraft(5, 6, 1, 1)).Reservations[0].Hosts; len(got) != 1 || got[0] == 1 {
		t.Errorf("hosts of a new lease while another lease holds cmp-1 past its end: got %v, want cmp-2", got)
	}
	if got := e.createLease(hostsDraft(7, 8, 2, 2)).Reservations[0].Hosts; len(got) != 2 {
		t.Errorf("hosts of a new lease of both hosts: got %v, want both", got)
	}
}
