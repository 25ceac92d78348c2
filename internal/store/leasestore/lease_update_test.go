package leasestore_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

func (t *fixture) updateLease(id uuid.UUID, c lease.Change) lease.Lease {
	t.Helper()
	l, err := t.Lease.UpdateLease(t.Context(), id, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.CheckStatus(l); err != nil {
		t.Errorf("check the statuses of an updated lease: got error %v, want none", err)
	}
	return l
}

// expectUpdateFault requests a change of a lease. The requested change must fail with a fault of the given
// kind, and the lease must be the same as before.
func (t *fixture) expectUpdateFault(id uuid.UUID, c lease.Change, kind lease.Kind) {
	t.Helper()
	before := t.readLease(id)
	if _, err := t.Lease.UpdateLease(t.Context(), id, c); faultKind(err) != kind {
		t.Errorf("update a lease: want a fault of kind %q, got %v", kind, err)
	}
	if d := cmp.Diff(before, t.readLease(id), cmpopts.EquateComparable(netip.Addr{})); d != "" {
		t.Errorf(
			"lease after a change that returned a fault: want the same lease as before (-before +after):\n%s",
			d,
		)
	}
}

func endChange(n int) lease.Change { return lease.Change{End: &lease.RequestedDate{At: hour(n)}} }

// hostCountChange returns a change of the minimum and maximum number of hosts of a lease's only reservation.
func hostCountChange(l lease.Lease, least, most int) lease.Change {
	return lease.Change{
		Reservations: []lease.ReservationChange{{ID: l.Reservations[0].ID.String(), Min: &least, Max: &most}},
	}
}

func TestLeaseUpdate_RenameInEveryStableStatus(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	for _, status := range []lease.Status{lease.Pending, lease.Active, lease.Error, lease.Terminated} {
		l := e.createInStatus(status)
		got := e.updateLease(l.ID, lease.Change{Name: new("new")})
		if got.Name != "new" || got.Status != status || got.UpdatedAt == nil {
			t.Errorf(
				"rename a lease in %s: got %+v, want the new name, the same status and a time of the update",
				status,
				got,
			)
		}
		e.expectUpdateFault(l.ID, lease.Change{Name: new("a\x00b")}, lease.InvalidInput)
		e.deleteLease(l.ID)
	}
	for _, status := range []lease.Status{lease.Starting, lease.Terminating, lease.Deleting} {
		l := e.createInStatus(status)
		e.expectUpdateFault(l.ID, lease.Change{Name: new("new")}, lease.InvalidStatus)
		e.deleteLease(l.ID)
	}
}

// createInStatus creates a lease of the fixture's only host, and executes the steps after which the lease has
// the given status.
func (t *fixture) createInStatus(status lease.Status) lease.Lease {
	t.Helper()
	l := t.createLease(hostsDraft(1, 2, 1, 1))
	switch status {
	case lease.Pending:
		return l
	case lease.Starting:
		t.makeDue(l)
		t.beginStep(l.ID, lease.StepStart)
		t.addToInventory(l)
	case lease.Error:
		t.makeDue(l)
		t.beginStep(l.ID, lease.StepStart)
		t.finishStep(l.ID, lease.StepStart, map[uuid.UUID]string{l.Reservations[0].ID: "no"})
	case lease.Deleting:
		t.makeDue(l)
		t.beginStep(l.ID, lease.StepStart)
		t.addToInventory(l)
		if gone, err := t.Lease.DeleteLease(t.Context(), l.ID); gone || err != nil {
			t.Fatalf("delete a starting lease: got gone %t, error %v; want false and no error", gone, err)
		}
		t.beginStep(l.ID, lease.StepDelete)
	default:
		t.makeDue(l)
		t.beginStep(l.ID, lease.StepStart)
		t.addToInventory(l)
		t.finishStep(l.ID, lease.StepStart, nil)
		if status == lease.Active {
			break
		}
		t.beginStep(l.ID, lease.StepEnd)
		if status == lease.Terminating {
			break
		}
		t.release(l)
		t.finishStep(l.ID, lease.StepEnd, nil)
	}
	l = t.readLease(l.ID)
	if l.Status != status {
		t.Fatalf("bring a lease to a status: want %s, got %s", status, l.Status)
	}
	return l
}

// deleteLease requests the deletion of a lease, and executes the deletion step of the lease, as the workflow
// of the lease does.
func (t *fixture) deleteLease(id uuid.UUID) {
	t.Helper()
	gone, err := t.Lease.DeleteLease(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if gone {
		return
	}
	l := t.beginStep(id, lease.StepDelete)
	t.release(l)
	if _, err := t.Lease.FinishLease(t.Context(), id, lease.StepDelete, nil); err != nil {
		t.Fatal(err)
	}
}

// If the commit of a deletion fails, DeleteLease must not report that the lease is deleted.
func TestLease_DeleteReportsFailedCommit(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	l := e.createLease(hostsDraft(1, 2, 1, 1))
	storetest.Exec(t, e.url, `
		create function refuse() returns trigger language plpgsql as $$ begin raise 'the disk is full'; end $$;
		create constraint trigger refuse after delete on lease deferrable initially deferred for each row execute function refuse()`)
	if gone, err := e.Lease.DeleteLease(t.Context(), l.ID); gone || err == nil {
		t.Errorf("delete a lease, and the commit fails: got gone %v, error %v; want false and an error",
			gone, err)
	}
	e.expectStatus(l, lease.Pending)
}

func TestLease_DeleteInEveryStatus(t *testing.T) {
	t.Parallel()
	for status, atOnce := range map[lease.Status]bool{
		lease.Pending:     true,
		lease.Terminated:  true,
		lease.Error:       false,
		lease.Starting:    false,
		lease.Active:      false,
		lease.Terminating: false,
		lease.Deleting:    false,
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			e := newFixture(t, 1)
			l := e.createInStatus(status)
			gone, err := e.Lease.DeleteLease(t.Context(), l.ID)
			if gone != atOnce || err != nil {
				t.Fatalf("delete a lease in %s: got gone %t, error %v; want gone %t and no error",
					status, gone, err, atOnce)
			}
			if !gone {
				_, err := e.Lease.BeginLease(t.Context(), l.ID, lease.StepStart)
				if !errors.Is(err, db.ErrConflict) {
					t.Errorf(
						"begin the start of a lease with a delete request: got error %v, want ErrConflict",
						err,
					)
				}
				err = e.Lease.AddToInventory(t.Context(), l.Reservations[0].ID)
				if !errors.Is(err, db.ErrConflict) {
					t.Errorf(
						"add the reservation of a lease with a delete request to Placement: got error %v, want ErrConflict",
						err,
					)
				}
				e.deleteLease(l.ID)
			}
			if _, err := e.Lease.DeleteLease(t.Context(), l.ID); !errors.Is(err, db.ErrNotFound) {
				t.Errorf("delete a lease twice: got error %v, want ErrNotFound", err)
			}
			if err := e.Lease.ReleaseReservation(t.Context(), l.Reservations[0].ID); err != nil {
				t.Errorf(
					"remove the reservation of a deleted lease from Placement: got error %v, want none",
					err,
				)
			}
			if want := "leases 0, reservations 0, events 0, host allocations 0, consumers 0, notes 1"; e.countRows() != want {
				t.Errorf("rows after the deletion of the lease: got %s, want only one note", e.countRows())
			}
			e.createLease(hostsDraft(1, 2, 1, 1))
		})
	}
}

func TestLeaseUpdate_ChangesDates(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	l := e.createLease(hostsDraft(2, 4, 1, 1))
	got := e.updateLease(l.ID,
		lease.Change{Start: &lease.RequestedDate{At: hour(3)}, End: &lease.RequestedDate{At: hour(6)}})
	times := map[lease.EventType]time.Time{}
	for _, ev := range got.Events {
		times[ev.Type] = ev.At
	}
	want := map[lease.EventType]time.Time{
		lease.StartLease:     hour(3),
		lease.BeforeEndLease: hour(5),
		lease.EndLease:       hour(6),
	}
	if d := cmp.Diff(want, times); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(l.Reservations[0].Hosts, got.Reservations[0].Hosts); d != "" {
		t.Errorf(
			"hosts of a lease whose new dates overlap only with its own old dates: want the same hosts as before (-before +after):\n%s",
			d,
		)
	}
	e.createLease(hostsDraft(2, 3, 2, 2)) // the old dates of the changed lease are free
	e.expectCreateFault(hostsDraft(5, 6, 2, 2), lease.NotEnoughHosts)
}

func TestLeaseUpdate_PendingLeaseMovesToAFreeHost(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	l := e.createLease(hostsDraft(1, 2, 1, 1))
	other := hostsDraft(2, 3, 1, 1)
	other.Reservations[0].HypervisorProperties = `["=","$hypervisor_hostname","cmp-1"]`
	e.createLease(other)
	got := e.updateLease(l.ID, endChange(3))
	if d := cmp.Diff([]int64{e.hosts[1].ID}, got.Reservations[0].Hosts); d != "" {
		t.Error(d)
	}
	e.expectUpdateFault(l.ID, hostCountChange(l, 2, 2), lease.NotEnoughHosts)
}

func TestLeaseUpdate_ShorterLeaseKeepsItsHosts(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	l := e.createLease(hostsDraft(2, 6, 1, 2))
	e.register("cmp-2", nil)
	had := l.Reservations[0].Hosts
	for _, c := range []lease.Change{
		{Start: &lease.RequestedDate{At: hour(3)}},
		{End: &lease.RequestedDate{At: hour(5)}},
		{Start: &lease.RequestedDate{At: hour(4)}, End: &lease.RequestedDate{At: hour(4)}},
		{Start: &lease.RequestedDate{At: hour(4)}, End: &lease.RequestedDate{At: hour(4)}},
		{BeforeEnd: nil, Reservations: []lease.ReservationChange{}},
	} {
		got := e.updateLease(l.ID, c)
		if d := cmp.Diff(had, got.Reservations[0].Hosts); d != "" || len(had) != 1 {
			t.Errorf(
				"hosts after the change %+v, which needs no other host: want the same host as before (-before +after):\n%s",
				c,
				d,
			)
		}
	}
	e.createLease(hostsDraft(2, 4, 2, 2))
	e.createLease(hostsDraft(5, 6, 2, 2))
}

func TestLeaseUpdate_ActiveLeaseKeepsItsHostsOrFails(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	l := e.createActiveUntil(3)
	next := hostsDraft(3, 5, 1, 1)
	next.Reservations[0].HypervisorProperties = `["=","$hypervisor_hostname","cmp-1"]`
	follower := e.createLease(next)
	e.expectUpdateFault(l.ID, endChange(4), lease.NotEnoughHosts)
	e.expectUpdateFault(l.ID, lease.Change{Start: &lease.RequestedDate{At: hour(1)}}, lease.InvalidInput)
	e.expectUpdateFault(l.ID, lease.Change{BeforeEnd: new(hour(9))}, lease.NotAuthorized)

	grown := e.updateLease(l.ID, hostCountChange(l, 1, 2))
	if len(grown.Reservations[0].Hosts) != 2 || len(e.inventoryHosts(l.Reservations[0].ID)) != 2 {
		t.Errorf("active lease that grew to two hosts: got the hosts %v, in Placement %v; want two of each",
			grown.Reservations[0].Hosts, e.inventoryHosts(l.Reservations[0].ID))
	}
	e.expectUpdateFault(l.ID, hostCountChange(l, 1, 1), lease.NotEnoughHosts)

	e.deleteLease(follower.ID)
	if got := e.updateLease(l.ID, endChange(4)); !got.EndAt.Equal(hour(4)) {
		t.Errorf("extend an active lease to hour 4: got the end date %s, want hour 4", got.EndAt)
	}
	e.expectCreateFault(hostsDraft(3, 4, 1, 1), lease.NotEnoughHosts)
	ended := e.updateLease(l.ID, lease.Change{End: &lease.RequestedDate{Now: true}})
	if due := lease.Next(ended, time.Now()); due.Step != lease.StepBeforeEnd {
		t.Errorf("next step after the end date was set to now: got %+v, want before_end; lease: %+v",
			due, ended)
	}
	// the new lease gets hosts, but its start waits until the ending lease releases them
	e.createLease(hostsDraft(1, 4, 2, 2))
}

// createActiveUntil creates a lease with one host from now to hour(to), and starts the lease.
func (t *fixture) createActiveUntil(to int) lease.Lease {
	t.Helper()
	d := hostsDraft(0, to, 1, 1)
	d.Start = lease.RequestedDate{Now: true}
	l := t.createLease(d)
	t.beginStep(l.ID, lease.StepStart)
	t.addToInventory(l)
	return t.finishStep(l.ID, lease.StepStart, nil)
}

func TestLeaseUpdate_ChangesReservations(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 3)
	l := e.createLease(hostsDraft(1, 2, 1, 3))
	if got := e.updateLease(l.ID, hostCountChange(l, 1, 1)); len(got.Reservations[0].Hosts) != 1 ||
		got.Reservations[0].Max != 1 {
		t.Errorf("reduce a reservation to one host: got %+v, want one host and the maximum 1",
			got.Reservations[0])
	}
	if got := e.updateLease(l.ID, hostCountChange(l, 2, 3)); len(got.Reservations[0].Hosts) != 3 {
		t.Errorf("increase a reservation to three hosts: got %+v, want three hosts", got.Reservations[0])
	}
	id := l.Reservations[0].ID.String()
	for kind, c := range map[lease.Kind]lease.ReservationChange{
		lease.MissingParameter:      {},
		lease.UnknownReservation:    {ID: uuid.NewString()},
		lease.CannotUpdate:          {ID: id, Type: new("virtual:instance")},
		lease.MalformedParameter:    {ID: id, Min: new(0)},
		lease.InvalidInput:          {ID: id, Min: new(4)},
		lease.MalformedRequirements: {ID: id, ResourceProperties: new(`["or"]`)},
		lease.NotEnoughHosts:        {ID: id, Min: new(4), Max: new(4)},
	} {
		e.expectUpdateFault(l.ID,
			lease.Change{Name: new("other"), Reservations: []lease.ReservationChange{c}}, kind)
	}
	moved := e.updateLease(l.ID, lease.Change{Reservations: []lease.ReservationChange{{
		ID:                   id,
		Min:                  new(1),
		Max:                  new(1),
		HypervisorProperties: new(`["=","$hypervisor_hostname","cmp-3"]`),
	}}})
	if d := cmp.Diff([]int64{e.hosts[2].ID}, moved.Reservations[0].Hosts); d != "" {
		t.Error(d)
	}
}

func TestLeaseUpdate_StatusLimitsChanges(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	l := e.createActiveUntil(2)
	e.expectUpdateFault(l.ID, lease.Change{Start: &lease.RequestedDate{At: hour(1)}}, lease.InvalidInput)
	terminated := newFixture(t, 1)
	l = terminated.createInStatus(lease.Terminated)
	terminated.expectUpdateFault(l.ID, endChange(5), lease.InvalidInput)
	terminated.expectUpdateFault(l.ID, hostCountChange(l, 1, 1), lease.InvalidInput)
}

func TestLeaseUpdate_RefusalOfPlacementNamesNoProvider(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	l := e.createActiveUntil(3)
	free := e.hosts[1]
	storetest.Exec(t, e.url, `
		update inventory set reserved = total
		where provider_id = (select id from provider where uuid = $1)`, free.NestedProvider.String())

	_, err := e.Lease.UpdateLease(t.Context(), l.ID, hostCountChange(l, 2, 2))

	if faultKind(err) != lease.HostInUse || strings.Contains(err.Error(), free.NestedProvider.String()) {
		t.Errorf("add a host that Placement does not give: got error %v, want a fault of kind %q without the UUID of a provider",
			err, lease.HostInUse)
	}
}
