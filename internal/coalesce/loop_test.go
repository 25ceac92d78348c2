package coalesce_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"berth/internal/coalesce"
	"berth/internal/panics"
)

// If a step finds no work, the step may have searched before the last caller joined, so the loop must call
// the step once more.
func TestLoop_RunsOnceMoreAfterACallerJoins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l coalesce.Loop
		found, steps := make(chan int), 0
		step := func() (int, bool, error) {
			steps++
			n := <-found
			return n, n > 0, nil
		}
		first := l.Join(step)
		synctest.Wait()
		second := l.Join(step)
		found <- 0 // the second caller has joined meanwhile
		found <- 2
		synctest.Wait()
		if n, err := second.Progress(); first != second || n != 2 || err != nil {
			t.Errorf(
				"second caller joins a running loop: got progress %d and error %v; want the first caller's run, progress 2 and no error",
				n,
				err,
			)
		}
		found <- 0
		<-first.Done()
		if n, err := first.Progress(); n != 2 || err != nil || steps != 3 {
			t.Errorf(
				"progress of the ended loop: got %d and error %v after %d steps; want 2 and no error after 3 steps",
				n, err, steps,
			)
		}
	})
}

func TestLoop_EndsWithAnError(t *testing.T) {
	t.Parallel()
	scripted := errors.New("scripted")
	for name, c := range map[string]struct {
		step func() (int, bool, error)
		want error
	}{
		"error": {func() (int, bool, error) { return 1, true, scripted }, scripted},
		"panic": {func() (int, bool, error) { panic("scripted") }, panics.Err},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l coalesce.Loop
			first := l.Join(c.step)
			<-first.Done()
			if _, err := first.Progress(); !errors.Is(err, c.want) {
				t.Errorf("loop whose step fails: got error %v, want %v", err, c.want)
			}
			next := l.Join(func() (int, bool, error) { return 0, false, nil })
			<-next.Done()
			if _, err := next.Progress(); next == first || err != nil {
				t.Errorf(
					"join after the loop ended: got error %v or the ended loop, want a new loop without an error",
					err,
				)
			}
		})
	}
}
