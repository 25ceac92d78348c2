package store_test

import (
	"sync"
	"testing"

	"berth/internal/lease"
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
			_, err := e.CreateLease(t.Context(), hostsDraft(1, 2, 1, 1))
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
			if _, err := e.CreateLease(t.Context(), hostsDraft(1, 2, 1, 1)); err != nil {
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

