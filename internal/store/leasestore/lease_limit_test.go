package leasestore_test

import (
	"testing"
	"time"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
)

func TestLeaseLimits_CleaningTimeBetweenLeases(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	e.Lease = leasestore.New(e.DB, leasestore.Config{
		Limits: lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead, CleaningTime: time.Hour},
	})
	first := e.createLease(hostsDraft(4, 6, 1, 1))
	e.expectCreateFault(hostsDraft(6, 8, 1, 1), lease.NotEnoughHosts)
	e.expectCreateFault(hostsDraft(2, 4, 1, 1), lease.NotEnoughHosts)
	early := hostsDraft(6, 8, 1, 1)
	early.Start.At = early.Start.At.Add(59 * time.Minute)
	e.expectCreateFault(early, lease.NotEnoughHosts)
	latest := hour(20)
	if l := e.planLease(hostsDraft(2, 4, 1, 1), &latest); !l.StartAt.Equal(hour(7)) ||
		!l.EndAt.Equal(hour(9)) {
		t.Errorf(
			"plan a lease of two hours after a lease that ends at hour 6, with a cleaning time of one hour: got %s to %s, want hour 7 to hour 9",
			l.StartAt,
			l.EndAt,
		)
	}

	e.createLease(hostsDraft(1, 3, 1, 1))
	e.createLease(hostsDraft(7, 8, 1, 1))
	e.expectUpdateFault(first.ID, endChange(7), lease.NotEnoughHosts)
	e.expectUpdateFault(first.ID,
		lease.Change{End: &lease.RequestedDate{At: hour(6).Add(time.Minute)}}, lease.NotEnoughHosts)
	if got := e.updateLease(first.ID, endChange(5)); !got.EndAt.Equal(hour(5)) {
		t.Errorf("shorten a lease from hour 6 to hour 5: got the end date %s, want hour 5", got.EndAt)
	}
}

func TestLeaseLimits_MaxDuration(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	e.Lease = leasestore.New(e.DB, leasestore.Config{
		Limits: lease.Limits{
			BeforeEndLead:  lease.DefaultBeforeEndLead,
			MaxDuration:    2 * time.Hour,
			ExemptProjects: []string{"lab"},
		},
	})
	e.expectCreateFault(hostsDraft(1, 4, 1, 1), lease.NotAuthorized)
	l := e.createLease(hostsDraft(1, 3, 1, 1))
	e.expectUpdateFault(l.ID, endChange(4), lease.InvalidInput)
	e.updateLease(l.ID,
		lease.Change{Start: &lease.RequestedDate{At: hour(2)}, End: &lease.RequestedDate{At: hour(4)}})
	exempt := hostsDraft(1, 9, 1, 1)
	exempt.Project = "lab"
	got := e.createLease(exempt)
	e.updateLease(got.ID, endChange(10))
	_, err := e.Lease.PlanLease(t.Context(), hostsDraft(1, 4, 1, 1), nil)
	if faultKind(err) != lease.NotAuthorized {
		t.Errorf(
			"plan a lease that is longer than the maximum duration: got error %v, want a fault of kind NotAuthorized",
			err,
		)
	}

	e.Lease = leasestore.New(e.DB, leasestore.Config{
		Limits: lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead, MaxDuration: time.Hour},
	})
	e.updateLease(l.ID, lease.Change{Name: new("still")})
	e.expectUpdateFault(l.ID, hostCountChange(l, 1, 2), lease.InvalidInput)
}

func TestLeaseLimits_BeforeEndLead(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
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
		t.Run(c.name, func(t *testing.T) {
			e := e.withT(t)
			e.Lease = leasestore.New(e.DB, leasestore.Config{Limits: lease.Limits{BeforeEndLead: c.lead}})
			d := hostsDraft(c.start, 4, 1, 1)
			d.BeforeEnd = c.beforeEnd
			l := e.createLease(d)
			var at time.Time
			for _, ev := range l.Events {
				if ev.Type == lease.BeforeEndLease {
					at = ev.At
				}
			}
			if !at.Equal(c.want) {
				t.Errorf("date of the before_end_lease event: got %s, want %s", at, c.want)
			}
			if moved := e.updateLease(l.ID, endChange(5)); len(moved.Events) != len(l.Events) {
				t.Errorf(
					"events after the end date changed: got %+v, want the same number of events as before",
					moved.Events,
				)
			}
			e.deleteLease(l.ID)
		})
	}
}

func TestLeaseLimits_RandomHosts(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 8)
	e.Lease = leasestore.New(e.DB, leasestore.Config{Limits: lease.Limits{RandomHosts: true}})
	used := map[int64]bool{}
	for range 40 {
		l := e.createLease(hostsDraft(1, 2, 1, 1))
		used[l.Reservations[0].Hosts[0]] = true
		e.deleteLease(l.ID)
	}
	if len(used) < 2 { // the test fails by chance with the probability 8^-39
		t.Errorf("hosts of 40 leases with random hosts: got %v, want at least two different hosts", used)
	}
}
