package relay_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"berth/internal/contract"
	"berth/internal/devstack/temporaltest"
	"berth/internal/relay"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
	"berth/internal/store/storetest"
)

// faultyTemporal answers the calls that start and signal workflows as the function `answer` says; all other
// calls reach the Temporal server.
type faultyTemporal struct {
	answer    func(ctx context.Context, workflowID string, inFlight int) error
	mu        sync.Mutex
	inFlight  int
	delivered []string // workflow IDs in the order of success
}

func (f *faultyTemporal) intercept(
	ctx context.Context,
	method string,
	req, reply any,
	cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	var id string
	switch r := req.(type) {
	case *workflowservice.StartWorkflowExecutionRequest:
		id = r.GetWorkflowId()
	case *workflowservice.SignalWithStartWorkflowExecutionRequest:
		id = r.GetWorkflowId()
	default:
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	f.mu.Lock()
	f.inFlight++
	n := f.inFlight
	f.mu.Unlock()
	err := f.answer(ctx, id, n)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inFlight--
	if err == nil {
		f.delivered = append(f.delivered, id)
		return nil
	}
	return serviceerror.ToStatus(err).Err()
}

// order returns the workflow IDs of the delivered notes in the order of their delivery.
func (f *faultyTemporal) order() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.delivered...)
}

// startFaultyRelay runs a relay whose calls to Temporal go through f. A call gets at least the time
// minDeadline. The returned registry contains the metrics of the relay.
func startFaultyRelay(
	t *testing.T,
	s *store.Store,
	f *faultyTemporal,
	minDeadline time.Duration,
) *prometheus.Registry {
	t.Helper()
	n := temporaltest.New(t)
	c, err := client.DialContext(
		t.Context(),
		client.Options{HostPort: n.Address, Namespace: n.Name, ConnectionOptions: client.ConnectionOptions{
			DialOptions: []grpc.DialOption{
				grpc.WithChainUnaryInterceptor(relay.SingleAttempts, f.intercept),
			}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	metrics := prometheus.NewRegistry()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = relay.New(relay.Options{
			Store:       s.Outbox,
			Client:      c,
			Namespace:   n.Name,
			Metrics:     metrics,
			MinDeadline: minDeadline,
			MaxDeadline: time.Hour,
		}).Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done; c.Close() })
	return metrics
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitTimeout); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("condition is still false: %s", what)
		}
	}
}

// addJournalNotes writes the notes of n journal entries.
func addJournalNotes(t *testing.T, url string, n int) {
	t.Helper()
	storetest.Exec(t, url, `
		insert into note (workflow_id, workflow, fresh, summary, attributes, due_at, priority)
		select 'journal/' || n, 'JournalEntry', true, '', '{}', now() - interval '1 minute', 2
		from generate_series(1, $1::integer) n`, n)
}

func enqueue(t *testing.T, s *store.Store, workflow, id string) {
	t.Helper()
	if err := s.DB.InTx(t.Context(), func(tx db.Tx) error {
		return outbox.Enqueue(t.Context(), tx, contract.Nudge{Workflow: workflow, ID: id, NotRunning: true})
	}); err != nil {
		t.Fatal(err)
	}
}

func counter(t *testing.T, metrics *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("metric %s does not exist", name)
	return 0
}

// The stub of Temporal answers at most three calls at the same time, and refuses the others as a throttled
// server does.
func TestRun_ThrottledTemporalGetsFewerCalls(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	const notes = 600
	addJournalNotes(t, url, notes)
	f := &faultyTemporal{answer: func(_ context.Context, _ string, inFlight int) error {
		if inFlight > 3 {
			return serviceerror.NewResourceExhausted(enums.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT,
				"namespace rate limit exceeded")
		}
		time.Sleep(20 * time.Millisecond)
		return nil
	}}

	metrics := startFaultyRelay(t, s, f, time.Hour)

	await(t, "all notes are delivered", func() bool { return len(f.order()) >= notes })
	awaitNoNotes(t, s)
	deferred := counter(t, metrics, "berth_notes_deferred_total")
	t.Logf("delivered %d notes, deferred %v deliveries", notes, deferred)
	if deferred > notes/2 {
		t.Errorf(
			"deliveries that a throttled Temporal refused: got %v for %d notes, want fewer than half",
			deferred,
			notes,
		)
	}
}

// The stub of Temporal answers after two seconds. The first deadline is one second; a relay that keeps this
// deadline never gets an answer.
func TestRun_SlowAnswersAreNotAbandoned(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	const notes = 40
	addJournalNotes(t, url, notes)
	f := &faultyTemporal{answer: func(ctx context.Context, _ string, _ int) error {
		select {
		case <-time.After(2 * time.Second):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}

	startFaultyRelay(t, s, f, time.Second)

	await(t, "all notes are delivered", func() bool { return len(f.order()) >= notes })
	awaitNoNotes(t, s)
}

// The stub of Temporal delivers some notes of the journal, and then answers no call until the note of the
// port is written.
func TestRun_PortNoteOvertakesTheJournal(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	addJournalNotes(t, url, 5000)
	const before, maxCalls = 100, 16
	var calls atomic.Int64
	written := make(chan struct{})
	f := &faultyTemporal{answer: func(ctx context.Context, _ string, _ int) error {
		if calls.Add(1) <= before {
			return nil
		}
		select {
		case <-written:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	startFaultyRelay(t, s, f, time.Hour)
	await(t, "the relay makes as many calls as it can",
		func() bool { return calls.Load() >= before+maxCalls })

	enqueue(t, s, contract.Port, "port/1")
	close(written)

	await(t, "the port's note is delivered", func() bool { return slices.Contains(f.order(), "port/1") })
	if place := slices.Index(f.order(), "port/1"); place >= before+2*maxCalls {
		t.Errorf("place of the port's note among 5,000 notes of the journal: got %d, want less than %d",
			place, before+2*maxCalls)
	}
}

func TestRun_NoteThatTemporalRefusesIsSetAside(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	var mu sync.Mutex
	refusing := true
	f := &faultyTemporal{answer: func(_ context.Context, id string, _ int) error {
		mu.Lock()
		defer mu.Unlock()
		if refusing && id == "port/full" {
			return serviceerror.NewInvalidArgument("exceeded workflow execution limit for signal events")
		}
		return nil
	}}
	startFaultyRelay(t, s, f, time.Hour)

	enqueue(t, s, contract.Port, "port/full")
	await(t, "the note is set aside", func() bool {
		n, err := s.Outbox.CountSetAside(t.Context())
		return err == nil && n == 1
	})
	if b, err := s.Outbox.Backlog(t.Context()); err != nil || b.Notes != 0 {
		t.Errorf("backlog while a note is set aside: got %+v, error %v; want none", b, err)
	}
	enqueue(t, s, contract.Port, "port/other")
	await(t, "another note is delivered", func() bool { return strings.Join(f.order(), " ") == "port/other" })

	mu.Lock()
	refusing = false
	mu.Unlock()
	enqueue(t, s, contract.Port, "port/full")

	await(t, "the note is delivered after the next nudge",
		func() bool { return strings.Join(f.order(), " ") == "port/other port/full" })
	await(t, "no note is set aside", func() bool {
		n, err := s.Outbox.CountSetAside(t.Context())
		return err == nil && n == 0
	})
}
