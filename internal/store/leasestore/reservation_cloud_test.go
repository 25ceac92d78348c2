package leasestore_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

func TestReservationCloud_AdvanceStoresCloudIDs(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	l := e.createLease(hostsDraft(1, 2, 2, 2))
	e.startDue(l)
	var claims [][]lease.CloudReservation
	apply := func(begun []leasestore.StartedStep) []leasestore.StartedStep {
		for i, b := range begun {
			claims = append(claims, b.CloudReservations)
			begun[i].CloudIDs = map[uuid.UUID]lease.CloudIDs{
				b.CloudReservations[0].ID: {AggregateID: new(int64(7)), ServerGroupID: "group"},
			}
		}
		return begun
	}

	if n, err := e.advanceAll(apply); n != 1 || err != nil {
		t.Errorf("steps finished: got %d, error %v; want 1", n, err)
	}

	l = e.readLease(l.ID)
	if r := l.Reservations[0]; l.Status != lease.Active || r.AggregateID == nil || *r.AggregateID != 7 ||
		r.ServerGroupID != "group" {
		t.Errorf(
			"lease after its start: got %+v, want ACTIVE with the IDs of the aggregate and the server group",
			l,
		)
	}
	want, err := e.Lease.CloudReservation(t.Context(), l.Reservations[0].ID)
	if err != nil || len(want.ComputeHosts) != 2 {
		t.Fatalf("data of a reservation for Nova and Neutron: got %+v, error %v; want two hosts", want, err)
	}
	for _, c := range claims {
		if d := cmp.Diff(want.ComputeHosts, c[0].ComputeHosts); d != "" || c[0].Project != l.Project || c[0].Lease != l.ID {
			t.Errorf(
				"hosts in the data for Nova and Neutron (-want +got):\n%s\nreservation %+v, want the project and the ID of the lease",
				d,
				c[0],
			)
		}
	}
}

func TestReservationCloud_SaveCloudIDsIgnoresOtherRevisions(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	l := e.createActive(hostsDraft(1, 2, 1, 1))
	r := l.Reservations[0]
	storetest.Exec(t, e.url, `update reservation set shaped = 3, shape = 5 where id = $1`, r.ID)
	// only revision 4 is between the stored revision 3 and the current revision 5
	for _, shape := range []int64{4, 3, 6} {
		if err := e.Lease.SaveCloudIDs(t.Context(), r.ID, lease.CloudIDs{Revision: shape, AggregateID: new(10 * shape)}); err != nil {
			t.Error(err)
		}
	}

	if r = e.readLease(l.ID).Reservations[0]; r.CloudRevision != 4 || r.Revision != 5 ||
		r.AggregateID == nil ||
		*r.AggregateID != 40 {
		t.Errorf(
			"reservation after SaveCloudIDs with the revisions 4, 3 and 6: got %+v, want only revision 4 stored",
			r,
		)
	}
}

// A user can move the before_end_lease event any number of times; package cloud limits what its runs create.
func TestReservationCloud_RunsOfAMovedEventAreCounted(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	l := e.createActiveUntil(3)
	for run := range 3 {
		storetest.Exec(t, e.url, `update event set at = now() where lease_id = $1 and event_type = 'before_end_lease'`, l.ID)
		for range 2 { // repeated after a crash
			e.beginStep(l.ID, lease.StepBeforeEnd)
		}
		c, err := e.Lease.CloudReservation(t.Context(), l.Reservations[0].ID)
		if err != nil || c.BeforeEndRuns != run+1 {
			t.Errorf("runs of the event: got %d, error %v; want %d", c.BeforeEndRuns, err, run+1)
		}
		e.finishStep(l.ID, lease.StepBeforeEnd, nil)
		later := l.EndAt.Add(-time.Duration(run+1) * time.Minute)
		e.updateLease(l.ID, lease.Change{BeforeEnd: &later})
	}
}

// A revision that is read again shows an attempt that the reservation has changed, or is gone.
func TestReservationCloud_RevisionIsReadAgain(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	l := e.createActiveUntil(2)
	c, err := e.Lease.CloudReservation(t.Context(), l.Reservations[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	reread := func() int64 {
		t.Helper()
		now, err := e.Lease.RereadCloudReservation(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return now.Revision
	}
	if got := reread(); got != c.Revision {
		t.Errorf("revision of an unchanged reservation: got %d, want %d", got, c.Revision)
	}
	e.updateHostsAndHeal(map[string]bool{"cmp-1": false}, 0)
	if got := reread(); got == c.Revision {
		t.Errorf("revision after a host was replaced: got %d again, want another one", got)
	}
	c.ID = uuid.New()
	if got := reread(); got == c.Revision {
		t.Errorf("revision of a reservation that is gone: got %d again, want another one", got)
	}
}
