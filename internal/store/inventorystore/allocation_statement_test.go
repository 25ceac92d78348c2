package inventorystore_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"berth/internal/inventory"
	"berth/internal/store/inventorystore"
	"berth/internal/store/storetest"
)

// drawInventory draws a random inventory with a small total, so that random writes often exceed the total or
// violate min_unit, max_unit or step_size.
func drawInventory(t *rapid.T, name string) inventory.Inventory {
	i := inventory.Inventory{
		Total:           rapid.Int64Range(1, 20).Draw(t, name+" total"),
		MinUnit:         rapid.Int64Range(1, 3).Draw(t, name+" min"),
		StepSize:        rapid.SampledFrom([]int64{1, 1, 2, 3}).Draw(t, name+" step"),
		AllocationRatio: rapid.SampledFrom([]float64{1, 1, 0.3, 0.7, 1.1, 16}).Draw(t, name+" ratio"),
	}
	i.Reserved = rapid.Int64Range(0, i.Total).Draw(t, name+" reserved")
	i.MaxUnit = rapid.Int64Range(i.MinUnit, 20).Draw(t, name+" max")
	return i
}

func TestAllocationStatement_AllowsTheSameAsCheckCapacity(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.URL(t))
	admitted := 0
	rapid.Check(t, func(rt *rapid.T) {
		p := inventory.ProviderDraft{UUID: uuid.NewString(), Name: uuid.NewString()}
		stock := map[string]inventory.Inventory{
			"VCPU":    drawInventory(rt, "VCPU"),
			"DISK_GB": drawInventory(rt, "DISK_GB"),
		}
		storetest.AddProvider(t, s, p, stock)
		used := map[string]int64{}
		for range 4 {
			wanted := map[string]int64{}
			for _, class := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"VCPU", "DISK_GB"}), 1, 2, rapid.ID).Draw(rt, "classes") {
				wanted[class] = rapid.Int64Range(1, 24).Draw(rt, class)
			}
			w := inventory.ConsumerWrite{
				Consumer:    uuid.NewString(),
				Project:     "p",
				User:        "u",
				Expect:      inventory.ExpectAbsent(),
				Allocations: inventory.Allocations{p.UUID: wanted},
			}
			shelves := map[inventory.InventoryKey]inventory.Capacity{}
			for class := range wanted {
				shelves[inventory.InventoryKey{Provider: p.UUID, Class: class}] = inventory.Capacity{
					Inventory:    stock[class],
					UsedBefore:   used[class],
					UsedByOthers: used[class],
				}
			}
			refusal := inventory.CheckCapacity([]inventory.ConsumerWrite{w}, shelves)

			done, err := inventorystore.TryStatement(t.Context(), s.Inventory, w)

			if err != nil || done != (refusal == nil) {
				rt.Fatalf(
					"statement on inventories %+v with usage %v for a request of %v: got done %t, error %v; want the same decision as CheckCapacity, which returned %v",
					stock, used, wanted, done, err, refusal,
				)
			}
			if done {
				admitted++
				for class, amount := range wanted {
					used[class] += amount
				}
			}
		}
	})
	if admitted == 0 {
		t.Error("no random write was allowed, want some")
	}
}

func TestAllocationStatement_WritesNothingIfUncertain(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	db := storetest.Connect(t, url)
	p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(9)})
	held := uuid.NewString()
	storetest.Allocate(t, s, storetest.VCPUs(held, p, 1, inventory.ExpectAbsent()))
	huge := storetest.VCPUs(uuid.NewString(), p, 1<<62, inventory.ExpectAbsent())
	classless := storetest.VCPUs(uuid.NewString(), p, 1, inventory.ExpectAbsent())
	classless.Allocations[p]["CUSTOM_NONE"] = 1
	tests := map[string]inventory.ConsumerWrite{
		"the consumer exists": storetest.VCPUs(held, p, 1, inventory.ExpectAbsent()),
		"the write expects the consumer": storetest.VCPUs(
			uuid.NewString(), p, 1, inventory.ExpectGeneration(1),
		),
		"the write expects nothing": storetest.VCPUs(uuid.NewString(), p, 1, inventory.Expectation{}),
		"the provider does not exist": storetest.VCPUs(
			uuid.NewString(), uuid.NewString(), 1, inventory.ExpectAbsent(),
		),
		"the inventory does not exist": {
			Consumer:    uuid.NewString(),
			Project:     "p",
			User:        "u",
			Expect:      inventory.ExpectAbsent(),
			Allocations: inventory.Allocations{p: {"DISK_GB": 1}},
		},
		"one of two classes does not exist":  classless,
		"the amount exceeds the column type": huge,
		"the amount exceeds the capacity": storetest.VCPUs(
			uuid.NewString(), p, 9, inventory.ExpectAbsent(),
		),
	}
	before := dumpRows(t, db)
	for name, w := range tests {
		if done, err := inventorystore.TryStatement(t.Context(), s.Inventory, w); done || err != nil {
			t.Errorf(
				"run a write as one statement although %s: got done %v, error %v; want not done and no error",
				name, done, err,
			)
		}
	}
	if diff := cmp.Diff(before, dumpRows(t, db)); diff != "" {
		t.Errorf("rows after statements that must not write: want no difference (-before +after):\n%s", diff)
	}
}

func TestAllocationStatement_WritesNothingAfterAChangedGeneration(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	db := storetest.Connect(t, url)
	p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(2)})
	r := storetest.NewRival(t, url)
	r.Do(`begin`)
	r.Do(`update provider set generation = generation + 1`)
	before := dumpRows(t, db)
	type answer struct {
		done bool
		err  error
	}
	told := make(chan answer, 1)

	go func() {
		done, err := inventorystore.TryStatement(t.Context(), s.Inventory,
			storetest.VCPUs(uuid.NewString(), p, 1, inventory.ExpectAbsent()))
		told <- answer{done, err}
	}()
	r.AwaitWaiter()
	r.Do(`commit`)

	if got := <-told; got.done || got.err != nil {
		t.Errorf(
			"run a write as one statement while another writer changes the generation: got done %v, error %v; want not done and no error",
			got.done,
			got.err,
		)
	}
	moved := slices.DeleteFunc(dumpRows(t, db),
		func(line string) bool { return slices.Contains(before, line) })
	if len(moved) != 1 { // by the competing transaction
		t.Errorf(
			"rows changed by the two transactions: got %v, want only the provider, whose generation the competing transaction changed",
			moved,
		)
	}
}
