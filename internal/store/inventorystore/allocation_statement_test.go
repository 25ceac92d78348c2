package inventorystore_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
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
		var held []inventory.ConsumerWrite // the last allowed write of each consumer
		for range 6 {
			w := drawStatementWrite(rt, p.UUID, held)
			shelves := map[inventory.InventoryKey]inventory.Capacity{}
			for class := range w.Allocations[p.UUID] {
				shelves[inventory.InventoryKey{Provider: p.UUID, Class: class}] = inventory.Capacity{
					Inventory:    stock[class],
					UsedBefore:   used[class],
					UsedByOthers: used[class] - currentAmount(held, w.Consumer, p.UUID, class),
				}
			}
			refusal := inventory.CheckCapacity([]inventory.ConsumerWrite{w}, shelves)

			done, err := inventorystore.TryStatement(t.Context(), s.Inventory, w)

			if err != nil || done != (refusal == nil) {
				rt.Fatalf(
					"statement on inventories %+v with usage %v for the write %+v: got done %t, error %v; want the same decision as CheckCapacity, which returned %v",
					stock, used, w, done, err, refusal,
				)
			}
			if done {
				admitted++
				for class, amount := range w.Allocations[p.UUID] {
					used[class] += amount - currentAmount(held, w.Consumer, p.UUID, class)
				}
				held = append(slices.DeleteFunc(held, isOf(w.Consumer)), w)
			}
		}
	})
	if admitted == 0 {
		t.Error("no random write was allowed, want some")
	}
}

// drawStatementWrite draws a write of a new consumer, or of one of the consumers that have allocations, with
// other amounts of the same resource classes.
func drawStatementWrite(t *rapid.T, provider string, held []inventory.ConsumerWrite) inventory.ConsumerWrite {
	w := inventory.ConsumerWrite{
		Consumer: uuid.NewString(),
		Project:  "p",
		User:     "u",
		Expect:   inventory.ExpectAbsent(),
	}
	classes := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"VCPU", "DISK_GB"}), 1, 2, rapid.ID).Draw(t, "classes")
	if len(held) > 0 && rapid.Bool().Draw(t, "existing consumer") {
		last := rapid.SampledFrom(held).Draw(t, "consumer")
		generation := int64(1)
		if g := last.Expect.Generation(); g != nil {
			generation = *g + 1
		}
		w.Consumer, w.Expect = last.Consumer, inventory.ExpectGeneration(generation)
		classes = slices.Sorted(maps.Keys(last.Allocations[provider]))
	}
	wanted := map[string]int64{}
	for _, class := range classes {
		wanted[class] = rapid.Int64Range(1, 24).Draw(t, class)
	}
	w.Allocations = inventory.Allocations{provider: wanted}
	return w
}

// isOf returns a function that reports whether a write is of the consumer.
func isOf(consumer string) func(inventory.ConsumerWrite) bool {
	return func(w inventory.ConsumerWrite) bool { return w.Consumer == consumer }
}

// currentAmount returns the amount of a class that the last write of the consumer has allocated, or 0.
func currentAmount(held []inventory.ConsumerWrite, consumer, provider, class string) int64 {
	if i := slices.IndexFunc(held, isOf(consumer)); i >= 0 {
		return held[i].Allocations[provider][class]
	}
	return 0
}

// The statement for an existing consumer leaves the same rows as the transaction of several statements.
func TestAllocationStatement_ReplacesAsTheTransactionDoes(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	db := storetest.Connect(t, url)
	stock := map[string]inventory.Inventory{"VCPU": inventory.NewInventory(9), "DISK_GB": inventory.NewInventory(99)}
	rows := func(replace func(w inventory.ConsumerWrite)) []string {
		p := storetest.AddHost(t, s, uuid.NewString(), stock)
		w := inventory.ConsumerWrite{
			Consumer:    uuid.NewString(),
			Project:     "p",
			User:        "u",
			Type:        new("INSTANCE"),
			Expect:      inventory.ExpectAbsent(),
			Allocations: inventory.Allocations{p: {"VCPU": 1, "DISK_GB": 10}},
		}
		storetest.Allocate(t, s, w)
		w.Expect, w.Project, w.User, w.Type = inventory.ExpectGeneration(1), "q", "v", nil
		w.Allocations = inventory.Allocations{p: {"VCPU": 3, "DISK_GB": 5}}
		replace(w)
		return dumpState(t, db, p, w.Consumer)
	}
	want := rows(func(w inventory.ConsumerWrite) {
		if err := inventorystore.ReplaceTogether(t.Context(), s.Inventory, []inventory.ConsumerWrite{w})[0]; err != nil {
			t.Fatal(err)
		}
	})
	got := rows(func(w inventory.ConsumerWrite) {
		if done, err := inventorystore.TryStatement(t.Context(), s.Inventory, w); !done || err != nil {
			t.Fatalf("replace the allocations of a consumer with one statement: got done %t, error %v; want done", done, err)
		}
	})
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("state after the statement (-after the transaction +after the statement):\n%s", d)
	}
}

// dumpState returns the rows of a provider and a consumer, without IDs and times.
func dumpState(t *testing.T, db *pgx.Conn, provider, consumer string) []string {
	t.Helper()
	rows, err := db.Query(t.Context(), `
		select format('provider %s', generation) from provider where uuid = $1
		union all
		select format('consumer %s %s %s %s', project, user_id, type, generation) from consumer where uuid = $2
		union all
		select format('used %s %s', c.name, i.used)
		from inventory i
		join resource_class c on c.id = i.class_id
		where i.provider_id = (select id from provider where uuid = $1)
		union all
		select format('allocation %s %s %s', c.name, a.amount, a.position)
		from allocation a
		join resource_class c on c.id = a.class_id
		where a.consumer_id = (select id from consumer where uuid = $2)
		union all
		select format('change %s %s %s %s %s', cause, consumer_from, consumer_to, provider_from, provider_to)
		from generation_change
		where consumer = $2
		order by 1`, provider, consumer)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestAllocationStatement_WritesNothingIfUncertain(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	db := storetest.Connect(t, url)
	p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(9)})
	held := uuid.NewString()
	storetest.Allocate(t, s, storetest.VCPUs(held, p, 1, inventory.ExpectAbsent()))
	q := storetest.AddHost(t, s, "q", map[string]inventory.Inventory{
		"VCPU":    inventory.NewInventory(9),
		"DISK_GB": inventory.NewInventory(9),
	})
	second := uuid.NewString()
	storetest.Allocate(t, s, storetest.VCPUs(second, q, 1, inventory.ExpectAbsent()))
	both := storetest.VCPUs(uuid.NewString(), p, 1, inventory.ExpectAbsent())
	both.Allocations[q] = map[string]int64{"VCPU": 1}
	storetest.Allocate(t, s, both)
	other := storetest.VCPUs(second, q, 1, inventory.ExpectGeneration(1))
	other.Allocations[q] = map[string]int64{"DISK_GB": 1}
	more := storetest.VCPUs(second, q, 1, inventory.ExpectGeneration(1))
	more.Allocations[q]["DISK_GB"] = 1
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
	maps.Copy(tests, map[string]inventory.ConsumerWrite{
		"the consumer has another generation": storetest.VCPUs(held, p, 2, inventory.ExpectGeneration(2)),
		"the consumer moves to another provider": storetest.VCPUs(
			held, q, 1, inventory.ExpectGeneration(1),
		),
		"the consumer has allocations of another provider, too": storetest.VCPUs(
			both.Consumer, p, 1, inventory.ExpectGeneration(1),
		),
		"the consumer gets another class":  other,
		"the consumer gets a second class": more,
		"the new amount of the consumer exceeds the capacity": storetest.VCPUs(
			held, p, 9, inventory.ExpectGeneration(1),
		),
	})
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
