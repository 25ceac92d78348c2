package store_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

// rival is another writer in the middle of its transaction, step by step.
type rival struct {
	t  *testing.T
	db *pgx.Conn
}

// meet lets f run into a rival that has done the statement first and not committed. Once f waits for it, the
// rival does the statements of then and commits; what f makes of that is returned.
func (r rival) meet(f func() error, first string, then ...string) error {
	r.t.Helper()
	watch := storetest.Connect(r.t, r.db.Config().ConnString())
	r.do(`begin`)
	r.do(first)
	done := make(chan error, 1)
	go func() { done <- f() }()
	for waiting := false; !waiting; {
		select {
		case err := <-done:
			r.t.Errorf("did not wait for the rival: %v", err)
			r.do(`rollback`)
			return err
		default:
		}
		err := watch.QueryRow(r.t.Context(), `
			select exists (
				select from pg_stat_activity
				where datname = current_database() and wait_event_type = 'Lock')
			from pg_sleep(0.005)`).Scan(&waiting)
		if err != nil {
			r.t.Fatal(err)
		}
	}
	for _, sql := range then {
		r.do(sql)
	}
	r.do(`commit`)
	return <-done
}

func (r rival) do(sql string) {
	r.t.Helper()
	if _, err := r.db.Exec(r.t.Context(), sql); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
}

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
				return s.PutAllocations(t.Context(), takeVCPU(uuid.NewString(), p, 1, inventory.Absent()))
			},
			first: bump, then: []string{newcomer, takesLast}, want: inventory.Refused,
		},
		"the consumer appeared": {
			do: func(s *store.Store, p string) error {
				return s.PutAllocations(t.Context(), takeVCPU(newcomerID, p, 1, inventory.Absent()))
			},
			first: newcomer, then: []string{bump, takesLast}, want: inventory.Concurrent,
		},
		"the consumer to empty appeared": {
			do: func(s *store.Store, _ string) error {
				return s.PutAllocations(t.Context(), emptyWrite(newcomerID, inventory.Absent()))
			},
			first: newcomer, then: []string{bump, takesLast}, want: inventory.Concurrent,
		},
		"the inventory is gone": {
			do: func(s *store.Store, p string) error {
				return s.PutAllocations(t.Context(), takeVCPU(uuid.NewString(), p, 1, inventory.Absent()))
			},
			first: bump, then: []string{`delete from inventory`}, want: inventory.Refused,
		},
		"the provider is gone": {
			do: func(s *store.Store, p string) error {
				return s.PutAllocations(t.Context(), takeVCPU(uuid.NewString(), p, 1, inventory.Absent()))
			},
			first: bump, then: []string{`delete from provider`}, want: inventory.Invalid,
		},
		"the provider to delete is in use": {
			do:    func(s *store.Store, p string) error { return s.DeleteProvider(t.Context(), p) },
			first: bump, then: []string{newcomer, takesLast}, want: inventory.ProviderInUse,
		},
		"the provider to delete has a child": {
			do:    func(s *store.Store, p string) error { return s.DeleteProvider(t.Context(), p) },
			first: bump, then: []string{`insert into provider (uuid, name, parent_id, root_id) select 'c', 'c', id, id from provider`},
			want: inventory.HasChildren,
		},
		"the inventory to clear is in use": {
			do:    func(s *store.Store, p string) error { return s.ClearStock(t.Context(), p) },
			first: bump, then: []string{newcomer, takesLast}, want: inventory.InventoryInUse,
		},
		"the aggregates changed": {
			do: func(s *store.Store, p string) error {
				generation := int64(1)
				return second(s.SetAggregates(t.Context(), p, nil, &generation))
			},
			first: bump, want: inventory.Concurrent,
		},
		"the traits changed": {
			do: func(s *store.Store, p string) error {
				return second(s.SetProviderTraits(t.Context(), p, 1, []string{"COMPUTE_NODE"}))
			},
			first: bump, want: inventory.Concurrent,
		},
		"the inventories changed": {
			do:    func(s *store.Store, p string) error { return second(s.ReplaceStock(t.Context(), p, 1, nil)) },
			first: bump, want: inventory.Concurrent,
		},
		"the trait is gone": {
			do: func(s *store.Store, p string) error {
				return second(s.SetProviderTraits(t.Context(), p, 1, []string{"CUSTOM_T"}))
			},
			first: `delete from trait where name = 'CUSTOM_T'`, want: inventory.Invalid,
		},
		"the class is gone": {
			do: func(s *store.Store, p string) error {
				return second(s.AddInventory(t.Context(), p, "CUSTOM_C", inventory.Of(1)))
			},
			first: `delete from resource_class where name = 'CUSTOM_C'`, want: inventory.UnknownClass,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := openStore(t, url)
			p := stockedHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.Of(1)})
			storetest.Exec(t, url, `insert into trait (name) values ('CUSTOM_T')`)
			storetest.Exec(t, url, `insert into resource_class (name) values ('CUSTOM_C')`)

			err := rival{t, storetest.Connect(t, url)}.meet(func() error { return tc.do(s, p) }, tc.first, tc.then...)

			if problemKind(err) != tc.want {
				t.Errorf("want a problem of kind %d, got %v", tc.want, err)
			}
		})
	}
}

func TestChildFollowsAParentThatIsJustMoving(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := openStore(t, url)
	other, mid := stockedHost(t, s, "other", nil), stockedHost(t, s, "mid", nil)
	child := inventory.NewProvider{UUID: uuid.NewString(), Name: "child", Parent: mid}

	err := rival{t, storetest.Connect(t, url)}.meet(func() error { return second(s.CreateProvider(t.Context(), child)) },
		`select pg_advisory_xact_lock(1650815604)`, // as a move does
		`update provider set (parent_id, root_id) = (select id, id from provider where name = 'other') where name = 'mid'`)

	if err != nil {
		t.Fatal(err)
	}
	if p, err := s.Provider(t.Context(), child.UUID); err != nil || p.Root != other {
		t.Errorf("want the root %s, got %+v, error %v", other, p, err)
	}
}

// TestDeadlockBehindARefusalIsTriedAgain lets the database give up on a statement of the batch whose first one
// found the consumer at another generation.
func TestDeadlockBehindARefusalIsTriedAgain(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := openStore(t, url)
	p := stockedHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.Of(10)})
	consumer := uuid.NewString()
	putWrite(t, s, takeVCPU(consumer, p, 1, inventory.Absent()))
	storetest.Exec(t, url, `create sequence tries`)
	storetest.Exec(t, url, `
		create function give_up() returns trigger language plpgsql as $$
		begin
			if nextval('tries') <= 2 then
				raise exception 'deadlock detected' using errcode = '40P01';
			end if;
			return null;
		end $$`)
	storetest.Exec(t, url, `create trigger give_up before delete on allocation execute function give_up()`)

	stale := s.PutAllocations(t.Context(), takeVCPU(consumer, p, 2, inventory.At(7)))

	if problemKind(stale) != inventory.Concurrent {
		t.Errorf("want a lost race, got %v", stale)
	}
	var tries int
	if err := storetest.Connect(t, url).QueryRow(t.Context(), `select last_value from tries`).Scan(&tries); err != nil || tries != 3 {
		t.Errorf("tried %d times, error %v, want 3", tries, err)
	}
}
