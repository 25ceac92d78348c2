package inventorystore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/inventorystore"
	"berth/internal/store/storetest"
)

// lockedConsumers is a store whose consumers nobody can read until the function `unlock` is called.
type lockedConsumers struct {
	*testing.T
	store  *store.Store
	rival  storetest.Rival
	unlock func()
}

func lockConsumers(t *testing.T, s *store.Store, url string) lockedConsumers {
	r := storetest.NewRival(t, url)
	r.Do(`begin`)
	r.Do(`lock table consumer in access exclusive mode`)
	return lockedConsumers{T: t, store: s, rival: r, unlock: func() { r.Do(`commit`) }}
}

// readResult is the result of a read of a consumer.
type readResult struct {
	inventory.ConsumerAllocations
	err error
}

// read begins to read a consumer, and returns when `waiting` reads of all wait for a query.
func (l lockedConsumers) read(ctx context.Context, consumer string, waiting int) <-chan readResult {
	l.Helper()
	result := make(chan readResult, 1)
	go func() {
		all, err := l.store.Inventory.Allocations(ctx, consumer)
		result <- readResult{all, err}
	}()
	l.rival.AwaitWaiter()
	for inventorystore.WaitingReads(l.store.Inventory) < waiting {
		time.Sleep(time.Millisecond)
	}
	return result
}

func TestAllocations_ReadsThatWaitShareAQuery(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	counter := storetest.NewQueryCounter(t, url)
	s := storetest.Open(t, counter.URL)
	p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(50)})
	var consumers []string
	for i := range 6 {
		consumers = append(consumers, uuid.NewString())
		storetest.Allocate(t, s, storetest.VCPUs(consumers[i], p, int64(i)+1, inventory.ExpectAbsent()))
	}
	consumers = append(consumers, consumers[5], uuid.NewString()) // one twice, and one without allocations
	storetest.Allocations(t, s, consumers[0])                     // prepares the statement
	l := lockConsumers(t, s, url)
	before := counter.Statements()

	var results []<-chan readResult
	for i, c := range consumers {
		results = append(results, l.read(t.Context(), c, i))
	}
	l.unlock()

	var amounts []int64
	for i, result := range results {
		r := <-result
		if r.err != nil {
			t.Errorf("read of consumer %d: got error %v, want none", i, r.err)
		}
		amounts = append(amounts, r.Allocations[p]["VCPU"])
	}
	if d := cmp.Diff([]int64{1, 2, 3, 4, 5, 6, 6, 0}, amounts); d != "" {
		t.Errorf("amounts of the consumers (-want +got):\n%s", d)
	}
	if n := counter.Statements() - before; n != 2 {
		t.Errorf("statements of eight reads: got %d, want 2: one for the first read and one for all others", n)
	}
	if n := inventorystore.GroupReadQueues(s.Inventory); n != 0 {
		t.Errorf("queues after all reads: got %d, want 0", n)
	}
}

func TestAllocations_ReadsOfOtherClientsDoNotWaitForAQuery(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	l := lockConsumers(t, s, url)
	client := func(name string) context.Context { return db.WithClient(t.Context(), name) }
	first := l.read(client("project a"), uuid.NewString(), 0)
	second := l.read(client("project a"), uuid.NewString(), 1)

	other := l.read(client("project b"), uuid.NewString(), 1)

	for inventorystore.GroupReadQueues(s.Inventory) < 2 {
		time.Sleep(time.Millisecond)
	}
	l.rival.AwaitWaiters(2, nil)
	if n := inventorystore.WaitingReads(s.Inventory); n != 1 {
		t.Errorf("reads that wait for a query: got %d, want only the second one of the first client", n)
	}
	l.unlock()
	for _, result := range []<-chan readResult{first, second, other} {
		if r := <-result; r.err != nil {
			t.Errorf("read: got error %v, want none", r.err)
		}
	}
}

func TestAllocations_ReaderThatGivesUpStopsNoOther(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	l := lockConsumers(t, s, url)
	leaving, leave := context.WithCancel(t.Context())
	first := l.read(leaving, uuid.NewString(), 0)
	second := l.read(leaving, uuid.NewString(), 1)
	third := l.read(t.Context(), uuid.NewString(), 2)

	leave()

	for _, result := range []<-chan readResult{first, second} {
		if r := <-result; !errors.Is(r.err, context.Canceled) {
			t.Errorf("read of a caller that gives up: got error %v, want context.Canceled", r.err)
		}
	}
	l.unlock()
	if r := <-third; r.err != nil {
		t.Errorf("read of a caller that waits: got error %v, want none", r.err)
	}
}
