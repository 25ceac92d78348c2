package journalstore_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

// The goroutines called workers stand for the relay and the workflows, and act only on notes, while other
// goroutines record entries. In the end every entry is completed, and no entry was sent before its blockers.
func TestJournal_NotesAloneDrainItInOrder(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	const families, ports = 4, 4
	var recording, working sync.WaitGroup
	var recorded, completed atomic.Int64
	var seen order
	for f := range families {
		recording.Go(func() {
			network := fmt.Sprintf("network n%d", f)
			say := func(op string, what string, parents ...string) {
				recordAll(t, s, change(t, op+" "+what, parents...))
				recorded.Add(1)
			}
			say("create", network)
			for p := range ports {
				port := fmt.Sprintf("port p%d-%d", f, p)
				say("create", port, network)
				say("update", port, network)
				say("update", network)
				say("delete", port, network)
			}
			say("delete", network)
		})
	}
	finished := make(chan struct{})
	for range 6 {
		working.Go(func() {
			for {
				notes, err := s.Outbox.Claim(t.Context(), "", 3, time.Second)
				if err != nil {
					t.Error(err)
					return
				}
				for _, n := range notes {
					completed.Add(workAlone(t, s, n, &seen))
				}
				if err := s.Outbox.Settle(t.Context(), "", notes); err != nil {
					t.Error(err)
				}
				select {
				case <-finished:
					return
				default:
				}
			}
		})
	}
	recording.Wait()
	for deadline := time.Now().Add(5 * time.Minute); completed.Load() < recorded.Load() && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	close(finished)
	working.Wait()
	if completed.Load() != recorded.Load() {
		t.Errorf("%d of %d recorded entries were completed, want all", completed.Load(), recorded.Load())
	}
	for _, v := range seen.violations {
		t.Error(v)
	}
}

// workAlone does the work of the workflow that a note names. At most one workflow of an entry runs at a time.
func workAlone(t *testing.T, s *store.Store, n contract.Note, seen *order) int64 {
	seq, err := strconv.ParseInt(contract.Key(n.ID), 10, 64)
	if err != nil {
		t.Error(err)
		return 0
	}
	alone, _ := seen.workflows.LoadOrStore(seq, &sync.Mutex{})
	alone.(*sync.Mutex).Lock()
	defer alone.(*sync.Mutex).Unlock()
	return work(t, s, seq, seen)
}

// work does what the workflow of an entry does: it claims and sends the entry until it is completed or
// blocked. work returns the number of entries that it has completed, including the entries that become
// unblocked.
func work(t *testing.T, s *store.Store, seq int64, seen *order) int64 {
	for {
		take, err := s.Journal.ClaimEntry(t.Context(), seq)
		if err != nil {
			t.Error(err)
			return 0
		}
		if len(take.Blockers) > 0 || take.Wait > 0 || take.Entry.State != journal.Processing {
			return 0
		}
		switch o, n := attempt(t, s, take.Entry, seen); o.Kind {
		case journal.OutcomeDone:
			return n
		case journal.OutcomeFailed:
			if _, err := s.Journal.RetryEntry(t.Context(), seq, "admin"); err != nil {
				t.Error(err)
			}
		}
	}
}

// attempt makes one attempt at an entry, and then does the work of the workflows whose notes it claimed.
func attempt(
	t *testing.T,
	s *store.Store,
	e journal.Entry,
	seen *order,
) (o journal.Outcome, completed int64) {
	o = journal.Outcome{
		Kind: []journal.OutcomeKind{journal.OutcomeDone, journal.OutcomeDone, journal.OutcomeRetry, journal.OutcomeRejected, journal.OutcomeFailed}[rand.N(5)],
	}
	if o.Kind == journal.OutcomeDone {
		seen.apply(e)
	}
	_, notes, err := s.Journal.SaveOutcomeAndClaimNotes(t.Context(), e.Seq, e.Attempt, o, rand.N(3))
	if err != nil {
		t.Error(err)
		return o, 0
	}
	if o.Kind == journal.OutcomeDone {
		completed = 1
	}
	for _, n := range notes {
		if rand.N(4) == 0 { // the process dies before it delivers the note
			if err := s.Outbox.Defer(t.Context(), n, time.Millisecond, "died"); err != nil {
				t.Error(err)
			}
			continue
		}
		completed += workAlone(t, s, n, seen)
	}
	return o, completed
}

// order records entries as they reach the controller, and checks their order.
type order struct {
	workflows  sync.Map // sequence number of an entry -> *sync.Mutex
	mu         sync.Mutex
	last       map[journal.Ref]int64
	present    map[journal.Ref]bool
	violations []string
}

func (o *order) apply(e journal.Entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last, o.present = map[journal.Ref]int64{}, map[journal.Ref]bool{}
	}
	complain := func(what string) {
		o.violations = append(o.violations, fmt.Sprintf("entry %d, %s: %s", e.Seq, journal.Summary(e), what))
	}
	if e.Seq < o.last[e.Object] {
		complain("sent after a newer entry of the object")
	}
	family, _, _ := strings.Cut(e.Object.ID[1:], "-")
	network := journal.Ref{Type: "network", ID: "n" + family}
	switch {
	case e.Object.Type == "port" && !o.present[network]:
		complain("sent without its network")
	case e.Object == network && e.Operation == journal.Delete:
		for r, there := range o.present {
			if there && r.Type == "port" && strings.HasPrefix(r.ID, "p"+family+"-") {
				complain("sent before the delete of its port")
			}
		}
	}
	o.last[e.Object], o.present[e.Object] = e.Seq, e.Operation != journal.Delete
}
