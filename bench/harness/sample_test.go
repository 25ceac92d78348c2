package harness

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestMeasure_CountsOnlyTheWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, checkWindow)
}

// checkWindow calls measure with the fake clock of synctest and checks which operations count. Because the
// clock is fake, the times in this test do not depend on the speed of the machine.
func checkWindow(t *testing.T) {
	var running, most atomic.Int64
	var begun [3]bool
	op := func(_ context.Context, client int) (int, error) {
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer running.Add(-1)
		if !begun[client] {
			begun[client] = true
			return 1_000_000, nil // before the window opens
		}
		time.Sleep(time.Millisecond)
		return 1, nil
	}

	s, err := Measure(t.Context(), Pace{InFlight: 3, Warmup: 3 * time.Second, Window: time.Second}, op)

	if err != nil || s.Count == 0 || s.Count >= 1_000_000 {
		t.Errorf("measure: got count %d, error %v; want only the operations that end inside the window",
			s.Count, err)
	}
	if s.Seconds != 1 || running.Load() != 0 || most.Load() > 3 {
		t.Errorf(
			"measure with 3 clients: got a window of %v s, %d operations running at the end, %d at the same time; want 1 s, 0 and at most 3",
			s.Seconds, running.Load(), most.Load(),
		)
	}
}

func TestMeasure_FirstErrorEndsAllClients(t *testing.T) {
	t.Parallel()
	broken := errors.New("the operation failed")
	hour := Pace{InFlight: 2, Window: time.Hour}

	_, err := Measure(t.Context(), hour, func(ctx context.Context, client int) (int, error) {
		if client == 0 {
			return 0, broken
		}
		<-ctx.Done()
		return 0, ctx.Err()
	})
	_, timedErr := MeasureTimes(t.Context(), Pace{Window: time.Hour},
		func(context.Context) (time.Duration, error) { return 0, broken })

	if !errors.Is(err, broken) || !errors.Is(timedErr, broken) {
		t.Errorf(
			"measure a failing operation: measure returned %v and measureTimes %v, want the operation's error from both",
			err,
			timedErr,
		)
	}
}
