package coalesce_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/coalesce"
)

func TestGroup_CallersShareTheCallThatBeginsAfterTheyArrive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := coalesce.NewGroup[int](time.Second)
		calls, got := 0, make([]int, 5)
		f := func(context.Context) (int, error) {
			calls++
			n := calls
			time.Sleep(time.Minute)
			return n, nil
		}
		caller := func(i int, after time.Duration) {
			go func() {
				time.Sleep(after)
				var err error
				if got[i], err = g.Do(t.Context(), f); err != nil {
					t.Error(err)
				}
			}()
		}
		caller(0, 0)
		caller(1, time.Second/2)  // during the delay
		caller(2, 2*time.Second)  // during the first call
		caller(3, 30*time.Second) // during the first call
		caller(4, 63*time.Second) // during the second call
		time.Sleep(time.Hour)
		synctest.Wait()
		if d := cmp.Diff([]int{1, 1, 2, 2, 3}, got); d != "" {
			t.Errorf("number of the shared call whose result each caller got (-want +got):\n%s", d)
		}
	})
}

func TestGroup_SharesErrors(t *testing.T) {
	t.Parallel()
	g := coalesce.NewGroup[int](0)
	if _, err := g.Do(t.Context(), func(context.Context) (int, error) { return 0, fmt.Errorf("scripted") }); err == nil {
		t.Error("shared call whose function fails: got no error, want one")
	}
	if n := g.Waiting(); n != 0 {
		t.Errorf("waiting callers after the shared call failed: got %d, want none", n)
	}
}
