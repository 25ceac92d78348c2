package inventorystore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"berth/internal/inventory"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/inventorystore"
	"berth/internal/store/storetest"
)

// dumpRows returns the rows of providers, consumers, allocations and history, without IDs and dates.
func dumpRows(t *testing.T, db *pgx.Conn) []string {
	t.Helper()
	rows, err := db.Query(t.Context(), `
		select 'provider ' || uuid || ' ' || generation from provider
		union all
		select 'consumer ' || row(uuid, project, user_id, type, generation) from consumer
		union all
		select 'allocation ' || row(k.uuid, p.uuid, a.class_id, a.amount)
		from allocation a
		join consumer k on k.id = a.consumer_id
		join provider p on p.id = a.provider_id
		union all
		select 'change ' || row(actor, cause, consumer, consumer_from, consumer_to, provider, provider_from, provider_to)
		from generation_change
		order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// drawWrite draws a random write for one consumer and one provider. The write may request resource classes of
// which the provider has no inventory, or that do not exist.
func drawWrite(t *rapid.T, provider, consumer string) inventory.ConsumerWrite {
	expect := rapid.SampledFrom([]inventory.Expectation{{}, {}, {}, {}, inventory.ExpectAbsent(), inventory.ExpectGeneration(1)}).
		Draw(t, "expect")
	w := inventory.ConsumerWrite{
		Consumer: consumer,
		Project:  rapid.SampledFrom([]string{"p", "q"}).Draw(t, "project"),
		User:     "u",
		Expect:   expect,
	}
	if rapid.Bool().Draw(t, "typed") {
		w.Type = new("T")
	}
	w.Allocations = inventory.Allocations{provider: {}}
	for _, class := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"VCPU", "VCPU", "VCPU", "VCPU", "VCPU", "VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_NONE"}), 1, 2, rapid.ID).Draw(t, "classes") {
		w.Allocations[provider][class] = rapid.Int64Range(1, 6).Draw(t, "amount")
	}
	return w
}

func TestGroupCommit_ResultsEqualThoseOfSeparateTransactions(t *testing.T) {
	t.Parallel()
	inTurnURL, togetherURL := storetest.URL(t), storetest.URL(t)
	inTurn, together := storetest.Open(t, inTurnURL), storetest.Open(t, togetherURL)
	inTurnDB, togetherDB := storetest.Connect(t, inTurnURL), storetest.Connect(t, togetherURL)

	rapid.Check(t, func(rt *rapid.T) {
		provider := inventory.ProviderDraft{UUID: uuid.NewString(), Name: uuid.NewString()}
		for _, s := range []*store.Store{inTurn, together} {
			stock := map[string]inventory.Inventory{
				"VCPU":      inventory.NewInventory(9),
				"MEMORY_MB": inventory.NewInventory(9),
			}
			storetest.AddProvider(t, s, provider, stock)
		}
		consumers := make([]string, 4)
		for i := range consumers {
			consumers[i] = uuid.NewString()
		}
		for range 2 {
			names := rapid.Permutation(consumers).Draw(rt, "consumers")
			var all [][]inventory.ConsumerWrite
			for _, n := range rapid.SampledFrom([][]int{{1, 1, 1, 1}, {1, 2, 1}, {2, 2}}).Draw(rt, "of how many consumers") {
				var writes []inventory.ConsumerWrite
				for range n {
					writes = append(writes, drawWrite(rt, provider.UUID, names[0]))
					names = names[1:]
				}
				all = append(all, writes)
			}

			got := inventorystore.ReplaceTogether(t.Context(), together.Inventory, all...)

			for i, writes := range all {
				want := inTurn.Inventory.ReplaceAllocations(t.Context(), writes)
				if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(got[i])); diff != "" {
					rt.Errorf(
						"result of write %d in a shared transaction: want the same as in a separate transaction (-separate +shared):\n%s",
						i,
						diff,
					)
				}
			}
		}
	})

	if diff := cmp.Diff(dumpRows(t, inTurnDB), dumpRows(t, togetherDB)); diff != "" {
		t.Errorf(
			"rows after shared transactions: want the same as after separate transactions (-separate +shared):\n%s",
			diff,
		)
	}
}

// queueWriters starts writers of a provider that a competing transaction has locked. The first writer waits
// for the provider's lock; the other writers wait in the group commit queue, in the order of the parameter
// `writers`. When all writers wait, queueWriters calls the function `meanwhile`, commits the competing
// transaction, and returns the errors of the writers.
func queueWriters(
	t *testing.T,
	s *store.Store,
	url, provider string,
	meanwhile func(),
	writers ...func() error,
) []error {
	t.Helper()
	r := storetest.NewRival(t, url)
	r.Do(`begin`)
	r.Do(incrementGeneration)
	results := make([]chan error, len(writers))
	for i, write := range writers {
		results[i] = make(chan error, 1)
		go func() { results[i] <- write() }()
		r.AwaitWaiter()
		for inventorystore.WaitingWrites(s.Inventory) < i {
			time.Sleep(time.Millisecond)
		}
	}
	meanwhile()
	r.Do(`commit`)
	errs := make([]error, len(writers))
	for i := range results {
		errs[i] = <-results[i]
	}
	return errs
}

func TestGroupCommit_WaitingWritersShareATransaction(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(5)})
	twice := uuid.NewString()
	var writers []func() error
	for i := range 8 {
		consumer := uuid.NewString()
		if i > 5 {
			consumer = twice // in two transactions, because the second write depends on the first write
		}
		writers = append(writers, func() error {
			return s.Inventory.PutAllocations(t.Context(),
				storetest.VCPUs(consumer, p, 1, inventory.ExpectAbsent()))
		})
	}

	results := queueWriters(t, s, url, p, func() {}, writers...)

	var kinds []inventory.Kind
	for _, err := range results {
		kinds = append(kinds, faultKind(err))
	}
	want := []inventory.Kind{-1, -1, -1, -1, -1, inventory.Conflict, inventory.Conflict, inventory.Conflict}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf(
			"fault kinds of eight queued writes, of which the first five must succeed (-want +got):\n%s",
			diff,
		)
	}
	var transactions int
	err := storetest.Connect(t, url).
		QueryRow(t.Context(), `select count(distinct xmin::text) from consumer`).
		Scan(&transactions)
	if err != nil || transactions != 2 {
		t.Errorf(
			"number of transactions that created consumers: got %d, error %v; want 2: one for the first writer and one for all others",
			transactions,
			err,
		)
	}
	if n := inventorystore.GroupCommitQueues(s.Inventory); n != 0 {
		t.Errorf("group commit queues after all writes: got %d, want 0", n)
	}
}

func TestGroupCommit_CancelledWaitingWriterWritesNothing(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(5)})
	ctx, leave := context.WithCancel(t.Context())
	impatient := uuid.NewString()
	write := func(ctx context.Context, consumer string) func() error {
		return func() error {
			return s.Inventory.PutAllocations(ctx, storetest.VCPUs(consumer, p, 1, inventory.ExpectAbsent()))
		}
	}

	results := queueWriters(t, s, url, p, leave,
		write(t.Context(), uuid.NewString()), write(ctx, impatient), write(t.Context(), impatient))

	if results[0] != nil || !errors.Is(results[1], context.Canceled) || results[2] != nil {
		t.Errorf("errors of three writers: got %v, want context.Canceled for the second one only", results)
	}
	if h := storetest.Allocations(t, s, impatient); h.Generation != 1 {
		t.Errorf(
			"allocations of the consumer after only the third writer succeeded: got %+v, want generation 1",
			h,
		)
	}
}

func TestGroupCommit_CancelledFirstWriterCancelsNoOther(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(5)})
	ctx, leave := context.WithCancel(t.Context())
	write := func(ctx context.Context) func() error {
		return func() error {
			return s.Inventory.PutAllocations(ctx,
				storetest.VCPUs(uuid.NewString(), p, 1, inventory.ExpectAbsent()))
		}
	}

	results := queueWriters(t, s, url, p, leave, write(ctx), write(t.Context()), write(t.Context()))

	if !errors.Is(results[0], context.Canceled) || results[1] != nil || results[2] != nil {
		t.Errorf("errors of three writers: got %v, want context.Canceled for the first one only", results)
	}
}

// deadlineContext is a context whose deadline passes when the test closes the channel `passed`.
type deadlineContext struct {
	context.Context
	passed chan struct{}
}

func (c deadlineContext) Done() <-chan struct{} { return c.passed }

func (c deadlineContext) Err() error {
	select {
	case <-c.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// The database hangs while one writer waits for a lock and three others wait in the group commit queue.
func TestGroupCommit_HungDatabaseFailsEachWriterAtItsOwnDeadline(t *testing.T) {
	t.Parallel()
	postgres := storetest.NewServer(t)
	s := storetest.Open(t, postgres.URL)
	p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(10)})
	rival := storetest.NewRival(t, postgres.SuperuserURL())
	rival.Do(`begin`)
	rival.Do(incrementGeneration)
	var contexts []deadlineContext
	var consumers []string
	var results []chan error
	for i := range 4 {
		ctx, result := deadlineContext{t.Context(), make(chan struct{})}, make(chan error, 1)
		contexts = append(contexts, ctx)
		consumers = append(consumers, uuid.NewString())
		results = append(results, result)
		go func() {
			result <- s.Inventory.PutAllocations(ctx, storetest.VCPUs(consumers[i], p, 1, inventory.ExpectAbsent()))
		}()
		rival.AwaitWaiter()
		for inventorystore.WaitingWrites(s.Inventory) < i {
			time.Sleep(time.Millisecond)
		}
	}
	hang := postgres.Outages()[0]
	end := sync.OnceFunc(hang.End)
	defer end()
	hang.Begin()

	// a writer in the queue, the running writer, and a writer whose group then runs
	for _, i := range []int{2, 0, 1} {
		close(contexts[i].passed)
		if err := <-results[i]; !errors.Is(err, db.ErrUnavailable) {
			t.Errorf(
				"writer %d at its deadline, while the database hangs: got error %v, want db.ErrUnavailable",
				i,
				err,
			)
		}
		select {
		case err := <-results[3]:
			t.Fatalf("writer whose deadline has not passed: got error %v, want it to wait", err)
		default:
		}
	}
	end()
	rival.Do(`commit`)

	if err := <-results[3]; err != nil {
		t.Errorf(
			"writer whose deadline has not passed, after the database continues: got error %v, want success",
			err,
		)
	}
	if err := s.Inventory.PutAllocations(t.Context(), storetest.VCPUs(uuid.NewString(), p, 1, inventory.ExpectAbsent())); err != nil {
		t.Errorf("write after the outage: got error %v, want success", err)
	}
	var written int64
	for _, c := range consumers[:3] {
		if h := storetest.Allocations(t, s, c); h.Generation > 0 {
			written++
		}
	}
	if u, err := s.Inventory.ProviderUsage(t.Context(), p); err != nil || u.Used["VCPU"] != written+2 {
		t.Errorf("usage of the provider: got %+v, error %v; want 1 VCPU for each of %d consumers",
			u, err, written+2)
	}
	if h := storetest.Allocations(t, s, consumers[2]); h.Generation != 0 {
		t.Errorf(
			"writer that left the queue before its group ran: got generation %d, want no allocation",
			h.Generation,
		)
	}
}

func TestGroupCommit_WriteThatPostgreSQLRejectsFailsNoOther(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	p := storetest.AddHost(t, s, "p", map[string]inventory.Inventory{"VCPU": inventory.NewInventory(5)})
	storetest.Exec(t, url, `alter table consumer add constraint no_evil check (project <> 'evil')`)
	write := func(project string) func() error {
		w := storetest.VCPUs(uuid.NewString(), p, 1, inventory.ExpectAbsent())
		w.Project = project
		return func() error { return s.Inventory.PutAllocations(t.Context(), w) }
	}

	results := queueWriters(t, s, url, p, func() {}, write("a"), write("b"), write("evil"), write("c"))

	if results[0] != nil || results[1] != nil || results[2] == nil || faultKind(results[2]) >= 0 ||
		results[3] != nil {
		t.Errorf("errors of four writers: got %v, want an error for the third one only", results)
	}
	if u, err := s.Inventory.ProviderUsage(t.Context(), p); err != nil || u.Used["VCPU"] != 3 {
		t.Errorf("usage of the provider after three successful writes: got %+v, error %v; want 3 VCPUs",
			u, err)
	}
}
