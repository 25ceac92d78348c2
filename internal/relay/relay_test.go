package relay_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
	"berth/internal/devstack/temporaltest"
	"berth/internal/network"
	"berth/internal/relay"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

var resourceKey = temporal.NewSearchAttributeKeyKeyword(contract.AttributeResource)

func TestMain(m *testing.M) { os.Exit(temporaltest.Main(m, storetest.Main)) }

// patience is how long a test waits for what is bound to happen.
const patience = 2 * time.Minute

// leave commits a network, and with it a note for its journal entry.
func leave(t *testing.T, s *store.Store) {
	t.Helper()
	project, name := "p", "blue"
	if _, err := s.CreateNetworks(t.Context(), []network.NetworkChange{{Project: &project, Name: &name}}); err != nil {
		t.Fatal(err)
	}
}

// run starts a relay that ends with the test.
func run(t *testing.T, s *store.Store, n temporaltest.Namespace) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := relay.New(relay.Options{Store: s, Client: n.Client, Namespace: n.Name, Metrics: prometheus.NewRegistry()}).Run(ctx); err != nil {
			t.Errorf("relay: %v", err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// entries starts a worker whose journal entries tell how they were reached.
func entries(t *testing.T, c client.Client) <-chan string {
	t.Helper()
	reached := make(chan string, 100)
	w := worker.New(c, contract.JournalQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, in contract.Input) error {
		how := "started " + in.Key
		if workflow.GetSignalChannel(ctx, contract.SignalChanged).ReceiveAsync(nil) {
			how = "signalled " + in.Key
		}
		if !workflow.IsReplaying(ctx) {
			reached <- how
		}
		return nil
	}, workflow.RegisterOptions{Name: contract.JournalEntry})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return reached
}

// empty waits until no note is left.
func empty(t *testing.T, s *store.Store) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(25 * time.Millisecond) {
		b, err := s.Backlog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if b.Notes == 0 {
			return
		}
	}
	t.Error("notes were left undelivered")
}

func receive(t *testing.T, reached <-chan string) string {
	t.Helper()
	select {
	case how := <-reached:
		return how
	case <-time.After(patience):
		t.Fatal("the workflow was never reached")
		return ""
	}
}

func TestCommittedNoteReachesItsWorkflow(t *testing.T) {
	t.Parallel()
	s, n := storetest.New(t), temporaltest.New(t)
	reached := entries(t, n.Client)
	leave(t, s)

	delivered, err := relay.New(relay.Options{Store: s, Client: n.Client, Namespace: n.Name, Metrics: prometheus.NewRegistry()}).Deliver(t.Context())

	if err != nil || delivered != 1 {
		t.Fatalf("delivered %d, error %v", delivered, err)
	}
	if how := receive(t, reached); how != "started 1" {
		t.Errorf("want a fresh start, got %q", how)
	}
	empty(t, s)
	d, err := n.Client.DescribeWorkflow(t.Context(), contract.JournalID("1"), "")
	if err != nil {
		t.Fatal(err)
	}
	attributes := d.TypedSearchAttributes
	if resource, ok := attributes.GetKeyword(resourceKey); !ok || resource != "network" {
		t.Errorf("%s is %q, want network", contract.AttributeResource, resource)
	}
	if summary, err := d.GetStaticSummary(); err != nil || !strings.Contains(summary, "blue") {
		t.Errorf("static summary %q, error %v", summary, err)
	}
}

func TestNoteOfADeadRelayIsDeliveredByAnother(t *testing.T) {
	t.Parallel()
	s, n := storetest.New(t), temporaltest.New(t)
	reached := entries(t, n.Client)
	leave(t, s)
	if notes, err := s.ClaimNotes(t.Context(), "", 10, 300*time.Millisecond); err != nil || len(notes) != 1 {
		t.Fatalf("claimed %v, error %v", notes, err)
	}

	run(t, s, n)

	if how := receive(t, reached); how != "signalled 1" {
		t.Errorf("the first relay may have started it: want a signal, got %q", how)
	}
	empty(t, s)
}

func TestNotesWaitWhileTemporalIsAway(t *testing.T) {
	t.Parallel()
	s, n := storetest.New(t), temporaltest.New(t)
	away, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1", Namespace: n.Name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(away.Close)
	leave(t, s)
	leave(t, s)

	delivered, err := relay.New(relay.Options{Store: s, Client: away, Namespace: n.Name, Metrics: prometheus.NewRegistry()}).Deliver(t.Context())

	if delivered != 2 || err == nil {
		t.Errorf("claimed %d with error %v, want both and an error", delivered, err)
	}
	reached := entries(t, n.Client)
	run(t, s, n)
	got := map[string]bool{receive(t, reached): true, receive(t, reached): true}
	if len(got) != 2 {
		t.Errorf("want both workflows, got %v", got)
	}
	empty(t, s)
}

// TestATemporalThatKnowsNothingIsToldOfEveryRow lets the relay of the lost one go on beside the new one's.
func TestATemporalThatKnowsNothingIsToldOfEveryRow(t *testing.T) {
	t.Parallel()
	s, lost := storetest.New(t), temporaltest.New(t)
	old := entries(t, lost.Client)
	leave(t, s)
	run(t, s, lost)
	receive(t, old)
	empty(t, s)

	anew := temporaltest.New(t)
	reached := entries(t, anew.Client)
	run(t, s, anew)

	if how := receive(t, reached); how != "signalled 1" {
		t.Errorf("want the entry of the row that is still there, got %q", how)
	}
	for range 10 {
		leave(t, s)
		receive(t, reached)
	}
	empty(t, s)
	for len(old) > 0 {
		if how := <-old; !strings.HasSuffix(how, " 1") {
			t.Errorf("the lost Temporal was told of a row that was entrusted to another: %s", how)
		}
	}
}
