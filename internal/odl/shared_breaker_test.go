package odl

import (
	"context"
	"errors"
	"testing"
	"time"
)

// together is what several processes know, and what they were asked and told.
type together struct {
	now   func() time.Time
	open  bool
	probe time.Time
	asked int
	err   error
}

func (o *together) Opened(_ context.Context, probeIn time.Duration) error {
	o.asked++
	if !o.open {
		o.open, o.probe = true, o.now().Add(probeIn)
	}
	return o.err
}

func (o *together) Probe(_ context.Context, every time.Duration) (time.Duration, error) {
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

func (o *together) Closed(context.Context) error {
	o.asked++
	o.open = false
	return o.err
}

// processes are breakers before the same controller.
func processes(n int) (*clock, *together, []*breaker) {
	c := &clock{at: time.Unix(1000, 0)}
	o := &together{now: c.now}
	all := make([]*breaker, n)
	for i := range all {
		all[i] = newBreaker(c.now, o)
	}
	return c, o, all
}

func trip(t *testing.T, b *breaker) {
	t.Helper()
	for range failuresToOpen {
		b.report(t.Context(), "an answer 503")
	}
}

func TestManyProcessesProbeOnceASecond(t *testing.T) {
	t.Parallel()
	c, _, all := processes(4)
	for _, b := range all {
		trip(t, b)
	}
	for second := range 30 {
		c.at = c.at.Add(probeInterval)
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
			t.Fatalf("%d probes in second %d", admitted, second)
		}
	}
}

func TestOneFailureIsEnoughWhereOthersKnowOfTheTrouble(t *testing.T) {
	t.Parallel()
	_, _, all := processes(2)
	trip(t, all[0])

	all[1].report(t.Context(), "timeout")

	if wait, last := all[1].admit(t.Context()); wait <= 0 || last != "timeout" {
		t.Errorf("wait %s after %q", wait, last)
	}
}

func TestAllProcessesLearnThatTheControllerIsBack(t *testing.T) {
	t.Parallel()
	c, o, all := processes(2)
	trip(t, all[0])
	trip(t, all[1])
	c.at = c.at.Add(probeInterval)
	if wait, _ := all[0].admit(t.Context()); wait != 0 {
		t.Fatalf("no probe, wait %s", wait)
	}
	all[0].report(t.Context(), "")

	for range 2 {
		if wait, _ := all[1].admit(t.Context()); wait != 0 {
			t.Fatalf("the controller is back, and wait %s", wait)
		}
		all[1].report(t.Context(), "")
	}
	if o.open {
		t.Error("still open")
	}
}

func TestAControllerThatIsWellCostsNoQuestion(t *testing.T) {
	t.Parallel()
	_, o, all := processes(1)
	for range 100 {
		if wait, _ := all[0].admit(t.Context()); wait != 0 {
			t.Fatal("open")
		}
		all[0].report(t.Context(), "")
	}
	if o.asked != 0 {
		t.Errorf("%d questions", o.asked)
	}
}

func TestWithoutAnAnswerOfTheOthersAProcessIsOnItsOwn(t *testing.T) {
	t.Parallel()
	c, o, all := processes(1)
	o.err = errors.New("no database")
	trip(t, all[0])
	if wait, _ := all[0].admit(t.Context()); wait == 0 {
		t.Error("not open")
	}
	c.at = c.at.Add(probeInterval)
	if wait, _ := all[0].admit(t.Context()); wait != 0 {
		t.Errorf("no probe, wait %s", wait)
	}
}

// However many are turned away, only so many come back in a second.
func TestThoseWhoAreTurnedAwayComeBackOneAfterTheOther(t *testing.T) {
	t.Parallel()
	c, _, all := processes(1)
	trip(t, all[0])
	const many = 1000
	seconds := map[int]int{}
	for range many {
		wait, _ := all[0].wait()
		if wait < probeInterval || wait > maxWait {
			t.Fatalf("wait %s", wait)
		}
		seconds[int(wait/time.Second)]++
	}
	for second, n := range seconds {
		if n > int(time.Second/returnSpacing) {
			t.Errorf("%d come back in second %d", n, second)
		}
	}
	for range 10 * many { // more than there are places
		if wait, _ := all[0].wait(); wait < probeInterval || wait > maxWait {
			t.Fatalf("wait %s", wait)
		}
	}
	c.at = c.at.Add(time.Hour)
	if wait, _ := all[0].wait(); wait != 0 {
		t.Errorf("a probe is due, and wait %s", wait)
	}
}
