package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// windowOf returns the window of loads that begin now.
func windowOf(warmup, length time.Duration) window {
	begin := time.Now()
	return window{begin: begin, from: begin.Add(warmup), to: begin.Add(warmup + length)}
}

// runFor runs a load of one operation a second, and ends it after a time.
func runFor(l *load, clients int, d time.Duration, send func(n int) error) {
	ctx, stop := context.WithTimeout(context.Background(), d)
	defer stop()
	l.run(ctx, clients, func(_ context.Context, _, n int) error { return send(n) })
}

func TestLoad_SendsEachOperationWhenItIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoad(4, 2*time.Second, windowOf(time.Second, 2*time.Second))
		var mu sync.Mutex
		sent := map[int]time.Duration{}
		runFor(l, 3, 1900*time.Millisecond, func(n int) error {
			mu.Lock()
			defer mu.Unlock()
			sent[n] = time.Since(l.begin)
			return nil
		})

		want := map[int]time.Duration{0: 0, 1: 500 * time.Millisecond, 2: time.Second, 3: 1500 * time.Millisecond}
		if d := cmp.Diff(want, sent); d != "" {
			t.Errorf("times of the operations (-want +got):\n%s", d)
		}
	})
}

// TestLoad_TimeContainsTheDelayOfALateOperation lets the third operation take four seconds, so that its
// client sends the next ones late.
func TestLoad_TimeContainsTheDelayOfALateOperation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoad(1, time.Second, windowOf(2*time.Second-1, 5*time.Second))
		runFor(l, 1, 10*time.Second, func(n int) error {
			if n == 2 {
				time.Sleep(4 * time.Second)
			}
			return nil
		})

		got := l.result()

		// operations 2 to 6 are due in the window; those that ended in it are 2, 3, 4, 5 and 6
		if want := []time.Duration{4 * time.Second, 3 * time.Second, 2 * time.Second, time.Second, 0}; !cmp.Equal(want, l.times) {
			t.Errorf("times: got %v, want %v", l.times, want)
		}
		want := loadResult{Wanted: 5, Done: 5, WantedRate: 1, Rate: 1, P50: 2000, P99: 4000}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("result (-want +got):\n%s", d)
		}
	})
}

func TestLoad_CountsOnlyWhatEndsInTheWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLoad(1, time.Second, windowOf(2*time.Second, 4*time.Second))
		runFor(l, 10, 10*time.Second, func(n int) error {
			time.Sleep(1500 * time.Millisecond)
			if n == 3 {
				return errors.New("refused")
			}
			return nil
		})

		// operations 2 to 5 are due in the window, and 1 to 4 end in it
		want := loadResult{
			Wanted:     4,
			Done:       3,
			Failed:     1,
			FirstError: "refused",
			WantedRate: 1,
			Rate:       0.75,
			P50:        1500,
			P99:        1500,
		}
		if d := cmp.Diff(want, l.result()); d != "" {
			t.Errorf("result (-want +got):\n%s", d)
		}
	})
}
