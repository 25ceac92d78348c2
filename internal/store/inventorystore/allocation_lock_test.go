package inventorystore_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store"
	"berth/internal/store/inventorystore"
	"berth/internal/store/storetest"
)

const (
	bump      = `update provider set generation = generation + 1 where name = 'p'`
	newcomer  = `insert into consumer (uuid, project, user_id, generation) values ('11111111-1111-4111-8111-111111111111', 'p', 'u', 1)`
	takesLast = `insert into allocation (consumer_id, provider_id, class_id, amount)
		select c.id, p.id, 0, 1 from consumer c, provider p where c.uuid = '11111111-1111-4111-8111-111111111111' and p.name = 'p'`
)

func TestWriterSeesWhatTheOneBeforeItDid(t *testing.T) {
	t.Parallel()
	newcomerID := "11111111-1111-4111-8111-111111111111"
	for name, tc := range map[string]struct {
		do    func(s *store.Store, p string) error
		first string
		then  []string
		want  inventory.Kind
	}{
		"the last unit is taken": {
			do: func(s *store.Store, p string) error {
				return s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(uuid.NewString(), p, 1, inventory.ExpectAbsent()))
			},
			first: bump, then: []string{newcomer, takesLast}, want: inventory.Conflict,
		},
		"the consumer appeared": {
			do: func(s *store.Store, p string) error {
				return s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(newcomerID, p, 1, inventory.ExpectAbsent()))
			},
			first: bump, then: []string{newcomer, takesLast}, want: inventory.ConcurrentUpdate,
		},
		"the consumer appeared and left enough": {
			do: func(s *store.Store, p string) error {
				return s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(newcomerID, p, 1, inventory.ExpectAbsent()))
			},
			first: bump, then: []string{`update inventory set total = 2`, newcomer, takesLast}, want: inventory.ConcurrentUpdate,
		},
		"the inventory is gone": {
			do: func(s *store.Store, p string) error {
				return s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(uuid.NewString(), p, 1, inventory.ExpectAbsent()))
			},
			first: bump, then: []string{`delete from inventory`}, want: inventory.Conflict,
		},
		"the provider is gone": {
			do: func(s *store.Store, p string) error {
				return s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(uuid.NewString(), p, 1, inventory.ExpectAbsent()))
			},
			first: bump, then: []string{`delete from provider`}, want: inventory.Invalid,
		},
		"the provider to delete is in use": {
			do:    func(s *store.Store, p string) error { return s.Inventory.DeleteProvider(t.Context(), p) },
			first: bump, then: []string{newcomer, takesLast}, want: inventory.ProviderInUse,
		},
		"the provider to delete has a child": {
			do:    func(s *store.Store, p string) error { return s.Inventory.DeleteProvider(t.Context(), p) },
			first: bump, then: []string{`insert into provider (uuid, name, parent_id, root_id) select 'c', 'c', id, id from provider`},
			want: inventory.HasChildren,
		},
		"the inventory to clear is in use": {
			do:    func(s *store.Store, p string) error { return s.Inventory.DeleteInventories(t.Context(), p) },
			first: bump, then: []string{newcomer, takesLast}, want: inventory.InventoryInUse,
		},
		"the aggregates changed": {
			do: func(s *store.Store, p string) error {
				generation := int64(1)
				return second(s.Inventory.SetAggregates(t.Context(), p, nil, &generation))
			},
			first: bump, want: inventory.ConcurrentUpdate,
		},
		"the traits changed": {
			do: func(s *store.Store, p string) error {
				return second(s.Inventory.SetProviderTraits(t.Context(), p, 1, []string{"COMPUTE_NODE"}))
			},
			first: bump, want: inventory.ConcurrentUpdate,
		},
		"the inventories changed": {
			do: func(s *store.Store, p string) error {
				return second(s.Inventory.ReplaceInventories(t.Context(), p, 1, nil))
			},
			first: bump, want: inventory.ConcurrentUpdate,
		},
		"the trait is gone": {
			do: func(s *store.Store, p string) error {
				return second(s.Inventory.SetProviderTraits(t.Context(), p, 1, []string{"CUSTOM_T"}))
			},
			first: `delete from trait where name = 'CUSTOM_T'`, want: inventory.Invalid,
		},
		"the class is gone": {
			do: func(s *store.Store, p string) error {
				return second(s.Inventory.CreateInventory(t.Context(), p, "CUSTOM_C", inventory.NewInventory(1)))
			},
			first: `delete from resource_class where name = 'CUSTOM_C'`, want: inventory.UnknownClass,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(1)})
			storetest.Exec(t, url, `insert into trait (name) values ('CUSTOM_T')`)
			storetest.Exec(t, url, `insert into resource_class (name) values ('CUSTOM_C')`)

			err := storetest.NewRival(t, url).RunAgainst(func() error { return tc.do(s, p) }, tc.first, tc.then...)

			if problemKind(err) != tc.want {
				t.Errorf("want a problem of kind %d, got %v", tc.want, err)
			}
		})
	}
}

func TestChildFollowsAParentThatIsJustMoving(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	other, mid := storetest.AddHost(t, s, "other", nil), storetest.AddHost(t, s, "mid", nil)
	child := inventory.ProviderDraft{UUID: uuid.NewString(), Name: "child", Parent: mid}

	err := storetest.NewRival(t, url).RunAgainst(func() error { return second(s.Inventory.CreateProvider(t.Context(), child)) },
		`select pg_advisory_xact_lock(1650815604)`, // as a move does
		`update provider set (parent_id, root_id) = (select id, id from provider where name = 'other') where name = 'mid'`)

	if err != nil {
		t.Fatal(err)
	}
	if p, err := s.Inventory.Provider(t.Context(), child.UUID); err != nil || p.Root != other {
		t.Errorf("want the root %s, got %+v, error %v", other, p, err)
	}
}

func TestEmptyingAConsumerThatIsJustAppearingLeavesIt(t *testing.T) {
	t.Parallel()
	for name, expect := range map[string]inventory.Expectation{"expects none": inventory.ExpectAbsent(), "expects nothing": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(1)})
			r := storetest.NewRival(t, url)
			for _, sql := range []string{`begin`, bump, newcomer, takesLast} {
				r.Do(sql)
			}

			storetest.Allocate(t, s, storetest.NoAllocations("11111111-1111-4111-8111-111111111111", expect))
			r.Do(`commit`)

			if u, err := s.Inventory.ProviderUsage(t.Context(), p); err != nil || u.Used["VCPU"] != 1 || u.Generation != 2 {
				t.Errorf("want the newcomer to hold 1 at generation 2, got %+v, error %v", u, err)
			}
		})
	}
}

func TestDeadlockIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, event := range map[string]string{"at the generations": "update on provider", "at the allocations": "insert on allocation"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(10)})
			db := givesUpTwice(t, url)
			storetest.Exec(t, url, `create trigger give_up before `+event+` execute function give_up()`)

			storetest.Allocate(t, s, storetest.VCPUs(uuid.NewString(), p, 1, inventory.ExpectAbsent()))

			if n := tries(t, db); n != 3 {
				t.Errorf("tried %d times, want 3", n)
			}
		})
	}
}

// TestDeadlockBehindARefusalIsTriedAgain lets the database give up on a statement of a batch whose first one made a
// callback refuse.
func TestDeadlockBehindARefusalIsTriedAgain(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	db := givesUpTwice(t, url)
	storetest.Exec(t, url, `create trigger give_up before delete on allocation execute function give_up()`)
	stale := errors.New("stale")

	err := inventorystore.RunBatch(t.Context(), s.Inventory, func(b *pgx.Batch) {
		b.Queue(`select 1`).QueryRow(func(pgx.Row) error { return stale })
		b.Queue(`delete from allocation`)
	})

	if !errors.Is(err, stale) {
		t.Errorf("want what the callback says, got %v", err)
	}
	if n := tries(t, db); n != 3 {
		t.Errorf("tried %d times, want 3", n)
	}
}

// givesUpTwice makes a trigger function that ends the first two transactions as a deadlock does.
func givesUpTwice(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	db := storetest.Connect(t, url)
	storetest.Exec(t, url, `create sequence tries`)
	storetest.Exec(t, url, `
		create function give_up() returns trigger language plpgsql as $$
		begin
			if nextval('tries') <= 2 then
				raise exception 'deadlock detected' using errcode = '40P01';
			end if;
			return null;
		end $$`)
	return db
}

func tries(t *testing.T, db *pgx.Conn) int {
	t.Helper()
	var n int
	if err := db.QueryRow(t.Context(), `select last_value from tries`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
