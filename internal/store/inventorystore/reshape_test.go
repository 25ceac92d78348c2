package inventorystore_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// randomReshape runs a reshape that replaces the inventories of one or two random providers, without changing
// the total of VCPU of each provider. If the write w expects an existing consumer, the reshape also contains
// the write w.
func randomReshape(
	t *testing.T,
	s *store.Store,
	r *rand.Rand,
	w inventory.ConsumerWrite,
	providers []string,
) error {
	t.Helper()
	shape := inventory.Reshape{Inventories: map[string]inventory.ProviderInventories{}}
	if w.Expect.Generation() != nil {
		shape.Writes = []inventory.ConsumerWrite{w}
	}
	for range 2 {
		name := providers[r.IntN(len(providers))]
		p, err := s.Inventory.Provider(t.Context(), name)
		if err != nil {
			return err
		}
		stock := inventory.ProviderInventories{
			Generation: p.Generation,
			Classes:    map[string]inventory.Inventory{"VCPU": inventory.NewInventory(20)},
		}
		if r.IntN(2) == 0 {
			stock.Classes["DISK_GB"] = inventory.NewInventory(1)
		}
		shape.Inventories[name] = stock
	}
	return s.Inventory.Reshape(t.Context(), shape)
}

// moveVGPUs returns a reshape that moves the VGPU inventory of the provider `host`, and the VGPU allocations
// of the consumers in `holders`, to the provider `child`. The reshape that moveVGPUs returns is allowed only
// if the provider `host` has the given generation.
func moveVGPUs(host, child string, generation int64, holders ...string) inventory.Reshape {
	shape := inventory.Reshape{Inventories: map[string]inventory.ProviderInventories{
		host: {
			Generation: generation,
			Classes:    map[string]inventory.Inventory{"VCPU": inventory.NewInventory(8)},
		},
		child: {Classes: map[string]inventory.Inventory{"VGPU": inventory.NewInventory(8)}}}}
	for _, holder := range holders {
		w := storetest.VCPUs(holder, host, 1, inventory.ExpectGeneration(1))
		w.Allocations[child] = map[string]int64{"VGPU": 1}
		shape.Writes = append(shape.Writes, w)
	}
	return shape
}

func TestReshape_OneOfSeveralSucceedsCompletely(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for round := range 5 {
		host := storetest.AddHost(t, s, fmt.Sprint("host", round), map[string]inventory.Inventory{
			"VCPU": inventory.NewInventory(8),
			"VGPU": inventory.NewInventory(8),
		})
		child := storetest.AddHost(t, s, fmt.Sprint("child", round), nil)
		a, b := uuid.NewString(), uuid.NewString()
		for _, holder := range []string{a, b} {
			w := storetest.VCPUs(holder, host, 1, inventory.ExpectAbsent())
			w.Allocations[host]["VGPU"] = 1
			storetest.Allocate(t, s, w)
		}

		// Two of the ten concurrent writers do not reshape: one writer allocates from the host, and another
		// writer changes the allocations of a consumer.
		generation := generationOf(t, s, host)
		newcomer, rewritten, reshapes := uuid.NewString(), atomic.Bool{}, atomic.Int64{}
		raceWriters(t, 10, func(i int) error {
			switch i {
			case 0:
				return s.Inventory.PutAllocations(t.Context(),
					storetest.VCPUs(newcomer, host, 1, inventory.ExpectAbsent()))
			case 1:
				err := s.Inventory.PutAllocations(t.Context(),
					storetest.VCPUs(b, host, 2, inventory.ExpectGeneration(1)))
				rewritten.Store(err == nil)
				return err
			}
			err := s.Inventory.Reshape(t.Context(), moveVGPUs(host, child, generation, a, b))
			if err == nil {
				reshapes.Add(1)
			}
			return err
		}, inventory.ConcurrentUpdate)

		want := map[string]int64{"VCPU": 3} // usage of the host; the new consumer's VCPU is always allocated
		wantChild := map[string]int64{}
		switch reshapes.Load() {
		case 0: // another writer changed the generation before every reshape
			want["VGPU"] = 2
			if rewritten.Load() {
				want["VCPU"], want["VGPU"] = 4, 1
			}
		case 1:
			wantChild["VGPU"] = 2
			if rewritten.Load() {
				t.Errorf(
					"round %d: a reshape and a write that expect the same consumer generation both succeeded, want only one of them to succeed",
					round,
				)
			}
		default:
			t.Errorf(
				"round %d: number of successful reshapes that expect the same generation: got %d, want at most 1",
				round,
				reshapes.Load(),
			)
		}
		if d := cmp.Diff(want, usageOf(t, s, host)); d != "" {
			t.Errorf("round %d: usage of the host after the reshapes (-want +got):\n%s", round, d)
		}
		if d := cmp.Diff(wantChild, usageOf(t, s, child)); d != "" {
			t.Errorf("round %d: usage of the child after the reshapes (-want +got):\n%s", round, d)
		}
	}
}

func TestReshape_NewConsumerIsCreatedOnce(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(100)})
	for round := range 4 {
		newcomer, generation := uuid.NewString(), generationOf(t, s, p)
		won := raceWriters(t, 12, func(i int) error {
			if i%2 == 0 {
				return s.Inventory.PutAllocations(t.Context(),
					storetest.VCPUs(newcomer, p, 1, inventory.ExpectAbsent()))
			}
			return s.Inventory.Reshape(t.Context(), inventory.Reshape{
				Inventories: map[string]inventory.ProviderInventories{
					p: {
						Generation: generation,
						Classes:    map[string]inventory.Inventory{"VCPU": inventory.NewInventory(100)},
					},
				},
				Writes: []inventory.ConsumerWrite{
					storetest.VCPUs(newcomer, p, 1, inventory.ExpectAbsent()),
				}})
		}, inventory.ConcurrentUpdate)

		if h := storetest.Allocations(t, s, newcomer); won != 1 || h.Generation != 1 {
			t.Errorf(
				"round %d: create the same consumer concurrently: got %d successful writers and consumer %+v, want one writer and generation 1",
				round, won, h,
			)
		}
	}
}

func generationOf(t *testing.T, s *store.Store, provider string) int64 {
	t.Helper()
	p, err := s.Inventory.Provider(t.Context(), provider)
	if err != nil {
		t.Fatal(err)
	}
	return p.Generation
}

func usageOf(t *testing.T, s *store.Store, provider string) map[string]int64 {
	t.Helper()
	u, err := s.Inventory.ProviderUsage(t.Context(), provider)
	if err != nil {
		t.Fatal(err)
	}
	return u.Used
}

func TestReshape_WaitingReshapeChecksTheCommittedRows(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first string
		then  []string
		want  inventory.Kind
	}{
		"another writer changed the provider": {first: incrementGeneration, want: inventory.ConcurrentUpdate},
		"the provider is deleted":             {first: incrementGeneration, then: []string{`delete from provider where name = 'p'`}, want: inventory.ConcurrentUpdate},
		"another writer changed the consumer": {first: `update consumer set generation = 2`, want: inventory.ConcurrentUpdate},
		"the consumer is deleted":             {first: `delete from consumer`, want: inventory.ConcurrentUpdate},
		"the other provider is deleted": {first: `update provider set generation = 7 where name = 'q'`,
			then: []string{`delete from provider where name = 'q'`}, want: inventory.Invalid},
		"a class is deleted": {first: `delete from resource_class where name = 'CUSTOM_C'`, want: inventory.UnknownClass},
		"another writer allocates from an inventory that the reshape deletes": {first: `update provider set generation = 7 where name = 'q'`,
			then: []string{insertConsumer, allocateDisk}, want: inventory.InventoryInUse},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{
				"VCPU":    inventory.NewInventory(4),
				"DISK_GB": inventory.NewInventory(4),
			})
			q := storetest.AddHost(t, s, "q",
				map[string]inventory.Inventory{"VCPU": inventory.NewInventory(4)})
			consumer := uuid.NewString()
			storetest.Allocate(t, s, storetest.VCPUs(consumer, q, 1, inventory.ExpectAbsent()))
			if name == "the provider is deleted" || name == "the other provider is deleted" {
				storetest.Allocate(t, s, storetest.NoAllocations(consumer, inventory.ExpectGeneration(1)))
				storetest.Allocate(t, s, storetest.VCPUs(
					consumer,
					storetest.AddHost(
						t, s, "r",
						map[string]inventory.Inventory{"VCPU": inventory.NewInventory(4)},
					),
					1,
					inventory.ExpectAbsent(),
				))
			}
			storetest.Exec(t, url, `insert into resource_class (name) values ('CUSTOM_C')`)
			shape := inventory.Reshape{
				Inventories: map[string]inventory.ProviderInventories{
					p: {
						Generation: 2,
						Classes: map[string]inventory.Inventory{
							"VCPU":     inventory.NewInventory(4),
							"CUSTOM_C": inventory.NewInventory(1),
						},
					},
				},
				Writes: []inventory.ConsumerWrite{
					storetest.VCPUs(consumer, q, 2, inventory.ExpectGeneration(1)),
				}}

			err := storetest.NewRival(t, url).
				RunAgainst(func() error { return s.Inventory.Reshape(t.Context(), shape) }, tc.first, tc.then...)

			if faultKind(err) != tc.want {
				t.Errorf(
					"reshape that waited for the commit of another writer: want a fault of kind %d, got %v",
					tc.want,
					err,
				)
			}
		})
	}
}

const allocateDisk = `insert into allocation (consumer_id, provider_id, class_id, amount)
	select c.id, p.id, 2, 1 from consumer c, provider p where c.uuid = '11111111-1111-4111-8111-111111111111' and p.name = 'p'`

func TestReshape_IsRecordedInTheHistory(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	host := storetest.AddHost(
		t, s, "host",
		map[string]inventory.Inventory{"VCPU": inventory.NewInventory(8), "VGPU": inventory.NewInventory(8)},
	)
	child, a := storetest.AddHost(t, s, "child", nil), uuid.NewString()
	storetest.Allocate(t, s, storetest.VCPUs(a, host, 1, inventory.ExpectAbsent()))
	if err := s.Inventory.Reshape(db.WithActor(t.Context(), "nova/service"), moveVGPUs(host, child, 3, a)); err != nil {
		t.Fatal(err)
	}
	changes, err := s.Inventory.ProviderHistory(t.Context(), child, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	want := `berth: created, child none to 0
nova/service: reshape, child 0 to 1
nova/service: allocations, a 1 to 2, child 1 to 2
nova/service: reshape, child 2 to 3
`
	if d := cmp.Diff(want, formatChanges(t, changes, map[string]string{child: "child", a: "a"})); d != "" {
		t.Error(d)
	}
	var broken int
	if err := storetest.Connect(t, url).QueryRow(t.Context(), countHistoryGaps).Scan(&broken); err != nil ||
		broken != 0 {
		t.Errorf("gaps between generations in the history after a reshape: got %d, error %v; want 0",
			broken, err)
	}
}
