package db

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// acquireAll acquires connections for a class until the class must wait, and returns the number of acquired
// connections.
func acquireAll(t *testing.T, a *admission, class string) (n int) {
	t.Helper()
	for a.allows(class) {
		if _, err := a.acquire(t.Context(), class); err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestAdmission_OneClassLeavesAThirdOfTheConnections(t *testing.T) {
	t.Parallel()
	a := newAdmission(9)
	for _, want := range []int{6, 2, 1, 0} {
		class := string(rune('a' + want))
		if got := acquireAll(t, a, class); got != want {
			t.Errorf("connections of the next class: got %d, want %d", got, want)
		}
	}
	if a := newAdmission(1); acquireAll(t, a, "only") != 1 {
		t.Error("the only connection of a pool was not given to the only class, want it to be")
	}
}

func TestAdmission_WaitersOfAClassAreAdmittedInTheOrderOfTheirArrival(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(1)
		release, err := a.acquire(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		for i := range 3 {
			go func() {
				next, err := a.acquire(t.Context(), "x")
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i)
				next()
			}()
			synctest.Wait()
		}
		release()
		synctest.Wait()
		if len(order) != 3 || order[0] != 0 || order[1] != 1 || order[2] != 2 {
			t.Errorf("order of the waiters: got %v, want [0 1 2]", order)
		}
		if a.free != 1 || len(a.held) != 0 || len(a.waiting) != 0 {
			t.Errorf(
				"after all releases: got %d free, %v held, %d waiting; want 1 free and nothing else",
				a.free, a.held, len(a.waiting),
			)
		}
	})
}

func TestAdmission_WaitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(1)
		release, err := a.acquire(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = a.acquire(ctx, "x")
		var unavailable *UnavailableError
		if !errors.As(err, &unavailable) || unavailable.Reason != NoConnection || unavailable.Unknown {
			t.Errorf(
				"wait for a connection until the deadline: got error %v, want the reason %q and a known outcome",
				err,
				NoConnection,
			)
		}
		gone, leave := context.WithCancel(t.Context())
		go leave()
		if _, err = a.acquire(gone, "x"); !errors.Is(err, context.Canceled) ||
			errors.Is(err, ErrUnavailable) {
			t.Errorf("wait of a caller that has gone: got error %v, want context.Canceled", err)
		}
		release()
		if acquireAll(t, a, "y") != 1 {
			t.Error("the released connection is not free, want it to be")
		}
	})
}
