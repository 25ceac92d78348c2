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

// faultKind returns the kind of the error if the error is an *inventory.Fault, otherwise -1.
func faultKind(err error) inventory.Kind {
	var p *inventory.Fault
	if errors.As(err, &p) {
		return p.Kind
	}
	return -1
}

// raceWriters calls f in n goroutines at the same time and returns the number of calls that succeed.
// raceWriters fails the test if a call returns another error than an *inventory.Fault of one of the given
// kinds.
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
				if faultKind(err) == k {
					return
				}
			}
			t.Errorf("concurrent writer %d: got error %v, want success or a fault of an expected kind",
				i, err)
		})
	}
	close(start)
	all.Wait()
	return int(won.Load())
}

func TestAllocations_FailedFirstWriteCreatesNoConsumer(t *testing.T) {
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
		if name != "nothing" && faultKind(err) < 0 || name == "nothing" && err != nil {
			t.Errorf(
				"first write of a consumer with allocations %q: got error %v, want a fault (for \"nothing\": no error)",
				name,
				err,
			)
		}
	}
	storetest.Allocate(t, s, storetest.VCPUs(consumer, a, 4, inventory.ExpectAbsent()))
	if h := storetest.Allocations(t, s, consumer); h.Generation != 1 {
		t.Errorf("consumer after its first successful write: got %+v, want generation 1", h)
	}
}

func isNotFound(err error) bool { return errors.Is(err, db.ErrNotFound) }

func errorOf[T any](_ T, err error) error { return err }
