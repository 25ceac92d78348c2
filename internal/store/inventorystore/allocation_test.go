package inventorystore_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// problemKind is the kind of problem that err is; -1 if it is none.
func problemKind(err error) inventory.Kind {
	var p *inventory.Fault
	if errors.As(err, &p) {
		return p.Kind
	}
	return -1
}

// raceWriters runs f in n goroutines at once and counts the successes; every failure must be of one of the kinds.
func raceWriters(t *testing.T, n int, f func(i int) error, kinds ...inventory.Kind) int {
	t.Helper()
	var won atomic.Int64
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			err := f(i)
			if err == nil {
				won.Add(1)
				return
			}
			for _, k := range kinds {
				if problemKind(err) == k {
					return
				}
			}
			t.Errorf("writer %d: %v", i, err)
		})
	}
	close(start)
	all.Wait()
	return int(won.Load())
}

func TestFailedFirstWriteLeavesNoConsumer(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	a := storetest.AddHost(t, s, "a", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(4)})
	consumer := uuid.NewString()

	for name, w := range map[string]inventory.ConsumerWrite{
		"too much":         storetest.VCPUs(consumer, a, 5, inventory.ExpectAbsent()),
		"unknown provider": storetest.VCPUs(consumer, uuid.NewString(), 1, inventory.ExpectAbsent()),
		"nothing":          storetest.NoAllocations(consumer, inventory.ExpectAbsent()),
	} {
		err := s.Inventory.PutAllocations(t.Context(), w)
		if name != "nothing" && problemKind(err) < 0 || name == "nothing" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	storetest.Allocate(t, s, storetest.VCPUs(consumer, a, 4, inventory.ExpectAbsent()))
	if h := storetest.Allocations(t, s, consumer); h.Generation != 1 {
		t.Errorf("want generation 1, got %+v", h)
	}
}

func isNotFound(err error) bool { return errors.Is(err, db.ErrNotFound) }

func second[T any](_ T, err error) error { return err }
