package inventorystore_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/inventorystore"
	"berth/internal/store/storetest"
)

const (
	incrementGeneration = `update provider set generation = generation + 1 where name = 'p'`
	insertConsumer      = `insert into consumer (uuid, project, user_id, generation) values ('11111111-1111-4111-8111-111111111111', 'p', 'u', 1)`
	allocateOne         = `insert into allocation (consumer_id, provider_id, class_id, amount)
		select c.id, p.id, 0, 1 from consumer c, provider p where c.uuid = '11111111-1111-4111-8111-111111111111' and p.name = 'p'`
)

func TestProviderLock_WaitingWriterChecksTheCommittedRows(t *testing.T) {
	t.Parallel()
	newConsumer := "11111111-1111-4111-8111-111111111111"
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
			first: incrementGeneration,
			then:  []string{insertConsumer, allocateOne},
			want:  inventory.Conflict,
		},
		"the consumer appeared": {
			do: func(s *store.Store, p string) error {
				return s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(newConsumer, p, 1, inventory.ExpectAbsent()))
			},
			first: incrementGeneration,
			then:  []string{insertConsumer, allocateOne},
			want:  inventory.ConcurrentUpdate,
		},
		"the consumer appeared and the capacity suffices": {
			do: func(s *store.Store, p string) error {
				return s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(newConsumer, p, 1, inventory.ExpectAbsent()))
			},
			first: incrementGeneration,
			then:  []string{`update inventory set total = 2`, insertConsumer, allocateOne},
			want:  inventory.ConcurrentUpdate,
		},
		"the inventory is gone": {
			do: func(s *store.Store, p string) error {
				return s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(uuid.NewString(), p, 1, inventory.ExpectAbsent()))
			},
			first: incrementGeneration,
			then:  []string{`delete from inventory`},
			want:  inventory.Conflict,
		},
		"the provider is gone": {
			do: func(s *store.Store, p string) error {
				return s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(uuid.NewString(), p, 1, inventory.ExpectAbsent()))
			},
			first: incrementGeneration,
			then:  []string{`delete from provider`},
			want:  inventory.Invalid,
		},
		"the provider to delete is in use": {
			do:    func(s *store.Store, p string) error { return s.Inventory.DeleteProvider(t.Context(), p) },
			first: incrementGeneration,
			then:  []string{insertConsumer, allocateOne},
			want:  inventory.ProviderInUse,
		},
		"the provider to delete has a child": {
			do:    func(s *store.Store, p string) error { return s.Inventory.DeleteProvider(t.Context(), p) },
			first: incrementGeneration,
			then:  []string{`insert into provider (uuid, name, parent_id, root_id) select 'c', 'c', id, id from provider`},
			want:  inventory.HasChildren,
		},
		"the inventory to clear is in use": {
			do:    func(s *store.Store, p string) error { return s.Inventory.DeleteInventories(t.Context(), p) },
			first: incrementGeneration,
			then:  []string{insertConsumer, allocateOne},
			want:  inventory.InventoryInUse,
		},
		"the aggregates changed": {
			do: func(s *store.Store, p string) error {
				generation := int64(1)
				return errorOf(s.Inventory.SetAggregates(t.Context(), p, nil, &generation))
			},
			first: incrementGeneration, want: inventory.ConcurrentUpdate,
		},
		"the traits changed": {
			do: func(s *store.Store, p string) error {
				return errorOf(s.Inventory.SetProviderTraits(t.Context(), p, 1, []string{"COMPUTE_NODE"}))
			},
			first: incrementGeneration, want: inventory.ConcurrentUpdate,
		},
		"the inventories changed": {
			do: func(s *store.Store, p string) error {
				return errorOf(s.Inventory.ReplaceInventories(t.Context(), p, 1, nil))
			},
			first: incrementGeneration, want: inventory.ConcurrentUpdate,
		},
		"the trait is gone": {
			do: func(s *store.Store, p string) error {
				return errorOf(s.Inventory.SetProviderTraits(t.Context(), p, 1, []string{"CUSTOM_T"}))
			},
			first: `delete from trait where name = 'CUSTOM_T'`, want: inventory.Invalid,
		},
		"the class is gone": {
			do: func(s *store.Store, p string) error {
				return errorOf(s.Inventory.CreateInventory(t.Context(), p, "CUSTOM_C", inventory.NewInventory(1)))
			},
			first: `delete from resource_class where name = 'CUSTOM_C'`, want: inventory.UnknownClass,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			p := storetest.AddHost(t, s, "p",
				map[string]inventory.Inventory{"VCPU": inventory.NewInventory(1)})
			storetest.Exec(t, url, `insert into trait (name) values ('CUSTOM_T')`)
			storetest.Exec(t, url, `insert into resource_class (name) values ('CUSTOM_C')`)

			err := storetest.NewRival(t, url).
				RunAgainst(func() error { return tc.do(s, p) }, tc.first, tc.then...)

			if faultKind(err) != tc.want {
				t.Errorf(
					"write that waited for the commit of another writer: want a fault of kind %d, got %v",
					tc.want,
					err,
				)
			}
		})
	}
}

func TestProviderTree_NewChildWaitsForAMovingParent(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	other, mid := storetest.AddHost(t, s, "other", nil), storetest.AddHost(t, s, "mid", nil)
	child := inventory.ProviderDraft{UUID: uuid.NewString(), Name: "child", Parent: mid}

	err := storetest.NewRival(t, url).
		RunAgainst(func() error { return errorOf(s.Inventory.CreateProvider(t.Context(), child)) },
			`select pg_advisory_xact_lock(1650815604)`, // the lock that a move of a provider takes
			`update provider set (parent_id, root_id) = (select id, id from provider where name = 'other') where name = 'mid'`)

	if err != nil {
		t.Fatal(err)
	}
	if p, err := s.Inventory.Provider(t.Context(), child.UUID); err != nil || p.Root != other {
		t.Errorf("create a child while its parent moves: want the root %s, got %+v, error %v", other, p, err)
	}
}

func TestAllocations_DeleteIgnoresAnUncommittedConsumer(t *testing.T) {
	t.Parallel()
	for name, expect := range map[string]inventory.Expectation{"expects none": inventory.ExpectAbsent(), "expects nothing": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			p := storetest.AddHost(t, s, "p",
				map[string]inventory.Inventory{"VCPU": inventory.NewInventory(1)})
			r := storetest.NewRival(t, url)
			for _, sql := range []string{`begin`, incrementGeneration, insertConsumer, allocateOne} {
				r.Do(sql)
			}

			storetest.Allocate(t, s, storetest.NoAllocations("11111111-1111-4111-8111-111111111111", expect))
			r.Do(`commit`)

			if u, err := s.Inventory.ProviderUsage(t.Context(), p); err != nil || u.Used["VCPU"] != 1 ||
				u.Generation != 2 {
				t.Errorf(
					"usage of the provider after the other writer created a consumer: got %+v, error %v; want 1 VCPU at generation 2",
					u,
					err,
				)
			}
		})
	}
}

func TestAllocations_DeadlockIsRetried(t *testing.T) {
	t.Parallel()
	for name, event := range map[string]string{"at the generations": "update on provider", "at the allocations": "insert on allocation"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			p := storetest.AddHost(t, s, "p",
				map[string]inventory.Inventory{"VCPU": inventory.NewInventory(10)})
			db := createDeadlockTrigger(t, url)
			storetest.Exec(t, url, `create trigger give_up before `+event+` execute function give_up()`)

			storetest.Allocate(t, s, storetest.VCPUs(uuid.NewString(), p, 1, inventory.ExpectAbsent()))

			if n := countAttempts(t, db); n != 3 {
				t.Errorf(
					"number of attempts of the transaction: got %d, want 3, because the first two end in a deadlock",
					n,
				)
			}
		})
	}
}

// A second attempt would wait as long again, and meanwhile hold up the other writes of the provider.
func TestAllocations_WriteThatHasWaitedInVainIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{"for a lock": "55P03", "for the end of the statement": "57014"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			p := storetest.AddHost(t, s, "p",
				map[string]inventory.Inventory{"VCPU": inventory.NewInventory(10)})
			storetest.ExecScript(t, url, `
				create sequence tries;
				create function give_up() returns trigger language plpgsql as $$
				begin
					perform nextval('tries');
					raise exception 'waited in vain' using errcode = '`+code+`';
				end $$;
				create trigger give_up before update on provider execute function give_up()`)

			err := s.Inventory.PutAllocations(t.Context(),
				storetest.VCPUs(uuid.NewString(), p, 1, inventory.ExpectAbsent()))

			if !errors.Is(err, db.ErrUnavailable) {
				t.Errorf("write that has waited in vain: got error %v, want db.ErrUnavailable", err)
			}
			if n := countAttempts(t, storetest.Connect(t, url)); n != 1 {
				t.Errorf("number of attempts of the write: got %d, want 1", n)
			}
		})
	}
}

// TestBatch_DeadlockAfterACallbackErrorIsRetried runs a batch of two statements: the callback of the first
// statement returns an error, and the second statement fails with a simulated deadlock.
func TestBatch_DeadlockAfterACallbackErrorIsRetried(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	db := createDeadlockTrigger(t, url)
	storetest.Exec(t, url, `create trigger give_up before delete on allocation execute function give_up()`)
	stale := errors.New("error of the callback")

	err := inventorystore.RunBatch(t.Context(), s.Inventory, func(b *pgx.Batch) {
		b.Queue(`select 1`).QueryRow(func(pgx.Row) error { return stale })
		b.Queue(`delete from allocation`)
	})

	if !errors.Is(err, stale) {
		t.Errorf("run a batch with a failing callback: got %v, want the callback's error", err)
	}
	if n := countAttempts(t, db); n != 3 {
		t.Errorf(
			"number of attempts of the transaction: got %d, want 3, because the first two end in a deadlock",
			n,
		)
	}
}

// createDeadlockTrigger creates a trigger function whose first two calls fail with the error code of a
// deadlock.
func createDeadlockTrigger(t *testing.T, url string) *pgx.Conn {
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

func countAttempts(t *testing.T, db *pgx.Conn) int {
	t.Helper()
	var n int
	if err := db.QueryRow(t.Context(), `select last_value from tries`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLockOrder_ProvidersOfCurrentAllocationsBeforeTheirInventories(t *testing.T) {
	t.Parallel()
	const consumer = "11111111-1111-4111-8111-111111111111"
	for name, write := range map[string]func(s *store.Store, to string) error{
		"move to another provider": func(s *store.Store, to string) error {
			w := storetest.VCPUs(consumer, to, 1, inventory.ExpectGeneration(1))
			return s.Inventory.PutAllocations(t.Context(), w)
		},
		"allocations for nobody": func(s *store.Store, _ string) error {
			w := storetest.NoAllocations(consumer, inventory.ExpectGeneration(1))
			return s.Inventory.PutAllocations(t.Context(), w)
		},
		"deletion of the consumer": func(s *store.Store, _ string) error {
			return s.Inventory.DeleteAllocations(t.Context(), consumer)
		},
		"reshape": func(s *store.Store, to string) error {
			w := storetest.VCPUs(consumer, to, 1, inventory.ExpectGeneration(1))
			return s.Inventory.Reshape(t.Context(), inventory.Reshape{Writes: []inventory.ConsumerWrite{w}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			vcpus := map[string]inventory.Inventory{"VCPU": inventory.NewInventory(1)}
			from, to := storetest.AddHost(t, s, "from", vcpus), storetest.AddHost(t, s, "to", vcpus)
			storetest.Allocate(t, s, storetest.VCPUs(consumer, from, 1, inventory.ExpectAbsent()))

			err := storetest.NewRival(t, url).RunAgainst(func() error { return write(s, to) },
				`select from provider where name = 'from' for update`,
				`select from inventory for update nowait`)

			if err != nil {
				t.Error(err)
			}
		})
	}
}

// The mover moves the allocation to another provider while the deletion waits for the consumer. The holder
// has the lock of this provider.
func TestLockOrder_DeletionLocksTheProvidersThatItFindsAfterWaiting(t *testing.T) {
	t.Parallel()
	const consumer = "11111111-1111-4111-8111-111111111111"
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	vcpus := map[string]inventory.Inventory{"VCPU": inventory.NewInventory(1)}
	from := storetest.AddHost(t, s, "from", vcpus)
	storetest.AddHost(t, s, "to", vcpus)
	storetest.Allocate(t, s, storetest.VCPUs(consumer, from, 1, inventory.ExpectAbsent()))
	mover, holder, done := storetest.NewRival(t, url), storetest.NewRival(t, url), make(chan error, 1)
	mover.Do(`begin`)
	mover.Do(`select from consumer for update`)
	go func() { done <- s.Inventory.DeleteAllocations(t.Context(), consumer) }()
	mover.AwaitWaiter()

	mover.Do(`update allocation set provider_id = (select id from provider where name = 'to')`)
	holder.Do(`begin`)
	holder.Do(`select from provider where name = 'to' for no key update`)
	mover.Do(`commit`)

	for blocks := false; !blocks; {
		select {
		case err := <-done:
			t.Fatalf("the deletion did not wait for the provider, error %v", err)
		default:
		}
		err := holder.DB.QueryRow(t.Context(), `
			select exists (select from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid)))
			from pg_sleep(0.005)`).Scan(&blocks)
		if err != nil {
			t.Fatal(err)
		}
	}
	holder.Do(`select from inventory for update nowait`)
	holder.Do(`commit`)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
