package leasestore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/internal/lease"
	"berth/internal/store/storetest"
)

// setDates moves a lease, its start and end events and its allocations to the given times, counted from now.
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
	for _, table := range []string{"host_allocation", "resource_allocation"} {
		storetest.Exec(t, t.url, `
			update `+table+`
			set during = tstzrange(now() + $2::interval, now() + $3::interval)
			where reservation_id in (select id from reservation where lease_id = $1)`, l.ID, from, to)
	}
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

// If possible, a new lease gets no network segment that a late lease, which is past its end, still holds.
func TestCreateLease_PrefersSegmentsThatWereReleasedInTime(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	held, free := e.registerSegment(100), e.registerSegment(101)
	late := e.createActive(segmentDraft(1, 2, `["=","$segment_id","100"]`))
	e.createLease(segmentDraft(20, 21, `["=","$segment_id","101"]`))
	e.setDates(late, -2*time.Hour, -time.Hour)
	e.beginStep(late.ID, lease.StepEnd)

	if got := e.createLease(segmentDraft(5, 6, "")).Reservations[0].ResourceIDs; !slices.Equal(got, []uuid.UUID{free.ID}) {
		t.Errorf("segment of a new lease while another lease holds %s past its end: got %v, want %s", held.ID, got, free.ID)
	}
	if got := e.createLease(segmentDraft(5, 6, "")).Reservations[0].ResourceIDs; !slices.Equal(got, []uuid.UUID{held.ID}) {
		t.Errorf("segment of a lease if no other segment is free: got %v, want %s", got, held.ID)
	}
}

// A network segment is not free for the next lease until Neutron has deleted the network of the former one.
func TestLease_WaitsForASegmentThatAnotherLeaseStillHolds(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	for _, vlan := range []int{100, 101} {
		e.registerSegment(vlan)
	}
	on := func(vlan int, from, to int) lease.Draft {
		return segmentDraft(from, to, fmt.Sprintf(`["=","$segment_id","%d"]`, vlan))
	}
	late := e.createActive(on(100, 1, 2))
	next, other := e.createLease(on(100, 3, 4)), e.createLease(on(101, 3, 4))
	e.setDates(late, -3*time.Hour, -2*time.Hour)
	e.beginStep(late.ID, lease.StepEnd)
	for _, l := range []lease.Lease{next, other} {
		e.setDates(l, -time.Hour, time.Hour)
	}

	e.advance(1)

	e.expectStatus(other, lease.Active)
	want := []lease.Blocker{{ID: late.ID, Name: "l", Project: "p", User: "u", Resource: lease.NetworkSegment}}
	got := e.readLease(next.ID)
	ignoreSince := cmpopts.IgnoreFields(lease.Blocker{}, "Since")
	if d := cmp.Diff(want, got.Blockers, ignoreSince); d != "" || got.Status != lease.Pending {
		t.Errorf("lease of a segment that another lease still holds: got %s with the blockers (-want +got):\n%s",
			got.Status, d)
	}

	storetest.Exec(t, e.url, `delete from note`)
	e.finishStep(late.ID, lease.StepEnd, nil)
	notes, err := e.Outbox.Claim(t.Context(), "", 10, time.Minute)
	if err != nil || len(notes) != 1 || notes[0].ID != contract.LeaseID(next.ID.String()) {
		t.Errorf("notes after the segment is released: got %+v, error %v; want one for the waiting lease", notes, err)
	}
	e.advance(1)
	e.expectStatus(next, lease.Active)
}

func TestLease_OfASegmentOfAFailedEndExpires(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	e.registerSegment(100)
	stuck := e.createActive(segmentDraft(1, 2, ""))
	blocked, last := e.createLease(segmentDraft(3, 4, "")), e.createLease(segmentDraft(5, 6, ""))
	e.setDates(stuck, -5*time.Hour, -4*time.Hour)
	e.setDates(blocked, -3*time.Hour, -2*time.Hour)
	e.setDates(last, -time.Hour, time.Hour)
	e.failEnd(stuck)
	if got := e.readLease(last.ID).Blockers; len(got) != 1 || got[0].ID != stuck.ID || !got[0].Stuck {
		t.Errorf("blockers of the last lease: got %+v, want only the lease whose end has failed", got)
	}

	if n, err := e.Lease.ExpireBlockedLeases(t.Context()); n != 1 || err != nil {
		t.Errorf("expire the blocked leases whose end is over: got %d, error %v; want 1", n, err)
	}

	got := e.readLease(blocked.ID)
	if r := got.Reservations[0]; got.Status != lease.Error || len(r.ResourceIDs) > 0 ||
		!strings.HasSuffix(r.LastError, "held a network segment") {
		t.Errorf("blocked lease after its end: got %s with %+v; want ERROR, no segment and the reason", got.Status, r)
	}
}

// The slots of a reservation of instances belong to no other reservation, so a lease that cannot release them
// must not keep the leases of other projects from their own slots on the same hosts.
func TestLease_InstancesThatCannotBeReleasedBlockNoOtherInstances(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]lease.Step{"end": lease.StepEnd, "deletion": lease.StepDelete} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newFixture(t, 1)
			held, next := e.createActive(instancesDraft(1, 2, 1)), e.createLease(instancesDraft(3, 4, 1))
			whole := e.createLease(hostsDraft(5, 6, 1, 1))
			e.setDates(held, -time.Hour, -30*time.Second)
			e.setDates(next, -20*time.Second, -10*time.Second)
			e.setDates(whole, -5*time.Second, time.Hour)
			e.beginRelease(held, step)
			expect := func(when string, l lease.Lease, blocked bool) {
				t.Helper()
				blocks := func(b lease.Blocker) bool { return b.ID == held.ID }
				if got := e.readLease(l.ID).Blockers; slices.ContainsFunc(got, blocks) != blocked {
					t.Errorf("blockers %s of the first lease: got %+v; want the first lease: %t", when, got, blocked)
				}
			}
			expect("soon after the end", next, true)

			failure := lease.CallError{Party: lease.PartyNova, Call: "DELETE", Err: errors.New("Nova answered 500")}
			if _, err := e.Lease.RecordCallFailure(t.Context(), held.Reservations[0].ID, failure, true); err != nil {
				t.Fatal(err)
			}
			storetest.Exec(t, e.url, `update reservation_failure set since = now() - interval '2 minutes'`)
			expect("after two minutes of failed calls for the end", next, false)
			expect("after two minutes of failed calls for the end", whole, true)

			storetest.Exec(t, e.url, `delete from reservation_failure`)
			expect("soon after the end", next, true)
			e.setDates(held, -time.Hour, -2*time.Minute)
			expect("two minutes after the end", next, false)
			expect("two minutes after the end", whole, true)
		})
	}
}
