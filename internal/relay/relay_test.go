package relay_test

import (
	"context"
	"os"
	"strings"
	"sync"
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
	"berth/internal/store/db"
	"berth/internal/store/outbox"
	"berth/internal/store/storetest"
)

var resourceKey = temporal.NewSearchAttributeKeyKeyword(contract.AttributeResource)

func TestMain(m *testing.M) { os.Exit(temporaltest.Main(m, storetest.Main)) }

// waitTimeout is the maximum time that a test waits for an expected event.
const waitTimeout = 10 * time.Minute

// newRelay returns a relay whose deadlines cannot be reached in a test, even on a slow machine.
func newRelay(s *store.Store, c client.Client, namespace string) *relay.Relay {
	return relay.New(relay.Options{
		Store:       s.Outbox,
		Client:      c,
		Namespace:   namespace,
		Metrics:     prometheus.NewRegistry(),
		MinDeadline: time.Hour,
		MaxDeadline: time.Hour,
	})
}

// createNetwork creates a network. The creation of the network adds a journal entry, and adds a note for the
// workflow of this entry to the outbox.
func createNetwork(t *testing.T, s *store.Store) {
	t.Helper()
	project, name := "p", "blue"
	if _, err := s.Network.CreateNetworks(t.Context(), []network.NetworkChange{{Project: &project, Name: &name}}); err != nil {
		t.Fatal(err)
	}
}

// startRelay runs a relay until the test ends.
func startRelay(t *testing.T, s *store.Store, n temporaltest.Namespace) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := newRelay(s, n.Client, n.Name).Run(ctx); err != nil {
			t.Errorf("run the relay until its context ends: got error %v, want none", err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// startWorker starts a worker with a stub of the JournalEntry workflow. When a workflow runs, the returned
// channel receives "signalled KEY" if the workflow has got a signal, otherwise "started KEY"; KEY is the key
// of the journal entry.
func startWorker(t *testing.T, c client.Client) <-chan string {
	t.Helper()
	reached := make(chan string, 100)
	w := worker.New(c, contract.JournalQueue, worker.Options{DeadlockDetectionTimeout: waitTimeout})
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

// awaitNoNotes waits until the outbox is empty.
func awaitNoNotes(t *testing.T, s *store.Store) {
	t.Helper()
	for deadline := time.Now().Add(waitTimeout); time.Now().Before(deadline); time.Sleep(25 * time.Millisecond) {
		b, err := s.Outbox.Backlog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if b.Notes == 0 {
			return
		}
	}
	t.Error("wait for the outbox to become empty: the outbox still contains notes after the time limit")
}

func receive(t *testing.T, reached <-chan string) string {
	t.Helper()
	select {
	case how := <-reached:
		return how
	case <-time.After(waitTimeout):
		t.Fatal(
			"wait for a workflow to be started or signalled: the time limit passed without a start or a signal",
		)
		return ""
	}
}

func TestDeliver_StartsTheWorkflow(t *testing.T) {
	t.Parallel()
	s, n := storetest.New(t), temporaltest.New(t)
	reached := startWorker(t, n.Client)
	createNetwork(t, s)

	delivered, err := newRelay(s, n.Client, n.Name).Deliver(t.Context())

	if err != nil || delivered != 1 {
		t.Fatalf("deliver one note: got %d delivered, error %v; want 1 and no error", delivered, err)
	}
	if how := receive(t, reached); how != "started 1" {
		t.Errorf("deliver the note of a new workflow: got %q, want a start without a signal", how)
	}
	awaitNoNotes(t, s)
	d, err := n.Client.DescribeWorkflow(t.Context(), contract.JournalID("1"), "")
	if err != nil {
		t.Fatal(err)
	}
	attributes := d.TypedSearchAttributes
	if resource, ok := attributes.GetKeyword(resourceKey); !ok || resource != "network" {
		t.Errorf("search attribute %s of the workflow: got %q, want network",
			contract.AttributeResource, resource)
	}
	if summary, err := d.GetStaticSummary(); err != nil || !strings.Contains(summary, "blue") {
		t.Errorf("static summary of the workflow: got %q, error %v; want the network's name", summary, err)
	}
}

// A later server may refuse a start with a longer summary, and the object would have no workflow.
func TestDeliver_SummaryOfALongNameFitsIntoTheLimitOfTemporal(t *testing.T) {
	t.Parallel()
	s, n := storetest.New(t), temporaltest.New(t)
	id := contract.LeaseID("1")
	nudge := contract.Nudge{Workflow: contract.Lease, ID: id, Summary: strings.Repeat("<", 255)}
	if err := s.DB.InTx(t.Context(), func(tx db.Tx) error { return outbox.Enqueue(t.Context(), tx, nudge) }); err != nil {
		t.Fatal(err)
	}

	if _, err := newRelay(s, n.Client, n.Name).Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}

	d, err := n.Client.DescribeWorkflowExecution(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	if size := len(d.GetExecutionConfig().GetUserMetadata().GetSummary().GetData()); size < 100 || size > 400 {
		t.Errorf("summary of a workflow: got %d bytes, want 100 to 400", size)
	}
}

func TestDeliver_OtherProcessesContinueALeaseAfterFourSeconds(t *testing.T) {
	t.Parallel()
	s, n := storetest.New(t), temporaltest.New(t)
	id := contract.LeaseID("1")
	enqueue(t, s, contract.Lease, id)

	if _, err := newRelay(s, n.Client, n.Name).Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}

	d, err := n.Client.DescribeWorkflowExecution(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := d.GetExecutionConfig().GetDefaultWorkflowTaskTimeout().AsDuration(); got != 4*time.Second {
		t.Errorf("start the workflow of a lease: got the workflow task timeout %s, want 4s", got)
	}
}

func TestRun_DeliversNotesOfADeadRelay(t *testing.T) {
	t.Parallel()
	s, n := storetest.New(t), temporaltest.New(t)
	reached := startWorker(t, n.Client)
	createNetwork(t, s)
	if notes, err := s.Outbox.Claim(t.Context(), "", 10, 300*time.Millisecond); err != nil ||
		len(notes) != 1 {
		t.Fatalf("claim the note: got %v, error %v; want one note", notes, err)
	}

	startRelay(t, s, n)

	if how := receive(t, reached); how != "signalled 1" {
		t.Errorf(
			"deliver a note that a dead relay has claimed: got %q, want a signal, because the dead relay may have started the workflow",
			how,
		)
	}
	awaitNoNotes(t, s)
}

func TestDeliver_KeepsNotesWhileTemporalIsUnavailable(t *testing.T) {
	t.Parallel()
	s, n := storetest.New(t), temporaltest.New(t)
	unavailable, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1", Namespace: n.Name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unavailable.Close)
	createNetwork(t, s)
	createNetwork(t, s)

	delivered, err := newRelay(s, unavailable, n.Name).Deliver(t.Context())

	if delivered != 2 || err == nil {
		t.Errorf(
			"deliver two notes while Temporal is unavailable: got %d claimed, error %v; want 2 and an error",
			delivered,
			err,
		)
	}
	reached := startWorker(t, n.Client)
	startRelay(t, s, n)
	got := map[string]bool{receive(t, reached): true, receive(t, reached): true}
	if len(got) != 2 {
		t.Errorf("workflows reached after Temporal is available again: got %v, want both", got)
	}
	awaitNoNotes(t, s)
}

// TestRun_NewNamespaceGetsANoteOfEveryRow keeps the relay of the old namespace running while the relay of the
// new namespace binds the database.
func TestRun_NewNamespaceGetsANoteOfEveryRow(t *testing.T) {
	t.Parallel()
	s, oldNamespace := storetest.New(t), temporaltest.New(t)
	old := startWorker(t, oldNamespace.Client)
	createNetwork(t, s)
	startRelay(t, s, oldNamespace)
	receive(t, old)
	awaitNoNotes(t, s)

	newNamespace := temporaltest.New(t)
	reached := startWorker(t, newNamespace.Client)
	startRelay(t, s, newNamespace)

	if how := receive(t, reached); how != "signalled 1" {
		t.Errorf(
			"first workflow reached in the new namespace: got %q, want the journal entry of the existing row",
			how,
		)
	}
	for range 10 {
		createNetwork(t, s)
		receive(t, reached)
	}
	awaitNoNotes(t, s)
	for len(old) > 0 {
		if how := <-old; !strings.HasSuffix(how, " 1") {
			t.Errorf(
				"relay of the old namespace: got the delivery %q for a row that was created after the binding to the new namespace, want none",
				how,
			)
		}
	}
}

func TestDeliverClaimed_StartsTheWorkflow(t *testing.T) {
	t.Parallel()
	s, n := storetest.New(t), temporaltest.New(t)
	reached := startWorker(t, n.Client)
	createNetwork(t, s)
	notes := claim(t, s, time.Minute)
	r := newRelay(s, n.Client, n.Name)

	r.DeliverClaimed(notes)

	if how := receive(t, reached); how != "started 1" {
		t.Errorf(
			"deliver the note of a workflow that has not started: got %q, want a start without a signal",
			how,
		)
	}
}

func TestDeliverClaimed_FailedDeliveryIsRetriedByARelay(t *testing.T) {
	t.Parallel()
	s, n := storetest.New(t), temporaltest.New(t)
	unavailable, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1", Namespace: n.Name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unavailable.Close)
	createNetwork(t, s)
	notes := claim(t, s, time.Hour)
	reached := startWorker(t, n.Client)
	startRelay(t, s, n)

	newRelay(s, unavailable, n.Name).DeliverClaimed(notes)

	if how := receive(t, reached); how != "signalled 1" {
		t.Errorf(
			"the first delivery failed: got %q, want a signal from the relay, because the workflow may have started",
			how,
		)
	}
	awaitNoNotes(t, s)
}

func TestDeliver_CompletedEntryIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	s, n := storetest.New(t), temporaltest.New(t)
	reached := startWorker(t, n.Client)
	createNetwork(t, s)
	startRelay(t, s, n)
	receive(t, reached)
	id := contract.JournalID("1")
	if err := n.Client.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil); err != nil {
		t.Fatalf("await the end of the workflow: %v", err)
	}
	awaitNoNotes(t, s)
	nudge := func(restart bool) {
		if err := s.DB.InTx(t.Context(), func(tx db.Tx) error {
			return outbox.Enqueue(t.Context(), tx, contract.Nudge{Workflow: contract.JournalEntry, ID: id, Restart: restart})
		}); err != nil {
			t.Fatal(err)
		}
		awaitNoNotes(t, s)
	}

	nudge(false)

	if len(reached) > 0 {
		t.Errorf("nudge a completed workflow: got %q, want no start", <-reached)
	}
	nudge(true)
	if how := receive(t, reached); how != "signalled 1" {
		t.Errorf("nudge a completed workflow with Restart: got %q, want a start with a signal", how)
	}
}

// claim claims all notes for a duration.
func claim(t *testing.T, s *store.Store, d time.Duration) []contract.Note {
	t.Helper()
	notes, err := s.Outbox.Claim(t.Context(), "", 10, d)
	if err != nil || len(notes) != 1 {
		t.Fatalf("claim the note: got %v, error %v; want one note", notes, err)
	}
	return notes
}

// Activities that wait for locks, and hold as many connections as their class can get, leave one for the
// relay.
func TestRelay_DeliversWhileOtherWorkWaitsForConnections(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	s := storetest.Open(t, url+separator+"pool_max_conns=3")
	release, waiting := make(chan struct{}), make(chan struct{})
	hold := func(begun chan<- struct{}) {
		err := s.DB.InTx(t.Context(), func(db.Tx) error {
			if begun != nil {
				begun <- struct{}{}
			}
			<-release
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	var others sync.WaitGroup
	for range 2 { // as many of three connections as one class can get
		others.Go(func() { hold(waiting) })
		<-waiting
	}
	others.Go(func() { hold(nil) })
	for s.DB.Pools()[0].Waiting == 0 {
		time.Sleep(time.Millisecond)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := newRelay(s, nil, "none").Deliver(ctx); err != nil {
		t.Errorf("claim notes while transactions of another class wait for connections: %v", err)
	}
	close(release)
	others.Wait()
}
