package leasestore_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

// registerSegment registers a VLAN of physnet1.
func (t *fixture) registerSegment(vlan int, capabilities ...string) lease.ReservableResource {
	t.Helper()
	values := map[string]string{
		"network_type":     "vlan",
		"physical_network": "physnet1",
		"segment_id":       fmt.Sprint(vlan),
	}
	for i := 0; i+1 < len(capabilities); i += 2 {
		values[capabilities[i]] = capabilities[i+1]
	}
	r, err := t.Lease.RegisterResource(t.Context(), lease.NetworkSegment, values)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func segmentDraft(from, to int, requirements string) lease.Draft {
	d := hostsDraft(from, to, 1, 1)
	d.Reservations = []lease.ReservationDraft{
		{
			Type:               lease.NetworkSegment,
			NetworkName:        "lab",
			NetworkDescription: "d",
			NetworkProperties:  requirements,
			BeforeEnd:          "default",
		},
	}
	return d
}

// createRunning creates an active lease that began an hour ago and ends in three hours.
func (t *fixture) createRunning(d lease.Draft) lease.Lease {
	t.Helper()
	l := t.createActive(d)
	t.setDates(l, -time.Hour, 3*time.Hour)
	return l
}

func (t *fixture) heldResources(l lease.Lease) []uuid.UUID {
	t.Helper()
	return t.readLease(l.ID).Reservations[0].ResourceIDs
}

func TestRegisteredResource_SegmentIsReservedOnceAtATime(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	segment := e.registerSegment(100)
	l := e.createLease(segmentDraft(1, 3, ""))
	if d := cmp.Diff([]uuid.UUID{segment.ID}, e.heldResources(l)); d != "" {
		t.Error(d)
	}
	r := e.readLease(l.ID).Reservations[0]
	if r.NetworkName != "lab" || r.NetworkDescription != "d" {
		t.Errorf("read the reservation: got name %q and description %q, want lab and d",
			r.NetworkName, r.NetworkDescription)
	}
	e.expectCreateFault(segmentDraft(2, 4, ""), lease.NotEnoughResources)
	e.createLease(segmentDraft(3, 4, "")) // adjacent dates do not overlap
	if _, err := storetest.Connect(t, e.url).Exec(t.Context(), `update resource_allocation set during = tstzrange(now(), now() + interval '1 year')`); err == nil {
		t.Error("reserve a segment twice at the same time by SQL: got no error, want the table to reject it")
	}
}

func TestRegisteredResource_ConcurrentCreationsGetEverySegmentOnce(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	const segments, writers = 3, 9
	for i := range segments {
		e.registerSegment(100 + i)
	}
	var all sync.WaitGroup
	errs := make(chan error, writers)
	for range writers {
		all.Go(func() {
			_, err := e.Lease.CreateLease(t.Context(), segmentDraft(1, 2, ""))
			errs <- err
		})
	}
	all.Wait()
	close(errs)
	won := 0
	for err := range errs {
		if err == nil {
			won++
		} else if faultKind(err) != lease.NotEnoughResources {
			t.Errorf("create one of several leases concurrently: got %v, want no error or a fault of kind NotEnoughResources", err)
		}
	}
	if won != segments {
		t.Errorf("segments reserved by concurrent creations: got %d, want %d", won, segments)
	}
}

func TestRegisteredResource_PendingReservationMovesAndActiveOneStays(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	first, second := e.registerSegment(100), e.registerSegment(101)
	l := e.createLease(segmentDraft(1, 3, ""))
	e.createLease(segmentDraft(4, 5, `["=","$segment_id","100"]`))
	longer := hostsDraft(1, 6, 1, 1)
	if _, err := e.Lease.UpdateLease(t.Context(), l.ID, lease.Change{End: &longer.End}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]uuid.UUID{second.ID}, e.heldResources(l)); d != "" {
		t.Errorf(
			"segment of a pending lease whose new dates another lease has reserved on segment %s (-want +got):\n%s",
			first.ID,
			d,
		)
	}

	active := e.createRunning(segmentDraft(1, 3, `["=","$segment_id","100"]`))
	_, err := e.Lease.UpdateLease(t.Context(), active.ID, lease.Change{End: &longer.End})
	if faultKind(err) != lease.NotEnoughResources {
		t.Errorf(
			"extend an active lease into a lease of the same segment: got %v, want a fault of kind NotEnoughResources",
			err,
		)
	}
	if d := cmp.Diff([]uuid.UUID{first.ID}, e.heldResources(active)); d != "" {
		t.Errorf("segment of the active lease (-want +got):\n%s", d)
	}
}

func TestRegisteredResource_FailedEndKeepsTheSegment(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	e.registerSegment(100)
	l := e.createActive(segmentDraft(1, 2, ""))
	e.failEnd(l)
	e.expectCreateFault(segmentDraft(100, 101, ""), lease.NotEnoughResources)
	if due := lease.Next(e.readLease(l.ID), l.EndAt); due.Step != lease.StepClear {
		t.Errorf("next step of a lease whose end has failed: got %s, want %s", due.Step, lease.StepClear)
	}
}

func TestRegisteredResource_EndReleasesTheSegment(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	segment := e.registerSegment(100)
	l := e.createActive(segmentDraft(1, 2, ""))
	r := l.Reservations[0].ID
	c, err := e.Lease.CloudReservation(t.Context(), r)
	if want := (lease.Segment{NetworkType: "vlan", PhysicalNetwork: "physnet1", ID: 100}); err != nil ||
		c.Segment != want {
		t.Fatalf("reservation for Neutron: got segment %v, error %v; want %v", c.Segment, err, want)
	}
	if err := e.Lease.SaveCloudIDs(t.Context(), r, lease.CloudIDs{Revision: c.Revision, NetworkID: "n"}); err != nil {
		t.Fatal(err)
	}
	if got := e.readLease(l.ID).Reservations[0].NetworkID; got != "n" {
		t.Errorf("ID of the reservation's network: got %q, want n", got)
	}
	err = e.Lease.DeleteResource(t.Context(), lease.NetworkSegment, segment.ID)
	if faultKind(err) != lease.ResourceInUse {
		t.Errorf("delete a reserved segment: got %v, want a fault of kind ResourceInUse", err)
	}
	e.beginStep(l.ID, lease.StepEnd)
	e.finishStep(l.ID, lease.StepEnd, nil)
	if held := e.heldResources(l); len(held) > 0 {
		t.Errorf("segments after the end: got %v, want none", held)
	}
	if err := e.Lease.DeleteResource(t.Context(), lease.NetworkSegment, segment.ID); err != nil {
		t.Errorf("delete a free segment: got %v, want no error", err)
	}
	err = e.Lease.DeleteResource(t.Context(), lease.NetworkSegment, segment.ID)
	if !errors.Is(err, db.ErrNotFound) {
		t.Errorf("delete a segment twice: got %v, want ErrNotFound", err)
	}
}

func TestRegisteredResource_DevicesGrowWhileActive(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	for i := range 3 {
		if _, err := e.Lease.RegisterResource(t.Context(), lease.Device, map[string]string{"name": fmt.Sprintf("iot-%d", i), "device_type": "container", "device_driver": "zun"}); err != nil {
			t.Fatal(err)
		}
	}
	e.registerSegment(100)
	d := hostsDraft(1, 2, 1, 1)
	d.Reservations = []lease.ReservationDraft{{
		Type:      lease.Device,
		Min:       2,
		Max:       2,
		BeforeEnd: "default",
	}}
	l := e.createRunning(d)
	held := e.heldResources(l)
	change := func(n int) error {
		_, err := e.Lease.UpdateLease(t.Context(), l.ID, lease.Change{
			Reservations: []lease.ReservationChange{
				{ID: l.Reservations[0].ID.String(), Min: &n, Max: &n},
			},
		})
		return err
	}
	if err := change(1); faultKind(err) != lease.NotEnoughResources {
		t.Errorf(
			"take a device from an active reservation: got %v, want a fault of kind NotEnoughResources",
			err,
		)
	}
	if err := change(4); faultKind(err) != lease.NotEnoughResources {
		t.Errorf("reserve more devices than there are: got %v, want a fault of kind NotEnoughResources", err)
	}
	if err := change(3); err != nil {
		t.Fatal(err)
	}
	now := e.heldResources(l)
	if err := lease.KeepsHeld(l.Reservations[0].ReservationDraft, held, now); err != nil || len(now) != 3 {
		t.Errorf("devices after the growth: got %v, want three with %v among them", now, held)
	}
}

func TestReservableResource_IdentityIsUnique(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	e.registerSegment(100)
	same := map[string]string{"network_type": "vlan", "physical_network": "physnet1", "segment_id": "100"}
	_, err := e.Lease.RegisterResource(t.Context(), lease.NetworkSegment, same)
	if faultKind(err) != lease.ResourceInUse {
		t.Errorf("register a segment twice: got %v, want a fault of kind ResourceInUse", err)
	}
	for _, physical := range []string{"physnet2", ""} {
		same["physical_network"] = physical
		if physical == "" {
			same["network_type"] = "vxlan"
		}
		if _, err := e.Lease.RegisterResource(t.Context(), lease.NetworkSegment, same); err != nil {
			t.Errorf("register segment %v: got %v, want no error", same, err)
		}
	}
	_, err = e.Lease.RegisterResource(t.Context(), lease.NetworkSegment, same)
	if faultKind(err) != lease.ResourceInUse {
		t.Errorf("register a VXLAN twice: got %v, want a fault of kind ResourceInUse", err)
	}
}

func TestReservableResource_RequiredCapabilityStays(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	segment := e.registerSegment(100, "rack", "r1", "note", "a")
	e.createLease(segmentDraft(1, 2, `["=","$rack","r1"]`))
	update := func(set map[string]string, unset ...string) error {
		_, err := e.Lease.UpdateResource(t.Context(), lease.NetworkSegment, segment.ID, set, unset)
		return err
	}
	if err := update(map[string]string{"rack": "r2"}); faultKind(err) != lease.ResourceInUse {
		t.Errorf(
			"change a capability that a reservation requires: got %v, want a fault of kind ResourceInUse",
			err,
		)
	}
	if err := update(map[string]string{"new": "b"}, "note"); err != nil {
		t.Errorf("change other capabilities: got %v, want no error", err)
	}
	got, err := e.Lease.ReservableResource(t.Context(), lease.NetworkSegment, segment.ID)
	if d := cmp.Diff(map[string]string{"rack": "r1", "new": "b"}, got.Capabilities); d != "" || err != nil {
		t.Errorf("capabilities: error %v (-want +got):\n%s", err, d)
	}
	_, err = e.Lease.UpdateResource(t.Context(), lease.Device, segment.ID, map[string]string{"a": "b"}, nil)
	if !errors.Is(err, db.ErrNotFound) {
		t.Errorf("update a segment as a device: got %v, want ErrNotFound", err)
	}
}

// The search for the first possible start tries the end of every allocation.
func TestPlanLease_StartsWhenASegmentIsReleased(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	e.registerSegment(100)
	first := e.createLease(segmentDraft(1, 3, ""))
	latest := hostsDraft(9, 10, 1, 1).Start.At
	if l := e.planLease(segmentDraft(2, 4, ""), &latest); !l.StartAt.Equal(first.EndAt) {
		t.Errorf("start of the planned lease: got %s, want the end %s of the other lease",
			l.StartAt, first.EndAt)
	}
}

// A process can create a network while another one deletes the lease. The repeated removal of the lease's
// reservations gets the ID of the network in any order.
func TestRegisteredResource_NetworkOfADeletedReservationIsKeptForItsRemoval(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]string{"before the deletion": "before", "after it": "after", "by Undo": "undo"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newFixture(t, 0)
			e.registerSegment(100)
			l := e.createActive(segmentDraft(1, 2, ""))
			r := l.Reservations[0].ID
			save := func(network string) {
				t.Helper()
				claim := lease.CloudReservation{Reservation: l.Reservations[0], Lease: l.ID, Project: l.Project}
				if err := e.Lease.SaveNeutronIDs(t.Context(), claim, leasestore.NeutronIDs{Network: network}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := e.Lease.DeleteLease(t.Context(), l.ID); err != nil {
				t.Fatal(err)
			}
			e.beginStep(l.ID, lease.StepDelete)
			if when == "before" {
				save("n")
			}
			c, err := e.Lease.EndingCloudReservation(t.Context(), r)
			if err != nil || when == "before" && c.NetworkID != "n" {
				t.Errorf("reservation of a lease that is being deleted: got network %q, error %v; want n", c.NetworkID, err)
			}
			e.release(l)
			if _, err := e.Lease.FinishLease(t.Context(), l.ID, lease.StepDelete, nil); err != nil {
				t.Fatal(err)
			}
			if when == "after" {
				save("n")
			}
			save("") // as for floating IPs: the stored ID stays
			c.NetworkID = ""
			if when == "undo" {
				c.NetworkID = "n"
			}
			if err := e.Lease.KeepLeftover(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			storetest.Exec(t, e.url, `update reservation_leftover set due_at = now()`)
			all, err := e.Lease.DueLeftovers(t.Context(), 10)
			if err != nil || len(all) != 1 || all[0].NetworkID != "n" || all[0].Segment.ID != 100 {
				t.Errorf("leftovers of the deleted lease: got %+v, error %v; want one with the network n and the segment 100",
					all, err)
			}
		})
	}
}

// The network of a reservation is recognised by its segment, also if its ID, its name and its tags are not
// known. That ends when berth begins to create the network of the next reservation of the segment.
func TestRegisteredResource_SegmentIsOfTheLastReservationThatBegan(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	e.registerSegment(100)
	l := e.createActive(segmentDraft(1, 2, ""))
	r := l.Reservations[0].ID
	begin := func(reservation uuid.UUID) error { return e.Lease.BeginNetwork(t.Context(), reservation) }
	read := func() lease.CloudReservation {
		t.Helper()
		c, err := e.Lease.CloudReservation(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := read(); c.NetworkBegun || !c.NeedsNetwork() {
		t.Errorf("reservation before its network is created: got %+v, want one that needs a network", c)
	}
	if err := begin(r); err != nil {
		t.Fatal(err)
	}
	c := read()
	if !c.NetworkBegun || c.NeedsNetwork() {
		t.Errorf("reservation whose network is being created: got %+v, want one that has begun", c)
	}
	if _, err := e.Lease.DeleteLease(t.Context(), l.ID); err != nil {
		t.Fatal(err)
	}
	e.beginStep(l.ID, lease.StepDelete)
	if err := begin(r); !errors.Is(err, db.ErrConflict) {
		t.Errorf("begin a network for a lease that is being deleted: got %v, want ErrConflict", err)
	}
	e.release(l)
	if _, err := e.Lease.FinishLease(t.Context(), l.ID, lease.StepDelete, nil); err != nil {
		t.Fatal(err)
	}
	next := e.createActive(segmentDraft(3, 4, ""))
	for _, want := range []bool{true, false} { // before and after the next reservation begins
		all := e.leftovers()
		if len(all) != 1 || all[0].NetworkBegun != want {
			t.Errorf("leftovers: got %+v, want one whose network has begun: %t", all, want)
		}
		again, err := e.Lease.RereadCloudReservation(t.Context(), c)
		if err != nil || again.NetworkBegun != want {
			t.Errorf("reservation that is read again: got %t, error %v; want %t", again.NetworkBegun, err, want)
		}
		if err := begin(next.Reservations[0].ID); err != nil {
			t.Fatal(err)
		}
	}
}

// After the end of a lease, operators can change the segment that a resource stands for.
func TestRegisteredResource_ChangedSegmentIsNotOfTheFormerReservation(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	segment := e.registerSegment(100)
	l := e.createActive(segmentDraft(1, 2, ""))
	if err := e.Lease.BeginNetwork(t.Context(), l.Reservations[0].ID); err != nil {
		t.Fatal(err)
	}
	c, err := e.Lease.CloudReservation(t.Context(), l.Reservations[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	e.beginStep(l.ID, lease.StepBeforeEnd)
	e.finishStep(l.ID, lease.StepBeforeEnd, nil)
	e.beginStep(l.ID, lease.StepEnd)
	e.release(l)
	e.finishStep(l.ID, lease.StepEnd, nil)
	if _, err := e.Lease.UpdateResource(t.Context(), lease.NetworkSegment, segment.ID, map[string]string{"segment_id": "101"}, nil); err != nil {
		t.Fatal(err)
	}
	if c, err = e.Lease.RereadCloudReservation(t.Context(), c); err != nil || c.NetworkBegun {
		t.Errorf("former reservation of the segment: got %+v, error %v; want one whose network has not begun", c, err)
	}
}
