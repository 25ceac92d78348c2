package leasestore_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/lease"
)

func (t *leasing) plan(d lease.Draft, latest *time.Time) lease.Lease {
	t.Helper()
	before := t.rows()
	l, err := t.Lease.PlanLease(t.Context(), d, latest)
	if err != nil {
		t.Fatal(err)
	}
	if after := t.rows(); before != after {
		t.Errorf("a plan left rows: %s, before %s", after, before)
	}
	return l
}

func TestPlanIsWhatACreationGetsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 3)
	e.create(hostsDraft(1, 2, 1, 1))
	d := hostsDraft(1, 2, 1, 2)
	planned := e.plan(d, nil)
	created := e.create(d)
	if diff := cmp.Diff(planned.Reservations[0].Hosts, created.Reservations[0].Hosts); diff != "" || len(planned.Reservations[0].Hosts) != 2 {
		t.Errorf("planned: %v, %s", planned.Reservations[0].Hosts, diff)
	}
	if _, err := e.Lease.PlanLease(t.Context(), hostsDraft(1, 2, 1, 1), nil); faultKind(err) != lease.NotEnoughHosts {
		t.Errorf("planned where no host is free: %v", err)
	}
	if _, err := e.Lease.PlanLease(t.Context(), hostsDraft(2, 1, 1, 1), nil); faultKind(err) != lease.InvalidInput {
		t.Errorf("planned with its end before its start: %v", err)
	}
}

func TestSlotIsTheFirstThatFits(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	e.create(hostsDraft(1, 3, 2, 2)) // both
	e.create(hostsDraft(4, 6, 1, 1)) // one of them
	latest := hour(9)
	for _, c := range []struct {
		name         string
		d            lease.Draft
		latest       time.Time
		begin, until int // hours
	}{
		{"fits at once", hostsDraft(0, 1, 2, 2), latest, 0, 1},
		{"after both left", hostsDraft(1, 2, 1, 1), latest, 3, 4},
		{"too long for the gap of two", hostsDraft(1, 3, 2, 2), latest, 6, 8},
		{"one host does not mind", hostsDraft(0, 5, 1, 1), latest, 3, 8},
		{"on the last start", hostsDraft(1, 2, 1, 1), hour(3), 3, 4},
	} {
		l := e.plan(c.d, &c.latest)
		if !l.StartAt.Equal(hour(c.begin)) || !l.EndAt.Equal(hour(c.until)) || len(l.Reservations[0].Hosts) < c.d.Reservations[0].Min {
			t.Errorf("%s: from %s to %s on %v", c.name, l.StartAt, l.EndAt, l.Reservations[0].Hosts)
		}
	}
	for name, c := range map[string]struct {
		d      lease.Draft
		latest time.Time
		kind   lease.Kind
	}{
		"before anybody leaves": {hostsDraft(1, 2, 1, 1), hour(2), lease.NotEnoughHosts},
		"after the last start":  {hostsDraft(7, 8, 1, 1), hour(6), lease.InvalidInput},
		"more than there are":   {hostsDraft(1, 2, 3, 3), latest, lease.NotEnoughHosts},
	} {
		if _, err := e.Lease.PlanLease(t.Context(), c.d, &c.latest); faultKind(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	several := hostsDraft(1, 2, 1, 1)
	several.Reservations = append(several.Reservations, several.Reservations[0], several.Reservations[0])
	if _, err := e.Lease.PlanLease(t.Context(), several, &latest); faultKind(err) != lease.NotEnoughHosts {
		t.Errorf("three reservations share two hosts: %v", err)
	}
}

func TestNoSlotOnAHostThatWasNotLeft(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	l := e.active(hostsDraft(1, 2, 1, 1))
	e.begin(l.ID, lease.StepEnd)
	e.finish(l.ID, lease.StepEnd, map[uuid.UUID]string{l.Reservations[0].ID: "no"})
	e.create(hostsDraft(1, 3, 1, 1)) // the other
	latest := hour(9)
	got := e.plan(hostsDraft(1, 2, 1, 1), &latest)
	if !got.StartAt.Equal(hour(3)) {
		t.Errorf("from %s", got.StartAt)
	}
	if _, err := e.Lease.PlanLease(t.Context(), hostsDraft(1, 2, 2, 2), &latest); faultKind(err) != lease.NotEnoughHosts {
		t.Error(err)
	}
}

func TestSlotIsFoundForWhatIsSharedToo(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 1)
	net := e.addresses(2)
	e.create(instancesDraft(1, 4, 3)) // of four
	e.create(instancesDraft(2, 3, 1))
	e.create(addressesDraft(net, 1, 5, 1))
	both := instancesDraft(1, 2, 1)
	both.Reservations = append(both.Reservations, addressesDraft(net, 1, 2, 2).Reservations...)
	latest := hour(9)
	for name, c := range map[string]struct {
		d            lease.Draft
		begin, until int // hours
	}{
		"one instance beside the others":  {instancesDraft(1, 2, 1), 1, 2},
		"one for longer":                  {instancesDraft(1, 3, 1), 3, 5},
		"more than are left":              {instancesDraft(1, 2, 2), 4, 5},
		"a free address":                  {addressesDraft(net, 1, 2, 1), 1, 2},
		"all addresses":                   {addressesDraft(net, 1, 2, 2), 5, 6},
		"both":                            {both, 5, 6},
		"the host alone, without others":  {hostsDraft(1, 2, 1, 1), 4, 5},
		"later than the first of its own": {instancesDraft(3, 4, 1), 3, 4},
	} {
		l := e.plan(c.d, &latest)
		if !l.StartAt.Equal(hour(c.begin)) || !l.EndAt.Equal(hour(c.until)) {
			t.Errorf("%s: from %s to %s", name, l.StartAt, l.EndAt)
		}
	}
	soon := hour(4)
	for name, c := range map[string]struct {
		d    lease.Draft
		kind lease.Kind
	}{
		"more instances than there is room for": {instancesDraft(1, 2, 5), lease.NotEnoughHosts},
		"more addresses than there are":         {addressesDraft(net, 1, 2, 3), lease.NotEnoughAddresses},
		"not so soon":                           {addressesDraft(net, 1, 2, 2), lease.NotEnoughAddresses},
		"of no network":                         {addressesDraft(uuid.New(), 1, 2, 1), lease.NotEnoughAddresses},
	} {
		if _, err := e.Lease.PlanLease(t.Context(), c.d, &soon); faultKind(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}
