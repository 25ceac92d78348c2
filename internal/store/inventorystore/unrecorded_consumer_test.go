package inventorystore_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/store/storetest"
)

// createUnrecorded creates consumers that have an allocation from the provider but no owner, as an import
// from an old Placement database does.
func createUnrecorded(t *testing.T, url, provider string, count int) []string {
	t.Helper()
	consumers := make([]string, count)
	for i := range consumers {
		consumers[i] = uuid.NewString()
	}
	storetest.Exec(t, url, `
		with unrecorded as (
			insert into consumer (uuid)
			select unnest($2::text[])
			returning id)
		insert into allocation (consumer_id, provider_id, class_id, amount)
		select unrecorded.id, provider.id, 0, 1
		from unrecorded, provider
		where provider.uuid = $1`, provider, consumers)
	return consumers
}

func TestUnrecordedConsumers_CanBeReadAndWritten(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(3)})
	consumers := createUnrecorded(t, url, p, 3)

	want := inventory.ConsumerAllocations{
		Generation:  1,
		Allocations: inventory.Allocations{p: {"VCPU": 1}},
		Order: []inventory.InventoryKey{
			{Provider: p, Class: "VCPU"},
		},
		ProviderGenerations: map[string]int64{p: 1},
	}
	got := storetest.Allocations(t, s, consumers[0])
	want.ChangedAt = got.ChangedAt
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	err := s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(uuid.NewString(), p, 1, inventory.ExpectAbsent()))
	if faultKind(err) != inventory.Conflict {
		t.Errorf(
			"allocate more than is left beside the allocations of imported consumers: got %v, want a fault of kind Conflict",
			err,
		)
	}
	err = s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(consumers[0], p, 1, inventory.ExpectGeneration(7)))
	if faultKind(err) != inventory.ConcurrentUpdate {
		t.Errorf(
			"write an imported consumer with another generation: got %v, want a fault of kind ConcurrentUpdate",
			err,
		)
	}
	storetest.Allocate(t, s, storetest.VCPUs(consumers[0], p, 1, inventory.ExpectGeneration(1)))
	if h := storetest.Allocations(t, s, consumers[0]); h.Generation != 2 || h.Project != "p" ||
		h.User != "u" {
		t.Errorf("imported consumer after a write: got %+v, want generation 2, project p and user u", h)
	}
	// To a client, a consumer without project and user seems not to exist. Therefore the write may also send
	// null as its generation.
	storetest.Allocate(t, s, storetest.VCPUs(consumers[1], p, 1, inventory.ExpectAbsent()))
	if h := storetest.Allocations(t, s, consumers[1]); h.Generation != 2 || h.Project != "p" ||
		h.Allocations[p]["VCPU"] != 1 {
		t.Errorf(
			"imported consumer after a write that expects no consumer: got %+v, want generation 2 and project p",
			h,
		)
	}
	err = s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(consumers[1], p, 1, inventory.ExpectAbsent()))
	if faultKind(err) != inventory.ConcurrentUpdate {
		t.Errorf(
			"write a recorded consumer as if it did not exist: got %v, want a fault of kind ConcurrentUpdate",
			err,
		)
	}
	storetest.Allocate(t, s, storetest.NoAllocations(consumers[1], inventory.ExpectGeneration(2)))
	if err := s.Inventory.DeleteAllocations(t.Context(), consumers[2]); err != nil {
		t.Error(err)
	}
	if recorded, left, err := s.Inventory.RecordConsumers(t.Context(), inventory.Owner{Project: "x", User: "y"}, 10); recorded != 0 ||
		left != 0 ||
		err != nil {
		t.Errorf(
			"record consumers after each imported consumer was written or deleted: got %d recorded, %d left, error %v; want 0 and 0",
			recorded, left, err,
		)
	}
}

func TestRecordConsumers_RecordsInBatches(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(100)})
	consumers := createUnrecorded(t, url, p, 25)
	storetest.Allocate(t, s, storetest.VCPUs(consumers[7], p, 2, inventory.ExpectGeneration(1)))

	var batches [][2]int64
	for range 4 {
		recorded, left, err := s.Inventory.RecordConsumers(t.Context(),
			inventory.Owner{Project: "x", User: "y"}, 10)
		if err != nil {
			t.Fatal(err)
		}
		batches = append(batches, [2]int64{recorded, left})
	}
	if d := cmp.Diff([][2]int64{{10, 14}, {10, 4}, {4, 0}, {0, 0}}, batches); d != "" {
		t.Error(d)
	}
	for i, consumer := range consumers {
		h := storetest.Allocations(t, s, consumer)
		want := "x y 1"
		if i == 7 {
			want = "p u 2"
		}
		if got := fmt.Sprint(h.Project, " ", h.User, " ", h.Generation); got != want {
			t.Errorf("consumer %d after RecordConsumers: got project, user and generation %s, want %s",
				i, got, want)
		}
	}
}

func TestRecordConsumers_KeepsConcurrentWrites(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(10000)})
	consumers := createUnrecorded(t, url, p, 300)
	var healed atomic.Int64

	won := raceWriters(t, 8, func(i int) error {
		if i < 2 {
			for left := int64(1); left > 0; {
				recorded, rest, err := s.Inventory.RecordConsumers(t.Context(),
					inventory.Owner{Project: "x", User: "y"}, 7)
				if err != nil {
					return err
				}
				healed.Add(recorded)
				left = rest
			}
			return nil
		}
		// each of the six writers writes its own part of the first 150 consumers, and each consumer once
		for n := i - 2; n < 150; n += 6 {
			if err := s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(consumers[n], p, 2, inventory.ExpectGeneration(1))); err != nil {
				return err
			}
		}
		return nil
	})

	if won != 8 {
		t.Fatalf("number of successful concurrent writers: got %d, want 8", won)
	}
	for i, consumer := range consumers {
		h := storetest.Allocations(t, s, consumer)
		want := inventory.ConsumerAllocations{
			Project:     "x",
			User:        "y",
			Generation:  1,
			Allocations: inventory.Allocations{p: {"VCPU": 1}},
		}
		if i < 150 {
			want = inventory.ConsumerAllocations{
				Project:     "p",
				User:        "u",
				Generation:  2,
				Allocations: inventory.Allocations{p: {"VCPU": 2}},
			}
		}
		h.ProviderGenerations, h.Order, h.ChangedAt = nil, nil, want.ChangedAt
		if d := cmp.Diff(want, h); d != "" {
			t.Errorf("consumer %d after concurrent writes and RecordConsumers (-want +got):\n%s", i, d)
		}
	}
	if healed.Load() < 150 || healed.Load() > 300 {
		t.Errorf("number of consumers that RecordConsumers recorded: got %d, want 150 to 300", healed.Load())
	}
}

func TestRecordConsumers_SkipsLockedConsumers(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(10)})
	consumers := createUnrecorded(t, url, p, 2)
	writer := storetest.Connect(t, url)
	tx, err := writer.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `update consumer set project = 'p', user_id = 'u' where uuid = $1`, consumers[0]); err != nil {
		t.Fatal(err)
	}
	recorded, left, err := s.Inventory.RecordConsumers(t.Context(),
		inventory.Owner{Project: "x", User: "y"}, 10)
	if recorded != 1 || left != 1 || err != nil {
		t.Errorf(
			"record two consumers, one of which another writer has locked: got %d recorded, %d left, error %v; want 1 and 1",
			recorded, left, err,
		)
	}
	if err := tx.Rollback(t.Context()); err != nil { // as if the writer had crashed
		t.Fatal(err)
	}
	recorded, left, err = s.Inventory.RecordConsumers(t.Context(),
		inventory.Owner{Project: "x", User: "y"}, 10)
	if recorded != 1 || left != 0 || err != nil {
		t.Errorf(
			"record consumers after the other writer's rollback: got %d recorded, %d left, error %v; want 1 and 0",
			recorded, left, err,
		)
	}
}

func TestUsages_UnownedCountsUnrecordedConsumers(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(10)})
	createUnrecorded(t, url, p, 2)
	// allocations of the project p and the user u
	storetest.Allocate(t, s, storetest.VCPUs(uuid.NewString(), p, 3, inventory.ExpectAbsent()))
	user := "u"
	for name, tc := range map[string]struct {
		filter inventory.UsageFilter
		want   int64
	}{
		"a project":                        {inventory.UsageFilter{Project: "p"}, 3},
		"a project and its user":           {inventory.UsageFilter{Project: "p", User: &user}, 3},
		"a project and unowned":            {inventory.UsageFilter{Project: "p", Unowned: true}, 5},
		"a project, its user, and unowned": {inventory.UsageFilter{Project: "p", User: &user, Unowned: true}, 5},
		"another project":                  {inventory.UsageFilter{Project: "q"}, 0},
		"another project and unowned":      {inventory.UsageFilter{Project: "q", Unowned: true}, 2},
	} {
		usages, err := s.Inventory.Usages(t.Context(), tc.filter)
		if got := inventory.TotalUsage(usages).Used["VCPU"]; got != tc.want || err != nil {
			t.Errorf("VCPUs in use by consumers of %s: got %d, want %d, error %v", name, got, tc.want, err)
		}
	}
}
