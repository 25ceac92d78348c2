package odl

import (
	"testing"
	"time"
)

type fakeClock struct{ at time.Time }

func (c *fakeClock) now() time.Time { return c.at }

func openBreaker(t *testing.T) (*breaker, *fakeClock) {
	t.Helper()
	c := &fakeClock{at: time.Unix(1000, 0)}
	b := newBreaker(c.now, nil)
	for range failuresToOpen {
		if wait, _ := b.admit(t.Context()); wait != 0 {
			t.Fatal("the breaker opened before failuresToOpen failures")
		}
		b.report(t.Context(), "an answer 503")
	}
	return b, c
}

func TestBreaker_OpenAdmitsOneProbePerSecond(t *testing.T) {
	t.Parallel()
	b, c := openBreaker(t)
	for range 30 {
		admitted := 0
		for range 100 {
			wait, last := b.admit(t.Context())
			switch {
			case wait == 0:
				admitted++
				b.report(t.Context(), "timeout")
			case wait > maxWait+probeInterval || last == "":
				t.Fatalf("rejected caller: got the wait %s and the last failure %q, want a bounded wait and a failure", wait, last)
			}
		}
		if admitted > 1 {
			t.Fatalf("requests admitted at once by an open breaker: got %d, want at most 1", admitted)
		}
		c.at = c.at.Add(probeInterval)
	}
}

func TestBreaker_ClosesAfterSuccessfulProbe(t *testing.T) {
	t.Parallel()
	b, c := openBreaker(t)
	if wait, _ := b.admit(t.Context()); wait == 0 {
		t.Fatal("the breaker is not open after failuresToOpen failures")
	}
	c.at = c.at.Add(probeInterval)
	if wait, _ := b.admit(t.Context()); wait != 0 {
		t.Fatalf("no probe is admitted after probeInterval; the wait is %s", wait)
	}
	b.report(t.Context(), "")
	for range failuresToOpen {
		if wait, _ := b.admit(t.Context()); wait != 0 {
			t.Fatal("the breaker is still open after a successful probe")
		}
	}
}

func TestBreaker_SuccessResetsFailureCount(t *testing.T) {
	t.Parallel()
	b := newBreaker(time.Now, nil)
	for range 10 {
		for range failuresToOpen - 1 {
			b.report(t.Context(), "an answer 500")
		}
		b.report(t.Context(), "")
	}
	if wait, _ := b.admit(t.Context()); wait != 0 {
		t.Errorf("the breaker is open after alternating failures and successes; the wait is %s", wait)
	}
}

func TestBreaker_ProbesAgainAfterLostProbe(t *testing.T) {
	t.Parallel()
	b, c := openBreaker(t)
	c.at = c.at.Add(probeInterval)
	if wait, _ := b.admit(t.Context()); wait != 0 {
		t.Fatal("no probe is admitted after probeInterval") // its sender dies and reports no result
	}
	c.at = c.at.Add(probeInterval)
	if wait, _ := b.admit(t.Context()); wait != 0 {
		t.Error("no second probe is admitted after the first one gave no result")
	}
}

func TestRetryAfter_SecondsOrDate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "5": 5 * time.Second, "-5": 0, "1.5": 0, "4294967295": 24 * time.Hour, "99999999999999999999": 0,
		"Thu, 01 Jan 2026 00:01:00 GMT": time.Minute, "Thu, 01 Jan 2015 00:01:00 GMT": 0, "soon": 0,
	} {
		t.Run(value, func(t *testing.T) {
			if got := retryAfter(value, now); got != want {
				t.Errorf("Retry-After %q: got %s, want %s", value, got, want)
			}
		})
	}
}
