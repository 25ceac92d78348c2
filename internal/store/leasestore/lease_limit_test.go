package leasestore_test

import (
	"testing"
	"time"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
)

func TestHostsAreCleanedBetweenLeases(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 1)
	e.Lease = leasestore.New(e.DB, leasestore.Config{Limits: lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead, CleaningTime: time.Hour}})
	first := e.create(hostsDraft(4, 6, 1, 1))
	e.refused(hostsDraft(6, 8, 1, 1), lease.NotEnoughHosts)
	e.refused(hostsDraft(2, 4, 1, 1), lease.NotEnoughHosts)
	early := hostsDraft(6, 8, 1, 1)
	early.Start.At = early.Start.At.Add(59 * time.Minute)
	e.refused(early, lease.NotEnoughHosts)
	latest := hour(20)
	if l := e.plan(hostsDraft(2, 4, 1, 1), &latest); !l.StartAt.Equal(hour(7)) || !l.EndAt.Equal(hour(9)) {
		t.Errorf("the slot is from %s to %s", l.StartAt, l.EndAt)
	}

	e.create(hostsDraft(1, 3, 1, 1))
	e.create(hostsDraft(7, 8, 1, 1))
	e.unchanged(first.ID, until(7), lease.NotEnoughHosts)
	e.unchanged(first.ID, lease.Change{End: &lease.RequestedDate{At: hour(6).Add(time.Minute)}}, lease.NotEnoughHosts)
	if got := e.update(first.ID, until(5)); !got.EndAt.Equal(hour(5)) {
		t.Errorf("ends at %s", got.EndAt)
	}
}

func TestLeasesAreNotLongerThanAllowed(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	e.Lease = leasestore.New(e.DB, leasestore.Config{Limits: lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead, MaxDuration: 2 * time.Hour, ExemptProjects: []string{"lab"}}})
	e.refused(hostsDraft(1, 4, 1, 1), lease.NotAuthorized)
	l := e.create(hostsDraft(1, 3, 1, 1))
	e.unchanged(l.ID, until(4), lease.InvalidInput)
	e.update(l.ID, lease.Change{Start: &lease.RequestedDate{At: hour(2)}, End: &lease.RequestedDate{At: hour(4)}})
	exempt := hostsDraft(1, 9, 1, 1)
	exempt.Project = "lab"
	got := e.create(exempt)
	e.update(got.ID, until(10))
	if _, err := e.Lease.PlanLease(t.Context(), hostsDraft(1, 4, 1, 1), nil); faultKind(err) != lease.NotAuthorized {
		t.Errorf("planned: %v", err)
	}

	e.Lease = leasestore.New(e.DB, leasestore.Config{Limits: lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead, MaxDuration: time.Hour}})
	e.update(l.ID, lease.Change{Name: new("still")})
	e.unchanged(l.ID, sized(l, 1, 2), lease.InvalidInput)
}

func TestOperatorDecidesWhetherLeasesAreWarned(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	for _, c := range []struct {
		name      string
		lead      time.Duration
		start     int
		beforeEnd *time.Time
		want      time.Time
	}{
		{"an hour before the end", time.Hour, 1, nil, hour(3)},
		{"at the start, if the lease is shorter than that", 9 * time.Hour, 1, nil, hour(1)},
		{"never", 0, 1, nil, time.Time{}},
		{"when the lease says", 0, 1, new(hour(2)), hour(2)},
	} {
		e.Lease = leasestore.New(e.DB, leasestore.Config{Limits: lease.Limits{BeforeEndLead: c.lead}})
		d := hostsDraft(c.start, 4, 1, 1)
		d.BeforeEnd = c.beforeEnd
		l := e.create(d)
		var at time.Time
		for _, ev := range l.Events {
			if ev.Type == lease.BeforeEndLease {
				at = ev.At
			}
		}
		if !at.Equal(c.want) {
			t.Errorf("%s: %s instead of %s", c.name, at, c.want)
		}
		if moved := e.update(l.ID, until(5)); len(moved.Events) != len(l.Events) {
			t.Errorf("%s: after a change %+v", c.name, moved.Events)
		}
		e.delete(l.ID)
	}
}

func TestEquallyGoodHostsAreChosenAtRandomIfTheOperatorWishes(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 8)
	e.Lease = leasestore.New(e.DB, leasestore.Config{Limits: lease.Limits{RandomHosts: true}})
	used := map[int64]bool{}
	for range 40 {
		l := e.create(hostsDraft(1, 2, 1, 1))
		used[l.Reservations[0].Hosts[0]] = true
		e.delete(l.ID)
	}
	if len(used) < 2 { // by chance once in 8 to the 39th
		t.Errorf("always host %v", used)
	}
}
