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
	b := newBreaker(Config{}, c.now, nil)
	for range failuresToOpen {
		if wait, _ := b.admit(t.Context()); wait != 0 {
			t.Fatal("admit a request before failuresToOpen failures: the breaker is open, want it closed")
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
			case wait > b.maxWait()+defaultProbeInterval || last == "":
				t.Fatalf(
					"admit a request while the breaker is open: got wait %s and last failure %q, want a bounded wait and a failure",
					wait,
					last,
				)
			}
		}
		if admitted > 1 {
			t.Fatalf(
				"admit 100 requests at the same time while the breaker is open: %d were admitted, want at most 1",
				admitted,
			)
		}
		c.at = c.at.Add(defaultProbeInterval)
	}
}

func TestBreaker_ClosesAfterSuccessfulProbe(t *testing.T) {
	t.Parallel()
	b, c := openBreaker(t)
	if wait, _ := b.admit(t.Context()); wait == 0 {
		t.Fatal("admit a request after failuresToOpen failures: the breaker is closed, want it open")
	}
	c.at = c.at.Add(defaultProbeInterval)
	if wait, _ := b.admit(t.Context()); wait != 0 {
		t.Fatalf("admit a probe after probeInterval: got wait %s, want 0", wait)
	}
	b.report(t.Context(), "")
	for range failuresToOpen {
		if wait, _ := b.admit(t.Context()); wait != 0 {
			t.Fatal("admit a request after a successful probe: the breaker is open, want it closed")
		}
	}
}

func TestBreaker_SuccessResetsFailureCount(t *testing.T) {
	t.Parallel()
	b := newBreaker(Config{}, time.Now, nil)
	for range 10 {
		for range failuresToOpen - 1 {
			b.report(t.Context(), "an answer 500")
		}
		b.report(t.Context(), "")
	}
	if wait, _ := b.admit(t.Context()); wait != 0 {
		t.Errorf(
			"admit a request after fewer than failuresToOpen consecutive failures: got wait %s, want 0",
			wait,
		)
	}
}

func TestBreaker_ProbesAgainAfterLostProbe(t *testing.T) {
	t.Parallel()
	b, c := openBreaker(t)
	c.at = c.at.Add(defaultProbeInterval)
	if wait, _ := b.admit(t.Context()); wait != 0 {
		// the sender of this probe dies and reports no result
		t.Fatal("admit a probe after probeInterval: got a wait, want none")
	}
	c.at = c.at.Add(defaultProbeInterval)
	if wait, _ := b.admit(t.Context()); wait != 0 {
		t.Error("admit a second probe after the first one had no result: got a wait, want none")
	}
}

func TestRetryAfter_SecondsOrDate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"0":                             0,
		"5":                             5 * time.Second,
		"-5":                            0,
		"1.5":                           0,
		"4294967295":                    24 * time.Hour,
		"99999999999999999999":          0,
		"Thu, 01 Jan 2026 00:01:00 GMT": time.Minute,
		"Thu, 01 Jan 2015 00:01:00 GMT": 0,
		"soon":                          0,
	} {
		t.Run(value, func(t *testing.T) {
			if got := retryAfter(value, now); got != want {
				t.Errorf("parse the header Retry-After %q: got %s, want %s", value, got, want)
			}
		})
	}
}
