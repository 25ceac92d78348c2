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

func TestOneOfManyGetsTheLastHost(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 1)
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
			t.Errorf("a loser got %v", err)
		}
	}
	if want := "leases 1, reservations 1, events 3, host allocations 1, consumers 0, notes 1"; won != 1 || e.rows() != want {
		t.Errorf("%d won, left %s", won, e.rows())
	}
}

func TestManyAtOnceGetAllHosts(t *testing.T) {
	t.Parallel()
	const hosts = 12
	e := newLeasing(t, hosts)
	var all sync.WaitGroup
	for range hosts {
		all.Go(func() {
			if _, err := e.Lease.CreateLease(t.Context(), hostsDraft(1, 2, 1, 1)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	e.refused(hostsDraft(1, 2, 1, 1), lease.NotEnoughHosts)
}

func TestTheTableItselfRefusesDoubleBooking(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 1)
	a := e.create(hostsDraft(1, 3, 1, 1))
	b := e.create(hostsDraft(3, 5, 1, 1)) // touching is fine
	_, err := storetest.Connect(t, e.url).Exec(t.Context(), `
		update host_allocation set during = (select during from host_allocation where reservation_id = $1)
		where reservation_id = $2`, a.Reservations[0].ID, b.Reservations[0].ID)
	if err == nil {
		t.Error("two reservations have one host at one time")
	}
}

// TestLeasesLiveRightUnderManyWorkers lets several workers at once take the steps of the same leases, as after
// crashes and time-outs, while clients rename, prolong and delete them and others wait for their hosts.
func TestLeasesLiveRightUnderManyWorkers(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 2)
	const leases, workers = 6, 3
	var all sync.WaitGroup
	begin := time.Now().Truncate(time.Second)
	for i := range leases {
		// Two hosts, and on each of them one lease after the other.
		from := begin.Add(time.Duration(4+i/2) * time.Second)
		l := e.create(lease.Draft{Name: "l", User: "u", Project: "p", Start: lease.RequestedDate{At: from},
			End: lease.RequestedDate{At: from.Add(time.Second)}, BeforeEnd: new(from.Add(time.Second / 2)),
			Reservations: []lease.ReservationDraft{{Type: lease.PhysicalHost, Min: 1, Max: 1}}})
		for range workers {
			all.Go(func() { e.work(l.ID) })
		}
		all.Go(func() { e.disturb(l.ID, i) })
	}
	over, stop := context.WithCancel(t.Context())
	var together sync.WaitGroup
	together.Go(func() { // who takes for all what is due
		for over.Err() == nil {
			if _, err := e.sweepOnce(nil); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	all.Wait()
	stop()
	together.Wait()

	left, err := e.Lease.Leases(t.Context(), lease.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range left {
		if l.Status != lease.Terminated || len(l.Reservations[0].Hosts) != 0 {
			t.Errorf("left: %+v", l)
		}
		for _, ev := range l.Events {
			if late := ev.UpdatedAt.Sub(ev.At); ev.Status != lease.EventDone || late < -lease.ClockSkew {
				t.Errorf("%s is %s, %s after its time", ev.Type, ev.Status, late)
			}
		}
	}
	if len(left) != leases/2 {
		t.Errorf("%d leases are left", len(left))
	}
	var consumers int
	if err := storetest.Connect(t, e.url).QueryRow(t.Context(), `select count(*) from consumer`).Scan(&consumers); err != nil || consumers != 0 {
		t.Errorf("%d consumers are left: %v", consumers, err)
	}
}

// work does what a lease's workflow does, until nothing is due any more.
func (t *leasing) work(id uuid.UUID) {
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
			t.Errorf("off the table: %v", err)
		}
		due := lease.Next(l, time.Now())
		switch due.Step {
		case lease.StepStop:
			return
		case lease.StepWait:
			time.Sleep(min(time.Until(due.At), 20*time.Millisecond))
			continue
		}
		if err := t.step(id, due.Step); err != nil && !errors.Is(err, db.ErrConflict) && !errors.Is(err, db.ErrNotFound) {
			t.Errorf("%s: %v", due.Step, err)
		}
	}
}

func (t *leasing) step(id uuid.UUID, step lease.Step) error {
	l, err := t.Lease.BeginLease(t.Context(), id, step)
	if err != nil {
		return err
	}
	for _, r := range l.Reservations {
		switch step {
		case lease.StepStart:
			err = t.Lease.AddToInventory(t.Context(), r.ID)
		case lease.StepEnd, lease.StepDelete:
			err = t.Lease.RemoveFromInventory(t.Context(), r.ID)
		}
		if err != nil {
			return err
		}
	}
	_, err = t.Lease.FinishLease(t.Context(), id, step, nil)
	return err
}

// disturb changes a lease all through its life, and deletes every second one in the middle of it.
func (t *leasing) disturb(id uuid.UUID, i int) {
	for n := 0; ; n++ {
		_, err := t.Lease.UpdateLease(t.Context(), id, lease.Change{Name: new(fmt.Sprintf("l%d", n))})
		var fault *lease.Fault
		switch {
		case errors.Is(err, db.ErrNotFound):
			return
		case err != nil && !errors.As(err, &fault):
			t.Errorf("rename: %v", err)
		}
		l, err := t.Lease.Lease(t.Context(), id)
		if err != nil {
			continue
		}
		if i%2 == 0 && l.Status != lease.Pending {
			if _, err := t.Lease.DeleteLease(t.Context(), id); err != nil && !errors.Is(err, db.ErrNotFound) {
				t.Errorf("delete: %v", err)
			}
		}
		if l.Status == lease.Terminated {
			t.work(id) // the workers may be gone, as after a whole life without a look from here
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
