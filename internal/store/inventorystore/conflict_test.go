package inventorystore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/store"
	"berth/internal/store/inventorystore"
	"berth/internal/store/storetest"
)

// refuse returns the fault of a write that another writer has overtaken.
func refuse(t inventory.ObjectType, uuids ...string) error {
	return inventory.Faultf(inventory.ConcurrentUpdate, "conflict").About(t, uuids...)
}

// mustConflict checks that a write was refused because of a generation.
func mustConflict(t *testing.T, err error) {
	t.Helper()
	if faultKind(err) != inventory.ConcurrentUpdate {
		t.Fatalf("a write with an old generation: got error %v, want a fault of kind ConcurrentUpdate", err)
	}
}

// flushConflicts adds the conflicts of a process to the table.
func flushConflicts(t *testing.T, s *store.Store) {
	t.Helper()
	if err := s.Inventory.FlushConflicts(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// conflicts returns the conflicts of all processes.
func conflicts(t *testing.T, s *store.Store, limit int) []inventorystore.Conflicts {
	t.Helper()
	found, err := s.Inventory.Conflicts(t.Context(), limit)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// withoutTimes compares conflicts without the times of the last ones.
var withoutTimes = cmpopts.IgnoreFields(inventorystore.Conflicts{}, "LastAt")

func TestConflicts_CountTheObjectOfEachRefusedWrite(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	vcpus := map[string]inventory.Inventory{"VCPU": inventory.NewInventory(8)}
	host := storetest.AddHost(t, s, "host", vcpus)
	consumer, absent, old := uuid.NewString(), uuid.NewString(), int64(77)
	storetest.Allocate(t, s, storetest.VCPUs(consumer, host, 1, inventory.ExpectAbsent()))

	_, err := s.Inventory.SetAggregates(t.Context(), host, nil, &old)
	mustConflict(t, err)
	_, err = s.Inventory.SetProviderTraits(t.Context(), host, old, nil)
	mustConflict(t, err)
	_, err = s.Inventory.ReplaceInventories(t.Context(), host, old, vcpus)
	mustConflict(t, err)
	_, err = s.Inventory.UpdateInventory(t.Context(), host, old, "VCPU", vcpus["VCPU"])
	mustConflict(t, err)
	_, err = s.Inventory.CreateInventory(t.Context(), host, "VCPU", vcpus["VCPU"])
	mustConflict(t, err)
	mustConflict(t, s.Inventory.Reshape(t.Context(), inventory.Reshape{
		Inventories: map[string]inventory.ProviderInventories{host: {Generation: old, Classes: vcpus}},
	}))
	mustConflict(t, s.Inventory.Reshape(t.Context(), inventory.Reshape{
		Writes: []inventory.ConsumerWrite{storetest.VCPUs(consumer, host, 1, inventory.ExpectGeneration(old))},
	}))
	mustConflict(t, s.Inventory.PutAllocations(t.Context(),
		storetest.VCPUs(consumer, host, 1, inventory.ExpectAbsent())))
	mustConflict(t, s.Inventory.ReplaceAllocations(t.Context(), []inventory.ConsumerWrite{
		storetest.VCPUs(uuid.NewString(), host, 1, inventory.ExpectAbsent()),
		storetest.NoAllocations(consumer, inventory.ExpectGeneration(old)),
	}))
	mustConflict(t, s.Inventory.PutAllocations(t.Context(),
		storetest.VCPUs(absent, host, 1, inventory.ExpectGeneration(old))))
	if err := s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(uuid.NewString(), host, 1000, inventory.ExpectAbsent())); err == nil {
		t.Fatal("more than the capacity: got no error")
	}
	flushConflicts(t, s)

	var got []string
	for _, c := range conflicts(t, s, 10) {
		if c.Recent != c.All {
			t.Errorf("got %+v, want all conflicts in the last 24 hours", c)
		}
		got = append(got, fmt.Sprint(c.Type, " ", c.UUID, " ", c.Name, " ", c.Known, " ", c.Cause, " ", c.All))
	}
	slices.Sort(got)
	want := []string{
		"provider " + host + " host true aggregates 1",
		"provider " + host + " host true traits 1",
		"provider " + host + " host true inventories 3",
		"provider " + host + " host true reshape 1",
		"consumer " + consumer + "  true reshape 1",
		"consumer " + consumer + "  true allocations 2",
		"consumer " + absent + "  false allocations 1",
	}
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("conflicts; a write beyond the capacity is none (-want +got):\n%s", d)
	}
	if found := conflicts(t, s, 1); len(found) != 1 || found[0].UUID != host || found[0].Cause != inventory.CauseInventories {
		t.Errorf("the most conflicts: got %+v, want those of the inventories of the host", found)
	}
}

func TestConflicts_AreThoseOfAllProcessesAndSurviveTheirEnd(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	first, second := storetest.Open(t, url), storetest.Open(t, url)
	busy, calm := uuid.NewString(), uuid.NewString()
	inventorystore.RecordConflict(first.Inventory, refuse(inventory.ProviderObject, busy), inventory.CauseTraits)
	inventorystore.RecordConflict(second.Inventory, refuse(inventory.ProviderObject, busy), inventory.CauseTraits)
	inventorystore.RecordConflict(second.Inventory, refuse(inventory.ConsumerObject, calm), inventory.CauseAllocations)

	ctx, stop := context.WithCancel(t.Context())
	stop()
	first.Inventory.WriteConflicts(ctx, time.Hour) // as at the end of a process
	ctx, stop = context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		second.Inventory.WriteConflicts(ctx, time.Millisecond)
	}()
	defer func() { stop(); <-ended }()
	for len(conflicts(t, first, 10)) < 2 {
		if t.Context().Err() != nil {
			t.Fatal("the other process has added no conflicts")
		}
	}
	want := []inventorystore.Conflicts{
		{
			Object: inventory.Object{Type: inventory.ProviderObject, UUID: busy},
			Recent: 2,
			All:    2,
			Cause:  inventory.CauseTraits,
		},
		{
			Object: inventory.Object{Type: inventory.ConsumerObject, UUID: calm},
			Recent: 1,
			All:    1,
			Cause:  inventory.CauseAllocations,
		},
	}
	first.Close()
	for name, s := range map[string]*store.Store{"another process": second, "a new process": storetest.Open(t, url)} {
		if d := cmp.Diff(want, conflicts(t, s, 10), withoutTimes); d != "" {
			t.Errorf("the conflicts that %s reads (-want +got):\n%s", name, d)
		}
	}
}

// TestConflicts_ConcurrentProcessesLoseNone lets processes add conflicts of the same objects in many writes.
func TestConflicts_ConcurrentProcessesLoseNone(t *testing.T) {
	t.Parallel()
	const processes, writes, objects = 4, 25, 50
	url := storetest.URL(t)
	var wait sync.WaitGroup
	for range processes {
		s := storetest.Open(t, url)
		wait.Go(func() {
			for range writes {
				for i := range objects {
					inventorystore.RecordConflict(s.Inventory, refuse(inventory.ProviderObject, fmt.Sprint(i)), inventory.CauseTraits)
				}
				if err := s.Inventory.FlushConflicts(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	found := conflicts(t, storetest.Open(t, url), 2*objects)
	for _, c := range found {
		if c.All != processes*writes {
			t.Errorf("conflicts of provider %s: got %d, want %d", c.UUID, c.All, processes*writes)
		}
	}
	if len(found) != objects {
		t.Errorf("got conflicts of %d providers, want %d", len(found), objects)
	}
}

// TestConflicts_WaitForTheTable locks the table, so that it accepts no counts.
func TestConflicts_WaitForTheTable(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	host := storetest.AddHost(t, s, "host", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(8)})
	rival := storetest.NewRival(t, url)
	rival.Do(`begin`)
	rival.Do(`lock table generation_conflict`)
	stale := func() {
		_, err := s.Inventory.SetProviderTraits(t.Context(), host, 77, nil)
		mustConflict(t, err)
	}
	stale()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Inventory.FlushConflicts(ctx); err == nil {
		t.Fatal("add conflicts to a locked table: got no error")
	}
	stale()
	rival.Do(`rollback`)
	flushConflicts(t, s)
	flushConflicts(t, s)
	if found := conflicts(t, s, 10); len(found) != 1 || found[0].All != 2 {
		t.Errorf("conflicts after the table was locked: got %+v, want 2 of the host", found)
	}
}

func TestConflicts_AProcessCountsALimitedNumberOfObjects(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for i := range inventorystore.MaxCountedConflicts + 200 {
		for range 2 {
			inventorystore.RecordConflict(s.Inventory, refuse(inventory.ConsumerObject, fmt.Sprint(i)), inventory.CauseTraits)
		}
	}
	flushConflicts(t, s)
	found := conflicts(t, s, 5000)
	if len(found) != inventorystore.MaxCountedConflicts || found[len(found)-1].All != 2 {
		t.Errorf("objects with conflicts until the counts were added: got %d, want %d with 2 each",
			len(found), inventorystore.MaxCountedConflicts)
	}
	inventorystore.RecordConflict(s.Inventory, refuse(inventory.ConsumerObject, "further"), inventory.CauseTraits)
	inventorystore.RecordConflict(s.Inventory, errors.Join(errors.New("wrapped"), refuse(inventory.ProviderObject,
		"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17")), inventory.CauseTraits)
	flushConflicts(t, s)
	if n := len(conflicts(t, s, 5000)) - len(found); n != 17 {
		t.Errorf("further objects: got %d, want one consumer and 16 providers of one write", n)
	}
}

func TestConflicts_OfTheLast24HoursComeFirst(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	storetest.Exec(t, url, `
		insert into generation_conflict (hour, object_type, object_id, cause, writes, last_at)
		select date_trunc('hour', at), 'provider', id, 'traits', writes, at
		from (values ('old', now() - interval '25 hours', 9), ('both', now() - interval '25 hours', 4), ('both', now(), 1), ('new', now(), 2))
			as c (id, at, writes)`)
	var got []string
	for _, c := range conflicts(t, s, 10) {
		got = append(got, fmt.Sprint(c.UUID, " ", c.Recent, " ", c.All))
	}
	if d := cmp.Diff([]string{"new 2 2", "both 1 5", "old 0 9"}, got); d != "" {
		t.Errorf("conflicts in the last 24 hours and all (-want +got):\n%s", d)
	}
}

func TestTrimConflicts_KeepsThoseWithinTheRetention(t *testing.T) {
	t.Parallel()
	const surplus = 100
	for name, tc := range map[string]struct {
		keep inventorystore.Retention
		want []string // the consumers whose conflicts are kept
	}{
		"everything":     {inventorystore.Retention{}, []string{"1", "2", "3", "4", "5", "6"}},
		"the young":      {inventorystore.Retention{Age: time.Hour}, []string{"4", "5", "6"}},
		"few":            {inventorystore.Retention{Rows: 2}, []string{"5", "6"}},
		"the young, few": {inventorystore.Retention{Age: time.Hour, Rows: 5}, []string{"4", "5", "6"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			storetest.Exec(t, url, `
				insert into generation_conflict (hour, object_type, object_id, cause, writes, last_at)
				select date_trunc('hour', at), 'consumer', n, 'allocations', 1, at
				from generate_series(1, 6) n, lateral (
					select now() - case when n < 4 then interval '2 hours' else interval '1 minute' end + n * interval '1 second' as at) times`)
			if err := s.Inventory.TrimConflicts(t.Context(), tc.keep); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range conflicts(t, s, 10) {
				got = append(got, c.UUID)
			}
			if d := cmp.Diff(tc.want, got, cmpopts.SortSlices(func(a, b string) bool { return a < b })); d != "" {
				t.Errorf("conflicts that are left (-want +got):\n%s", d)
			}
		})
	}
	t.Run("limited", func(t *testing.T) {
		t.Parallel()
		url := storetest.URL(t)
		s := storetest.Open(t, url)
		storetest.Exec(t, url, `
			insert into generation_conflict (hour, object_type, object_id, cause, writes, last_at)
			select date_trunc('hour', now()), 'consumer', n, 'allocations', 1, now() + n * interval '1 microsecond'
			from generate_series(1, $1::integer) n`, inventorystore.MaxConflictRows+surplus)
		if err := s.Inventory.TrimConflicts(t.Context(), inventorystore.Retention{}); err != nil {
			t.Fatal(err)
		}
		found := conflicts(t, s, inventorystore.MaxConflictRows+surplus)
		if len(found) != inventorystore.MaxConflictRows || found[len(found)-1].UUID != fmt.Sprint(surplus+1) {
			t.Errorf("without a retention: got %d conflicts, want the newest %d", len(found), inventorystore.MaxConflictRows)
		}
	})
}
