package store_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

// stockedHost makes a provider with an inventory of each class.
func stockedHost(t *testing.T, s *store.Store, name string, stock map[string]inventory.Inventory) string {
	t.Helper()
	p := inventory.NewProvider{UUID: uuid.NewString(), Name: name}
	if err := store.Stock(t.Context(), s, p, stock); err != nil {
		t.Fatal(err)
	}
	return p.UUID
}

func holdingOf(t *testing.T, s *store.Store, consumer string) inventory.Holding {
	t.Helper()
	h, err := s.Allocations(t.Context(), consumer)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// takeVCPU is a write of that many VCPUs of one provider.
func takeVCPU(consumer, provider string, amount int64, expect inventory.Expectation) inventory.ConsumerWrite {
	return inventory.ConsumerWrite{Consumer: consumer, Project: "p", User: "u", Expect: expect,
		Allocations: inventory.Allocations{provider: {"VCPU": amount}}}
}

func emptyWrite(consumer string, expect inventory.Expectation) inventory.ConsumerWrite {
	return inventory.ConsumerWrite{Consumer: consumer, Project: "p", User: "u", Expect: expect}
}

func putWrite(t *testing.T, s *store.Store, w inventory.ConsumerWrite) {
	t.Helper()
	if err := s.PutAllocations(t.Context(), w); err != nil {
		t.Fatal(err)
	}
}

// problemKind is the kind of problem that err is; -1 if it is none.
func problemKind(err error) inventory.Kind {
	var p *inventory.Problem
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
	a := stockedHost(t, s, "a", map[string]inventory.Inventory{"VCPU": inventory.Of(4)})
	consumer := uuid.NewString()

	for name, w := range map[string]inventory.ConsumerWrite{
		"too much":         takeVCPU(consumer, a, 5, inventory.Absent()),
		"unknown provider": takeVCPU(consumer, uuid.NewString(), 1, inventory.Absent()),
		"nothing":          emptyWrite(consumer, inventory.Absent()),
	} {
		err := s.PutAllocations(t.Context(), w)
		if name != "nothing" && problemKind(err) < 0 || name == "nothing" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	putWrite(t, s, takeVCPU(consumer, a, 4, inventory.Absent()))
	if h := holdingOf(t, s, consumer); h.Generation != 1 {
		t.Errorf("want generation 1, got %+v", h)
	}
}

func openStore(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func isNotFound(err error) bool { return errors.Is(err, store.ErrNotFound) }

func second[T any](_ T, err error) error { return err }
