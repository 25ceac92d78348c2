package activities_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"berth/activities"
	"berth/internal/journal"
	"berth/internal/odl/odltest"
)

// Temporal runs one execution per entry, but an attempt that Temporal has given up may still run beside the
// next attempt. In this test the controller applies no write before it has received the writes of both
// attempts, so no attempt reads what the other has written.
func TestTryEntry_TwoWorkersAtTheSameTimeCompleteTheEntryOnce(t *testing.T) {
	t.Parallel()
	const id = "7d3c1c1e-7d1b-4d6a-b6f4-000000000001"
	group := func(op journal.Operation, name string) journal.Change {
		return newChange(op, "security_group", id, map[string]any{"name": name})
	}
	for _, tt := range []struct {
		method string
		before []journal.Change
		change journal.Change
		later  journal.Operation // of an entry that waits for the change
		name   any               // of the object at the controller; nil: no object
	}{
		{http.MethodPost, nil, group(journal.Create, "web"), journal.Update, "web"},
		{http.MethodPut, []journal.Change{group(journal.Create, "web")}, group(journal.Update, "db"), journal.Update, "db"},
		{http.MethodDelete, []journal.Change{group(journal.Create, "web")}, group(journal.Delete, "web"), journal.Create, nil},
	} {
		for _, first := range []string{"older", "newer"} {
			t.Run(
				fmt.Sprintf("%s, write of the %s attempt first", tt.change.Operation, first),
				func(t *testing.T) {
					t.Parallel()
					m := newMirrorFixture(t)
					m.recordChanges(tt.before...)
					m.drainJournal()
					m.recordChanges(tt.change, group(tt.later, "later"))
					seq := int64(len(tt.before) + 1)
					gate := newWriteGate(m.odl, tt.method, first == "newer")
					m.controllerURL = startServer(t, gate) + odltest.BasePath

					completions := m.tryAtTheSameTime(seq, gate)

					if e := m.journalEntry(seq); e.State != journal.Completed || e.Attempt != 2 ||
						completions != 1 {
						t.Errorf(
							"entry after the attempts of two workers: got state %s, %d attempts and %d completions; want completed, 2 and 1",
							e.State, e.Attempt, completions,
						)
					}
					if _, blockers, _, err := m.store.Journal.JournalEntry(t.Context(), seq+1); err != nil ||
						len(blockers) > 0 {
						t.Errorf(
							"the later entry of the object: got the blockers %v, error %v; want none",
							blockers,
							err,
						)
					}
					r := m.odl.Record("security_group", id)
					if r.Creates != 1 || (r.Object == nil) != (tt.name == nil) ||
						r.Object["name"] != tt.name {
						t.Errorf(
							"object at the controller: got %+v, want it created once, and now with the name %v",
							r,
							tt.name,
						)
					}
					if v := m.odl.Violations(); len(v) > 0 {
						t.Errorf("the controller received requests in the wrong order: %s",
							strings.Join(v, "; "))
					}
				},
			)
		}
	}
}

// tryAtTheSameTime makes two workers send one entry: the second begins when the write of the first has
// reached the gate. It returns how often a worker has completed the entry.
func (m *mirrorFixture) tryAtTheSameTime(seq int64, gate *writeGate) int {
	m.Helper()
	var completions atomic.Int32
	var workers sync.WaitGroup
	start := func() (ended chan struct{}) {
		client, err := newClient(m.controllerURL)
		if err != nil {
			m.Fatal(err)
		}
		worker := newActivities(activities.Options{
			Store: m.store,
			ODL:   client,
			OnAttempt: func(e journal.Entry, _ journal.Outcome) {
				if e.State == journal.Completed {
					completions.Add(1)
				}
			},
		})
		ended = make(chan struct{})
		workers.Go(func() {
			defer close(ended)
			// of the older attempt this is an error: its outcome is refused
			_, _ = worker.TryEntry(m.Context(), fmt.Sprint(seq))
		})
		return ended
	}
	older := start()
	select {
	case <-gate.received[0]:
	case <-older:
	}
	<-start()
	close(gate.newerEnded)
	workers.Wait()
	return int(completions.Load())
}

// writeGate is a proxy before the controller. It holds the first request with a method until a second one has
// arrived, and then passes both to the controller, one after the other.
type writeGate struct {
	controller http.Handler
	method     string
	// the write that the controller gets first: 0 for that of the older attempt, 1 for that of the newer
	first      int32
	writes     atomic.Int32
	received   [2]chan struct{}
	answered   [2]chan struct{}
	newerEnded chan struct{} // a worker that sends no write must not make the other wait
}

func newWriteGate(controller http.Handler, method string, newerFirst bool) *writeGate {
	g := &writeGate{controller: controller, method: method, newerEnded: make(chan struct{})}
	if newerFirst {
		g.first = 1
	}
	for i := range 2 {
		g.received[i], g.answered[i] = make(chan struct{}), make(chan struct{})
	}
	return g
}

func (g *writeGate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != g.method {
		g.controller.ServeHTTP(w, r)
		return
	}
	i := g.writes.Add(1) - 1
	if i < 2 {
		close(g.received[i])
		defer close(g.answered[i])
		g.await(g.received[1])
		if i != g.first {
			g.await(g.answered[g.first])
		}
	}
	g.controller.ServeHTTP(w, r)
}

func (g *writeGate) await(event <-chan struct{}) {
	select {
	case <-event:
	case <-g.newerEnded:
	}
}
