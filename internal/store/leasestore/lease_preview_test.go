package leasestore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
)

func (t *fixture) planLease(d lease.Draft, latest *time.Time) lease.Lease {
	t.Helper()
	before := t.countRows()
	l, err := t.Lease.PlanLease(t.Context(), d, latest)
	if err != nil {
		t.Fatal(err)
	}
	if after := t.countRows(); before != after {
		t.Errorf("rows after a preview: got %s, want the same as before: %s", after, before)
	}
	return l
}

func TestLeasePreview_EqualsTheCreatedLeaseAndLeavesNoRows(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 3)
	e.createLease(hostsDraft(1, 2, 1, 1))
	d := hostsDraft(1, 2, 1, 2)
	planned := e.planLease(d, nil)
	created := e.createLease(d)
	if diff := cmp.Diff(planned.Reservations[0].Hosts, created.Reservations[0].Hosts); diff != "" ||
		len(planned.Reservations[0].Hosts) != 2 {
		t.Errorf(
			"hosts of the planned lease: got %v; want two hosts, and no difference to the created lease: %s",
			planned.Reservations[0].Hosts,
			diff,
		)
	}
	_, err := e.Lease.PlanLease(t.Context(), hostsDraft(1, 2, 1, 1), nil)
	if faultKind(err) != lease.NotEnoughHosts {
		t.Errorf(
			"preview of a lease without a free host: got error %v, want a fault of kind NotEnoughHosts",
			err,
		)
	}
	_, err = e.Lease.PlanLease(t.Context(), hostsDraft(2, 1, 1, 1), nil)
	if faultKind(err) != lease.InvalidInput {
		t.Errorf(
			"preview of a lease with the end before the start: got error %v, want a fault of kind InvalidInput",
			err,
		)
	}
}

func TestLeasePreview_FindsTheEarliestStart(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	e.createLease(hostsDraft(1, 3, 2, 2)) // both hosts
	e.createLease(hostsDraft(4, 6, 1, 1)) // one of the two hosts
	latest := hour(9)
	for _, c := range []struct {
		name         string
		d            lease.Draft
		latest       time.Time
		begin, until int // hours
	}{
		{"free at the requested start", hostsDraft(0, 1, 2, 2), latest, 0, 1},
		{"after the end of the first lease", hostsDraft(1, 2, 1, 1), latest, 3, 4},
		{"longer than the gap with two free hosts", hostsDraft(1, 3, 2, 2), latest, 6, 8},
		{"one host is free during the second lease", hostsDraft(0, 5, 1, 1), latest, 3, 8},
		{"at the latest start", hostsDraft(1, 2, 1, 1), hour(3), 3, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := e.withT(t).planLease(c.d, &c.latest)
			if !l.StartAt.Equal(hour(c.begin)) || !l.EndAt.Equal(hour(c.until)) ||
				len(l.Reservations[0].Hosts) < c.d.Reservations[0].Min {
				t.Errorf(
					"earliest possible dates: got %s to %s on the hosts %v, want the hours of the test case and enough hosts",
					l.StartAt, l.EndAt, l.Reservations[0].Hosts,
				)
			}
		})
	}
	for name, c := range map[string]struct {
		d      lease.Draft
		latest time.Time
		kind   lease.Kind
	}{
		"latest start before the first end": {hostsDraft(1, 2, 1, 1), hour(2), lease.NotEnoughHosts},
		"start after the latest start":      {hostsDraft(7, 8, 1, 1), hour(6), lease.InvalidInput},
		"more hosts than registered":        {hostsDraft(1, 2, 3, 3), latest, lease.NotEnoughHosts},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := e.Lease.PlanLease(t.Context(), c.d, &c.latest); faultKind(err) != c.kind {
				t.Errorf("preview of a lease until the latest start: want a fault of kind %q, got %v",
					c.kind, err)
			}
		})
	}
	several := hostsDraft(1, 2, 1, 1)
	several.Reservations = append(several.Reservations, several.Reservations[0], several.Reservations[0])
	if _, err := e.Lease.PlanLease(t.Context(), several, &latest); faultKind(err) != lease.NotEnoughHosts {
		t.Errorf(
			"preview of a lease with three reservations on two hosts: got error %v, want a fault of kind NotEnoughHosts",
			err,
		)
	}
}

func TestLeasePreview_SkipsHostsWithAFailedEnd(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	l := e.createActive(hostsDraft(1, 2, 1, 1))
	e.beginStep(l.ID, lease.StepEnd)
	e.finishStep(l.ID, lease.StepEnd, map[uuid.UUID]string{l.Reservations[0].ID: "no"})
	e.createLease(hostsDraft(1, 3, 1, 1)) // the other host
	latest := hour(9)
	got := e.planLease(hostsDraft(1, 2, 1, 1), &latest)
	if !got.StartAt.Equal(hour(3)) {
		t.Errorf(
			"earliest possible start if one host's lease has failed to end and the other host is leased until hour 3: got %s, want hour 3",
			got.StartAt,
		)
	}
	_, err := e.Lease.PlanLease(t.Context(), hostsDraft(1, 2, 2, 2), &latest)
	if faultKind(err) != lease.NotEnoughHosts {
		t.Error(err)
	}
}

func TestLeasePreview_FindsTheEarliestStartOfSharedResources(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	net := e.registerAddresses(2)
	e.createLease(instancesDraft(1, 4, 3)) // of four slots
	e.createLease(instancesDraft(2, 3, 1))
	e.createLease(addressesDraft(net, 1, 5, 1))
	both := instancesDraft(1, 2, 1)
	both.Reservations = append(both.Reservations, addressesDraft(net, 1, 2, 2).Reservations...)
	latest := hour(9)
	for name, c := range map[string]struct {
		d            lease.Draft
		begin, until int // hours
	}{
		"one instance in the last slot":  {instancesDraft(1, 2, 1), 1, 2},
		"one instance for two hours":     {instancesDraft(1, 3, 1), 3, 5},
		"more instances than free slots": {instancesDraft(1, 2, 2), 4, 5},
		"a free address":                 {addressesDraft(net, 1, 2, 1), 1, 2},
		"all addresses":                  {addressesDraft(net, 1, 2, 2), 5, 6},
		"instances and addresses":        {both, 5, 6},
		"the whole host":                 {hostsDraft(1, 2, 1, 1), 4, 5},
		"with its start at a release":    {instancesDraft(3, 4, 1), 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			l := e.withT(t).planLease(c.d, &latest)
			if !l.StartAt.Equal(hour(c.begin)) || !l.EndAt.Equal(hour(c.until)) {
				t.Errorf("earliest possible dates: got %s to %s, want the hours of the test case",
					l.StartAt, l.EndAt)
			}
		})
	}
	soon := hour(4)
	for name, c := range map[string]struct {
		d    lease.Draft
		kind lease.Kind
	}{
		"more instances than slots":          {instancesDraft(1, 2, 5), lease.NotEnoughHosts},
		"more addresses than registered":     {addressesDraft(net, 1, 2, 3), lease.NotEnoughAddresses},
		"no address before the latest start": {addressesDraft(net, 1, 2, 2), lease.NotEnoughAddresses},
		"unknown network":                    {addressesDraft(uuid.New(), 1, 2, 1), lease.NotEnoughAddresses},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := e.Lease.PlanLease(t.Context(), c.d, &soon); faultKind(err) != c.kind {
				t.Errorf("preview of a lease until the latest start: want a fault of kind %q, got %v",
					c.kind, err)
			}
		})
	}
}

// The budget is so short that the search tries only the first start.
func TestLeasePreview_SearchEndsWithItsBudget(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	e.createLease(hostsDraft(1, 3, 1, 1))
	e.Lease = leasestore.New(e.DB, leasestore.Config{PlanBudget: time.Nanosecond})
	latest := hour(9)
	for name, draft := range map[string]func(begin, until int) lease.Draft{
		"hosts":     func(begin, until int) lease.Draft { return hostsDraft(begin, until, 1, 1) },
		"instances": func(begin, until int) lease.Draft { return instancesDraft(begin, until, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			if l := e.withT(t).planLease(draft(4, 5), &latest); !l.StartAt.Equal(hour(4)) {
				t.Errorf("start of a plan whose first start is free: got %s, want hour 4", l.StartAt)
			}
			_, err := e.Lease.PlanLease(t.Context(), draft(1, 2), &latest)
			if faultKind(err) != lease.SearchTooLong ||
				!strings.Contains(err.Error(), "no start before "+hour(3).Format(time.RFC3339)) {
				t.Errorf(
					"plan whose first start is not free: got error %v, want a fault of the kind SearchTooLong that names hour 3",
					err,
				)
			}
		})
	}
}
