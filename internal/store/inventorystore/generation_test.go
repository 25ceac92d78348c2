package inventorystore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/store/db"
	"berth/internal/store/inventorystore"
	"berth/internal/store/storetest"
)

// formatChanges formats each change as one line, oldest first, with names for the UUIDs.
func formatChanges(t *testing.T, changes []inventory.GenerationChange, names map[string]string) string {
	t.Helper()
	shift := func(s *inventory.GenerationShift) string {
		if s == nil {
			return ""
		}
		number := func(n *int64) string {
			if n == nil {
				return "none"
			}
			return fmt.Sprint(*n)
		}
		return fmt.Sprintf(", %s %s to %s", names[s.UUID], number(s.From), number(s.To))
	}
	var lines []string
	for _, c := range changes {
		lines = append(
			[]string{fmt.Sprintf("%s: %s%s%s", c.Actor, c.Cause, shift(c.Consumer), shift(c.Provider))},
			lines...)
		if c.ID <= 0 || time.Since(c.At) > time.Hour {
			t.Errorf(
				"history entry: got ID %d, time %s; want a positive ID and a time within the last hour",
				c.ID,
				c.At,
			)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestGenerationHistory_RecordsActorAndCauseOfEveryMethod(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	ctx := db.WithActor(t.Context(), "ann/demo")
	a, b := uuid.NewString(), uuid.NewString()
	one, two := uuid.NewString(), uuid.NewString()
	names := map[string]string{
		a:   "A",
		b:   "B",
		one: "one",
		two: "two",
	}
	stock := map[string]inventory.Inventory{"VCPU": inventory.NewInventory(10)}
	at := func(n int64) *int64 { return &n }
	for i, err := range []error{
		errorOf(s.Inventory.CreateProvider(ctx, inventory.ProviderDraft{UUID: a, Name: "a"})),
		errorOf(s.Inventory.CreateProvider(ctx, inventory.ProviderDraft{UUID: b, Name: "b"})),
		errorOf(s.Inventory.ReplaceInventories(ctx, a, 0, stock)),
		errorOf(s.Inventory.CreateInventory(ctx, b, "VCPU", inventory.NewInventory(10))),
		errorOf(s.Inventory.SetAggregates(ctx, a, []string{one}, at(1))),
		errorOf(s.Inventory.SetAggregates(ctx, a, []string{two}, nil)), // changes no generation
		errorOf(s.Inventory.SetProviderTraits(ctx, a, 2, []string{"COMPUTE_NODE"})),
		errorOf(s.Inventory.SetProviderTraits(ctx, a, 3, []string{"COMPUTE_NODE"})), // changes no generation
		s.Inventory.ClearProviderTraits(db.WithActor(t.Context(), "bob/demo"), a),
		s.Inventory.PutAllocations(t.Context(), inventory.ConsumerWrite{
			Consumer:    one,
			Project:     "p",
			User:        "u",
			Expect:      inventory.ExpectAbsent(),
			Allocations: inventory.Allocations{a: {"VCPU": 1}, b: {"VCPU": 1}},
		}),
		s.Inventory.ReplaceAllocations(ctx, []inventory.ConsumerWrite{storetest.VCPUs(one, b, 2, inventory.ExpectGeneration(1)), storetest.VCPUs(two, b, 2, inventory.ExpectAbsent())}),
		s.Inventory.ReplaceAllocations(ctx, []inventory.ConsumerWrite{storetest.NoAllocations(one, inventory.ExpectGeneration(2)), storetest.VCPUs(two, b, 3, inventory.ExpectGeneration(1))}),
		// changes no generation
		s.Inventory.PutAllocations(ctx, storetest.NoAllocations(one, inventory.ExpectAbsent())),
		s.Inventory.PutAllocations(ctx, storetest.VCPUs(one, b, 2, inventory.ExpectAbsent())),
		s.Inventory.DeleteAllocations(ctx, one),
		s.Inventory.DeleteInventories(ctx, a),
		s.Inventory.DeleteProvider(ctx, a),
	} {
		if err != nil {
			t.Fatalf("step %d of the writes to the generation history: got error %v, want no error", i, err)
		}
	}
	refused := s.Inventory.PutAllocations(ctx, storetest.VCPUs(one, b, 200, inventory.ExpectAbsent()))

	got := ""
	for _, read := range []struct {
		of   func(uuid string) ([]inventory.GenerationChange, error)
		uuid string
	}{
		{func(uuid string) ([]inventory.GenerationChange, error) {
			return s.Inventory.ProviderHistory(t.Context(), uuid, 0, 100)
		}, a},
		{func(uuid string) ([]inventory.GenerationChange, error) {
			return s.Inventory.ProviderHistory(t.Context(), uuid, 0, 100)
		}, b},
		{func(uuid string) ([]inventory.GenerationChange, error) {
			return s.Inventory.ConsumerHistory(t.Context(), uuid, 0, 100)
		}, one},
	} {
		changes, err := read.of(read.uuid)
		if err != nil {
			t.Fatal(err)
		}
		got += formatChanges(t, changes, names) + "\n"
	}

	// If one write changes several consumers, the history entries of these consumers are sorted by the
	// consumers' UUIDs, which are random in this test.
	both := []string{
		"ann/demo: allocations, one 1 to 2, B 2 to 3",
		"ann/demo: allocations, two none to 1, B 2 to 3",
	}
	emptied := []string{
		"ann/demo: allocations, one 2 to none, B 3 to 4",
		"ann/demo: allocations, two 1 to 2, B 3 to 4",
	}
	if one > two {
		both[0], both[1] = both[1], both[0]
		emptied[0], emptied[1] = emptied[1], emptied[0]
	}
	ofB := []string{
		"ann/demo: created, B none to 0",
		"ann/demo: inventories, B 0 to 1",
		"berth: allocations, one none to 1, B 1 to 2",
		both[0],
		both[1],
		emptied[0],
		emptied[1],
		"ann/demo: allocations, one none to 1, B 4 to 5",
	}
	ofOne := []string{
		"berth: allocations, one none to 1, A 4 to 5",
		"berth: allocations, one none to 1, B 1 to 2",
		"ann/demo: allocations, one 1 to 2, B 2 to 3",
		"ann/demo: allocations, one 2 to none, B 3 to 4",
		"ann/demo: allocations, one none to 1, B 4 to 5",
		"ann/demo: allocations, one 1 to none",
	}
	want := `ann/demo: created, A none to 0
ann/demo: inventories, A 0 to 1
ann/demo: aggregates, A 1 to 2
ann/demo: traits, A 2 to 3
bob/demo: traits, A 3 to 4
berth: allocations, one none to 1, A 4 to 5
ann/demo: inventories, A 5 to 6
ann/demo: deleted, A 6 to none

` + strings.Join(ofB, "\n") + "\n\n" + strings.Join(ofOne, "\n") + "\n\n"
	if d := cmp.Diff(want, got); d != "" || faultKind(refused) != inventory.Conflict {
		t.Errorf(
			"write beyond the capacity: got error %v, want a fault of kind Conflict; generation history after all writes (-want +got):\n%s",
			refused,
			d,
		)
	}
}

func TestGenerationHistory_PagesAreNewestFirst(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(10)})
	for n := range int64(5) {
		if _, err := s.Inventory.ReplaceInventories(t.Context(), p, n+1, nil); err != nil {
			t.Fatal(err)
		}
	}
	var reached []int64
	for before := int64(0); ; {
		page, err := s.Inventory.ProviderHistory(t.Context(), p, before, 3)
		if err != nil || len(page) > 3 {
			t.Fatal(page, err)
		}
		if len(page) == 0 {
			break
		}
		for _, c := range page {
			reached, before = append(reached, *c.Provider.To), c.ID
		}
	}
	if d := cmp.Diff([]int64{6, 5, 4, 3, 2, 1, 0}, reached); d != "" {
		t.Error(d)
	}
}

func TestTrimHistory_KeepsEntriesWithinTheRetention(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		keep inventorystore.Retention
		want []int64 // numbers of the entries that are kept
	}{
		"everything":      {inventorystore.Retention{}, []int64{1, 2, 3, 4, 5, 6}},
		"the young":       {inventorystore.Retention{Age: time.Hour}, []int64{4, 5, 6}},
		"few":             {inventorystore.Retention{Rows: 2}, []int64{5, 6}},
		"the young, few":  {inventorystore.Retention{Age: time.Hour, Rows: 5}, []int64{4, 5, 6}},
		"few, not so old": {inventorystore.Retention{Age: 24 * time.Hour, Rows: 4}, []int64{3, 4, 5, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			storetest.Exec(t, url, `
				insert into generation_change (at, actor, cause, provider, provider_to)
				select now() - case when n < 4 then interval '2 hours' else interval '1 minute' end, 'a', 'created', 'p', n
				from generate_series(1, 6) n`)
			var rounds []int64
			for len(rounds) == 0 || rounds[len(rounds)-1] == 2 {
				n, err := s.Inventory.TrimHistory(t.Context(), tc.keep, 2)
				if err != nil {
					t.Fatal(err)
				}
				rounds = append(rounds, n)
			}
			left, err := s.Inventory.ProviderHistory(t.Context(), "p", 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, c := range left {
				got = append([]int64{*c.Provider.To}, got...)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf(
					"history entries that are left after trimming, which deleted %v entries per round (-want +got):\n%s",
					rounds,
					d,
				)
			}
		})
	}
}

// countHistoryGaps is a SQL query that counts two kinds of errors: history entries that do not begin with the
// generation with which the previous entry ends, and consumers and providers whose generation differs from
// their last history entry.
const countHistoryGaps = `
	with moved as (
		select 'consumer ' || consumer as whose, id, consumer_from as before, consumer_to as after
		from generation_change
		where consumer is not null
		union all
		select 'provider ' || provider, id, provider_from, provider_to
		from generation_change
		where provider is not null),
	chain as (
		select *, lag(before) over w as last_before, lag(after) over w as last_after, row_number() over (partition by whose order by id desc) as back
		from moved
		window w as (partition by whose order by id)),
	present as (
		select 'consumer ' || uuid as whose, generation from consumer
		union all
		select 'provider ' || uuid, generation from provider)
	select (
		select count(*)
		from chain
		where before is distinct from last_after -- and it is not the same write as the one before
			and (before, after) is distinct from (last_before, last_after)) + (
		select count(*)
		from (select whose, after from chain where back = 1 and after is not null) as latest
		full join present using (whose)
		where generation is distinct from after)`
