package leasestore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

func TestLease_OneOfManyWritersGetsTheLastHost(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	const writers = 16
	var all sync.WaitGroup
	start, errs := make(chan struct{}), make(chan error, writers)
	for range writers {
		all.Go(func() {
			<-start
			_, err := e.Lease.CreateLease(t.Context(), hostsDraft(1, 2, 1, 1))
			errs <- err
		})
	}
	close(start)
	all.Wait()
	close(errs)
	won := 0
	for err := range errs {
		if err == nil {
			won++
		} else if faultKind(err) != lease.NotEnoughHosts {
			t.Errorf("create one of several leases concurrently: got error %v, want none or a fault of kind NotEnoughHosts", err)
		}
	}
	if want := "leases 1, reservations 1, events 3, host allocations 1, consumers 0, notes 1"; won != 1 ||
		e.countRows() != want {
		t.Errorf(
			"concurrent creations for the last host: got %d successes, rows: %s; want one success and the rows of one lease",
			won,
			e.countRows(),
		)
	}
}

func TestLease_ConcurrentCreationsGetAllHosts(t *testing.T) {
	t.Parallel()
	const hosts = 12
	e := newFixture(t, hosts)
	var all sync.WaitGroup
	for range hosts {
		all.Go(func() {
			if _, err := e.Lease.CreateLease(t.Context(), hostsDraft(1, 2, 1, 1)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	e.expectCreateFault(hostsDraft(1, 2, 1, 1), lease.NotEnoughHosts)
}

func TestHostAllocation_TableRejectsOverlap(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	a := e.createLease(hostsDraft(1, 3, 1, 1))
	b := e.createLease(hostsDraft(3, 5, 1, 1)) // adjacent dates do not overlap
	_, err := storetest.Connect(t, e.url).Exec(t.Context(), `
		update host_allocation set during = (select during from host_allocation where reservation_id = $1)
		where reservation_id = $2`, a.Reservations[0].ID, b.Reservations[0].ID)
	if err == nil {
		t.Error(
			"allocate one host to two reservations at the same time by SQL: got no error, want the table to reject it",
		)
	}
}

// Several workers execute the steps of the same leases at the same time, as after crashes and timeouts. At
// the same time, clients rename and delete the leases, a loop advances all leases, and the start of each
// lease waits until the earlier lease on the same host has released the host.
func TestLease_ConcurrentWorkersKeepStatusesConsistent(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	const leases, workers = 6, 3
	all := make([]lease.Lease, leases)
	first := time.Now().Truncate(time.Second).Add(time.Hour)
	for i := range all {
		// The six leases use two hosts; on each host, a lease begins when the lease before it ends.
		from := first.Add(time.Duration(i/2) * time.Second)
		all[i] = e.createLease(lease.Draft{
			Name:         "l",
			User:         "u",
			Project:      "p",
			Start:        lease.RequestedDate{At: from},
			End:          lease.RequestedDate{At: from.Add(time.Second)},
			BeforeEnd:    new(from.Add(time.Second / 2)),
			Reservations: []lease.ReservationDraft{{Type: lease.PhysicalHost, Min: 1, Max: 1}},
		})
	}
	e.moveAllLeases(first, time.Now().Truncate(time.Second).Add(2*time.Second))
	var clients sync.WaitGroup
	for i, l := range all {
		for range workers {
			clients.Go(func() { e.runSteps(l.ID) })
		}
		clients.Go(func() { e.renameAndDelete(l.ID, i%2 == 0) })
	}
	over, stop := context.WithCancel(t.Context())
	var loop sync.WaitGroup
	loop.Go(func() {
		for over.Err() == nil {
			if _, err := e.advanceOnce(nil); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	clients.Wait()
	stop()
	loop.Wait()

	left := e.allLeases("")
	for _, l := range left {
		if l.Status != lease.Terminated || len(l.Reservations[0].Hosts) != 0 {
			t.Errorf("lease after all workers have finished: got %+v, want TERMINATED without hosts", l)
		}
		for _, ev := range l.Events {
			if late := ev.UpdatedAt.Sub(ev.At); ev.Status != lease.EventDone || late < -lease.ClockSkew {
				t.Errorf(
					"event %s: got status %s, changed %s after its date; want DONE, and not earlier than its date minus the clock skew",
					ev.Type, ev.Status, late,
				)
			}
		}
	}
	if len(left) != leases/2 {
		t.Errorf("number of leases that are left: got %d, want half of the created leases", len(left))
	}
	var consumers int
	if err := storetest.Connect(t, e.url).QueryRow(t.Context(), `select count(*) from consumer`).Scan(&consumers); err != nil ||
		consumers != 0 {
		t.Errorf("consumers in Placement after all leases have ended: got %d, error %v; want none",
			consumers, err)
	}
}

// moveAllLeases shifts the dates of all leases, events and allocations by the difference between `from` and
// `to`. The test creates the leases with dates in one hour and then shifts all dates together to the present,
// so that the duration of the creations does not matter.
func (t *fixture) moveAllLeases(from, to time.Time) {
	t.Helper()
	storetest.Exec(t.T, t.url, `
		with leases as (update lease set start_at = start_at - $1::interval, end_at = end_at - $1::interval),
			events as (update event set at = at - $1::interval)
		update host_allocation set during = tstzrange(lower(during) - $1::interval, upper(during) - $1::interval)`, from.Sub(to))
}

// runSteps executes the due steps of a lease, as the workflow of the lease does, until no step remains.
func (t *fixture) runSteps(id uuid.UUID) {
	for {
		l, err := t.Lease.Lease(t.Context(), id)
		if errors.Is(err, db.ErrNotFound) {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		if err := lease.CheckStatus(l); err != nil {
			t.Errorf("check the statuses of a lease between its steps: got error %v, want none", err)
		}
		due := lease.Next(l, time.Now())
		switch due.Step {
		case lease.StepStop:
			return
		case lease.StepWait:
			time.Sleep(min(time.Until(due.At), 20*time.Millisecond))
			continue
		}
		if err := t.executeStep(id, due.Step); err != nil && !errors.Is(err, db.ErrConflict) &&
			!errors.Is(err, db.ErrNotFound) {
			t.Errorf(
				"execute the step %s of a lease: got error %v, want none, ErrConflict or ErrNotFound",
				due.Step,
				err,
			)
		}
	}
}

func (t *fixture) executeStep(id uuid.UUID, step lease.Step) error {
	l, err := t.Lease.BeginLease(t.Context(), id, step)
	if err != nil {
		return err
	}
	for _, r := range l.Reservations {
		switch step {
		case lease.StepStart:
			err = t.Lease.AddToInventory(t.Context(), r.ID)
		case lease.StepEnd, lease.StepDelete:
			err = t.Lease.ReleaseReservation(t.Context(), r.ID)
		}
		if err != nil {
			return err
		}
	}
	_, err = t.Lease.FinishLease(t.Context(), id, step, nil)
	return err
}

// renameAndDelete renames a lease repeatedly until the lease has ended. If `deleteStarted` is true,
// renameAndDelete deletes the lease after the lease has started.
func (t *fixture) renameAndDelete(id uuid.UUID, deleteStarted bool) {
	for n := 0; ; n++ {
		_, err := t.Lease.UpdateLease(t.Context(), id, lease.Change{Name: new(fmt.Sprintf("l%d", n))})
		var fault *lease.Fault
		switch {
		case errors.Is(err, db.ErrNotFound):
			return
		case err != nil && !errors.As(err, &fault):
			t.Errorf("rename a lease: got error %v, want none, ErrNotFound or a fault", err)
		}
		l, err := t.Lease.Lease(t.Context(), id)
		if err != nil {
			continue
		}
		if deleteStarted && l.Status != lease.Pending {
			if _, err := t.Lease.DeleteLease(t.Context(), id); err != nil && !errors.Is(err, db.ErrNotFound) {
				t.Errorf("delete a lease: got error %v, want none or ErrNotFound", err)
			}
		}
		if l.Status == lease.Terminated {
			t.runSteps(id) // the workers may have stopped before the deletion
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// On each host, one lease starts at the instant at which another lease ends, while several workers advance
// the due leases. The end of the earlier lease must be committed before the start of the later lease.
func TestLease_BackToBackLeasesNeverOverlap(t *testing.T) {
	t.Parallel()
	pairs := storetest.Rounds(t, 20)
	e := newFixture(t, pairs)
	at := time.Now().UTC().Truncate(time.Second).Add(time.Hour)
	var before, after []lease.Lease
	for range pairs {
		before = append(before, e.createLease(lease.Draft{
			Name:         "before",
			User:         "u",
			Project:      "p",
			Start:        lease.RequestedDate{At: at.Add(-time.Minute)},
			End:          lease.RequestedDate{At: at},
			Reservations: []lease.ReservationDraft{{Type: lease.PhysicalHost, Min: 1, Max: 1}},
		}))
	}
	for range pairs {
		after = append(after, e.createLease(lease.Draft{
			Name:         "after",
			User:         "u",
			Project:      "p",
			Start:        lease.RequestedDate{At: at},
			End:          lease.RequestedDate{At: at.Add(time.Minute)},
			Reservations: []lease.ReservationDraft{{Type: lease.PhysicalHost, Min: 1, Max: 1}},
		}))
	}
	storetest.Exec(t, e.url,
		`update event set at = now() - interval '1 minute' where event_type = 'start_lease' and lease_id in (select id from lease where name = 'before')`)
	e.advance(pairs)
	storetest.Exec(t, e.url, `update event set status = 'DONE' where event_type = 'before_end_lease'`)
	storetest.Exec(t, e.url, `
		update event
		set at = now()
		where (event_type, lease_id) in (select 'end_lease', id from lease where name = 'before' union all select 'start_lease', id from lease where name = 'after')`)

	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			// one empty round is not enough: a round skips the leases that another worker has locked
			for done := 0; done < 2; {
				n, err := e.advanceAll(nil)
				if err != nil {
					t.Error(err)
					return
				}
				if n == 0 {
					done++
				}
			}
		})
	}
	workers.Wait()
	e.advanceAll(nil)

	ended := map[int64]time.Time{}
	for i, l := range before {
		e.expectStatus(l, lease.Terminated)
		ended[before[i].Reservations[0].Hosts[0]] = eventOf(e.readLease(l.ID), lease.EndLease).UpdatedAt.UTC()
	}
	for _, l := range after {
		e.expectStatus(l, lease.Active)
		host := l.Reservations[0].Hosts[0]
		if began := eventOf(e.readLease(l.ID), lease.StartLease).UpdatedAt; !ended[host].Before(*began) {
			t.Errorf(
				"host %d: got the start of the next lease at %s and the end of the previous lease at %s, want the end before the start",
				host, began, ended[host],
			)
		}
		if got := e.inventoryHosts(l.Reservations[0].ID); len(got) != 1 {
			t.Errorf("hosts of an ACTIVE lease in Placement: got %v, want one", got)
		}
	}
}

func TestMatchHosts_NewLeaseIsMatchedBeforeItLocksHosts(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	other := storetest.NewRival(t, e.url)
	other.Do(`begin`)
	other.Do(lock("host", e.hosts[0].ID, ""))
	d := hostsDraft(1, 2, 1, 1)
	d.Reservations = append(d.Reservations, lease.ReservationDraft{
		Type:               lease.PhysicalHost,
		Min:                1,
		Max:                1,
		ResourceProperties: `["==","$unknown","x"]`,
	})

	_, err := e.Lease.CreateLease(t.Context(), d)

	if faultKind(err) != lease.MalformedRequirements {
		t.Errorf("create a lease, with an unknown property, while its host is locked: got error %v, want a fault of kind %q",
			err, lease.MalformedRequirements)
	}
	other.Do(`rollback`)
}

func TestMatchHosts_HostThatChangesBeforeItIsLockedIsMatchedAgain(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	first := e.register("cmp-1", map[string]string{"gpu": "a100"})
	second := e.register("cmp-2", map[string]string{"gpu": "a100"})
	d := hostsDraft(1, 2, 1, 1)
	d.Reservations[0].ResourceProperties = `["==","$gpu","a100"]`
	var l lease.Lease

	err := storetest.NewRival(t, e.url).RunAgainst(func() (err error) {
		l, err = e.Lease.CreateLease(t.Context(), d)
		return err
	}, lock("host", first.ID, ""), fmt.Sprintf(`update host_capability set value = 'none' where host_id = %d`, first.ID))

	if err != nil || len(l.Reservations[0].Hosts) != 1 || l.Reservations[0].Hosts[0] != second.ID {
		t.Errorf("create a lease while host %d loses its GPU: got lease %+v and error %v, want host %d",
			first.ID, l, err, second.ID)
	}
}
