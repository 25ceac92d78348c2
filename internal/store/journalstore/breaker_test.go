package journalstore_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

func probe(t *testing.T, b *journalstore.Breaker, every time.Duration) time.Duration {
	t.Helper()
	wait, err := b.Probe(t.Context(), every)
	if err != nil {
		t.Error(err)
	}
	return wait
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// While the breaker is open, only one process at a time may send a probe. The breaker of another controller
// has no effect.
func TestBreaker_OneProbeForAllProcesses(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	b := s.Journal.Breaker("http://one")
	if wait := probe(t, b, time.Hour); wait != 0 {
		t.Fatalf("probe while the breaker is closed: got a wait of %s, want 0", wait)
	}
	requireNoError(t, b.Opened(t.Context(), 0))
	requireNoError(t, s.Journal.Breaker("http://two").Opened(t.Context(), time.Hour))

	var admitted atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			wait := probe(t, b, time.Hour)
			if wait == 0 {
				admitted.Add(1)
			} else if wait > time.Hour {
				t.Errorf("probe while another process probes: got a wait of %s, want at most an hour", wait)
			}
		})
	}
	all.Wait()

	if n := admitted.Load(); n != 1 {
		t.Errorf("20 concurrent calls to Probe: %d of them may send a probe, want 1", n)
	}
	requireNoError(t, b.Opened(t.Context(), 0)) // by another process, later
	if wait := probe(t, b, time.Hour); wait == 0 {
		t.Error("Opened, called while the breaker is open, allowed another probe")
	}
	requireNoError(t, b.Closed(t.Context()))
	if wait := probe(t, b, time.Hour); wait != 0 {
		t.Errorf("probe after Closed: got a wait of %s, want 0", wait)
	}
	if wait := probe(t, s.Journal.Breaker("http://two"), time.Hour); wait == 0 {
		t.Error("Closed also closed the breaker of the other controller")
	}
}

// A process that dies during its probe delays the next probe by one interval only.
func TestBreaker_ProbeOfADeadProcessExpires(t *testing.T) {
	t.Parallel()
	b := storetest.New(t).Journal.Breaker("http://one")
	requireNoError(t, b.Opened(t.Context(), 0))
	if wait := probe(t, b, 0); wait != 0 {
		t.Fatalf("first probe: got a wait of %s, want 0", wait)
	}
	if wait := probe(t, b, time.Hour); wait != 0 {
		t.Errorf("probe after the interval of the first probe: got a wait of %s, want 0", wait)
	}
}
