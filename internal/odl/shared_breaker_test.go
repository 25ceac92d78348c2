package odl

import (
	"context"
	"errors"
	"testing"
	"time"
)

// sharedState is a SharedBreaker that keeps its state in memory and counts its calls.
type sharedState struct {
	now   func() time.Time
	open  bool
	probe time.Time
	asked int
	err   error
}

func (o *sharedState) Opened(_ context.Context, probeIn time.Duration) error {
	o.asked++
	if !o.open {
		o.open, o.probe = true, o.now().Add(probeIn)
	}
	return o.err
}

func (o *sharedState) Probe(_ context.Context, every time.Duration) (time.Duration, error) {
	o.asked++
	if o.err != nil || !o.open {
		return 0, o.err
	}
	if wait := o.probe.Sub(o.now()); wait > 0 {
		return wait, nil
	}
	o.probe = o.now().Add(every)
	return 0, nil
}

func (o *sharedState) Closed(context.Context) error {
	o.asked++
	o.open = false
	return o.err
}

// newBreakers returns breakers for n processes that use the same controller.
func newBreakers(n int) (*fakeClock, *sharedState, []*breaker) {
	c := &fakeClock{at: time.Unix(1000, 0)}
	o := &sharedState{now: c.now}
	all := make([]*breaker, n)
	for i := range all {
		all[i] = newBreaker(Config{}, c.now, o)
	}
	return c, o, all
}

func openByFailures(t *testing.T, b *breaker) {
	t.Helper()
	for range failuresToOpen {
		b.report(t.Context(), "an answer 503")
	}
}

func TestSharedBreaker_OneProbePerSecondOverAllProcesses(t *testing.T) {
	t.Parallel()
	c, _, all := newBreakers(4)
	for _, b := range all {
		openByFailures(t, b)
	}
	for second := range 30 {
		c.at = c.at.Add(defaultProbeInterval)
		admitted := 0
		for range 50 {
			for _, b := range all {
				if wait, _ := b.admit(t.Context()); wait == 0 {
					admitted++
					b.report(t.Context(), "timeout")
				}
			}
		}
		if admitted != 1 {
			t.Fatalf(
				"admit probes while the breaker is open: %[1]d in second %[2]d, counted over all processes; want 1",
				admitted,
				second,
			)
		}
	}
}

func TestSharedBreaker_OneFailureOpensIfSharedStateIsOpen(t *testing.T) {
	t.Parallel()
	_, _, all := newBreakers(2)
	openByFailures(t, all[0])

	all[1].report(t.Context(), "timeout")

	if wait, last := all[1].admit(t.Context()); wait <= 0 || last != "timeout" {
		t.Errorf(
			"admit a request in a process that learned of the open breaker: got wait %s and last failure %q, want a wait and the failure timeout",
			wait,
			last,
		)
	}
}

func TestSharedBreaker_ClosesInAllProcesses(t *testing.T) {
	t.Parallel()
	c, o, all := newBreakers(2)
	openByFailures(t, all[0])
	openByFailures(t, all[1])
	c.at = c.at.Add(defaultProbeInterval)
	if wait, _ := all[0].admit(t.Context()); wait != 0 {
		t.Fatalf("admit a probe after probeInterval: got wait %s, want 0", wait)
	}
	all[0].report(t.Context(), "")

	for range 2 {
		if wait, _ := all[1].admit(t.Context()); wait != 0 {
			t.Fatalf(
				"admit a request in the other process after a successful probe: got wait %s, want 0",
				wait,
			)
		}
		all[1].report(t.Context(), "")
	}
	if o.open {
		t.Error("shared state after a successful probe: got open, want closed")
	}
}

func TestSharedBreaker_NotCalledWhileClosed(t *testing.T) {
	t.Parallel()
	_, o, all := newBreakers(1)
	for range 100 {
		if wait, _ := all[0].admit(t.Context()); wait != 0 {
			t.Fatal("admit a request while all requests succeed: the breaker is open, want it closed")
		}
		all[0].report(t.Context(), "")
	}
	if o.asked != 0 {
		t.Errorf("send requests that all succeed: got %d calls to the shared breaker, want 0", o.asked)
	}
}

func TestSharedBreaker_LocalStateCountsIfSharedStateFails(t *testing.T) {
	t.Parallel()
	c, o, all := newBreakers(1)
	o.err = errors.New("no database")
	openByFailures(t, all[0])
	if wait, _ := all[0].admit(t.Context()); wait == 0 {
		t.Error(
			"admit a request after failures while the shared state is unavailable: the breaker is closed, want it open",
		)
	}
	c.at = c.at.Add(defaultProbeInterval)
	if wait, _ := all[0].admit(t.Context()); wait != 0 {
		t.Errorf("admit a probe while the shared state is unavailable: got wait %s, want 0", wait)
	}
}

// The rate of retries does not depend on the number of rejected callers.
func TestBreaker_SpacesRetriesOfRejectedCallers(t *testing.T) {
	t.Parallel()
	c, _, all := newBreakers(1)
	openByFailures(t, all[0])
	const many = 1000
	seconds := map[int]int{}
	for range many {
		wait, _ := all[0].wait()
		if wait < defaultProbeInterval || wait > all[0].maxWait() {
			t.Fatalf("reject a caller: got wait %s, want from the probe interval to maxWait", wait)
		}
		seconds[int(wait/time.Second)]++
	}
	for second, n := range seconds {
		if n > int(time.Second/returnSpacing) {
			t.Errorf(
				"reject 1000 callers: %d of them retry in second %d, want at most one per returnSpacing",
				n,
				second,
			)
		}
	}
	for range 10 * many { // more callers than there are retry times within maxWait
		if wait, _ := all[0].wait(); wait < defaultProbeInterval || wait > all[0].maxWait() {
			t.Fatalf(
				"reject more callers than there are retry times: got wait %s, want from the probe interval to maxWait",
				wait,
			)
		}
	}
	c.at = c.at.Add(time.Hour)
	if wait, _ := all[0].wait(); wait != 0 {
		t.Errorf("wait of a caller when a probe is due: got %s, want 0", wait)
	}
}
