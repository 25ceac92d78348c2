package db

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// acquireAll acquires connections for a caller until the caller must wait, and returns the number of acquired
// connections.
func acquireAll(t *testing.T, a *admission, c caller) (n int) {
	t.Helper()
	for a.allows(c) {
		if _, err := a.acquire(t.Context(), c); err != nil {
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
		if got := acquireAll(t, a, caller{class: string(rune('a' + want))}); got != want {
			t.Errorf("connections of the next class: got %d, want %d", got, want)
		}
	}
	if a := newAdmission(1); acquireAll(t, a, caller{class: "only"}) != 1 {
		t.Error("the only connection of a pool was not given to the only class, want it to be")
	}
}

func TestAdmission_OneClientLeavesHalfOfTheConnections(t *testing.T) {
	t.Parallel()
	a := newAdmission(8)
	for i, want := range []int{4, 2, 1} {
		name := string(rune('a' + i))
		c := caller{"class " + name, "client " + name}
		if got := acquireAll(t, a, c); got != want {
			t.Errorf("connections of the next client: got %d, want %d", got, want)
		}
		c.class = "another"
		if got := acquireAll(t, a, c); got != 0 {
			t.Errorf("connections of the same client in another class: got %d more, want none", got)
		}
	}
	if got := acquireAll(t, a, caller{class: "third"}); got != 1 {
		t.Errorf("connections of a caller without a client: got %d, want the last one", got)
	}
}

// Two clients that take all connections of a class that they can get leave connections for further clients of
// the class, and for administrators and services.
func TestAdmission_TwoClientsLeaveConnectionsOfTheirClassForOthers(t *testing.T) {
	t.Parallel()
	for _, third := range []string{"green", Administrators, Services} {
		a := newAdmission(8)
		for _, step := range []struct {
			client string
			want   int
		}{{"red", 4}, {"blue", 2}, {third, 1}} {
			if got := acquireAll(t, a, caller{"writes", step.client}); got != step.want {
				t.Errorf("connections of the client %s: got %d, want %d", step.client, got, step.want)
			}
		}
	}
}

// Administrators and services have no share of their own, only the limit of their class.
func TestAdmission_AdministratorsAndServicesHaveNoShare(t *testing.T) {
	t.Parallel()
	for _, client := range []string{Administrators, Services} {
		a := newAdmission(9)
		if got := acquireAll(t, a, caller{"writes", client}); got != 6 {
			t.Errorf("connections of %s in one class: got %d, want 6, as without a client", client, got)
		}
	}
}

// A client with many waiting callers gets a connection as often as a client with one waiting caller.
func TestAdmission_ClientsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(1)
		release, err := a.acquire(t.Context(), caller{"x", "red"})
		if err != nil {
			t.Fatal(err)
		}
		var order string
		for _, client := range []string{"red", "red", "red", "blue", "green", "blue"} {
			go func() {
				next, err := a.acquire(t.Context(), caller{"x", client})
				if err != nil {
					t.Error(err)
					return
				}
				order += client + " "
				next()
			}()
			synctest.Wait()
		}
		release()
		synctest.Wait()
		if want := "red blue green red blue red "; order != want {
			t.Errorf("order of the waiters: got %s, want %s", order, want)
		}
		if a.free != 1 || len(a.classes)+len(a.clients) != 0 || a.waiting+len(a.queues) != 0 {
			t.Errorf("after all releases: got %d free, %v held, %d waiting; want 1 free and nothing else",
				a.free, a.clients, a.waiting)
		}
	})
}

// A client that waits in many classes gets a connection as often as a client that waits in one class.
func TestAdmission_ClientsTakeTurnsOverAllClasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(1)
		release, err := a.acquire(t.Context(), caller{"x", "red"})
		if err != nil {
			t.Fatal(err)
		}
		var order string
		for _, c := range []caller{
			{"x", "red"}, {"y", "red"}, {"y", "red"}, {"z", "red"}, {"x", "blue"}, {"x", "blue"}, {"x", ""}, {"y", ""},
		} {
			go func() {
				next, err := a.acquire(t.Context(), c)
				if err != nil {
					t.Error(err)
					return
				}
				order += c.class + "-" + c.client + " "
				next()
			}()
			synctest.Wait()
		}
		release()
		synctest.Wait()
		if want := "x-red x-blue x- y- y-red x-blue z-red y-red "; order != want {
			t.Errorf("order of the waiters: got %s, want %s", order, want)
		}
		if a.free != 1 || len(a.classes)+len(a.clients) != 0 || a.waiting+len(a.queues) != 0 {
			t.Errorf("after all releases: got %d free, %v held, %d waiting; want 1 free and nothing else",
				a.free, a.clients, a.waiting)
		}
	})
}

func TestAdmission_WaitersOfAClassAreAdmittedInTheOrderOfTheirArrival(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(1)
		release, err := a.acquire(t.Context(), caller{class: "x"})
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		for i := range 3 {
			go func() {
				next, err := a.acquire(t.Context(), caller{class: "x"})
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
		if a.free != 1 || len(a.classes)+len(a.clients) != 0 || a.waiting+len(a.queues) != 0 {
			t.Errorf(
				"after all releases: got %d free, %v held, %d waiting; want 1 free and nothing else",
				a.free, a.classes, a.waiting,
			)
		}
	})
}

func TestAdmission_WaitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(1)
		release, err := a.acquire(t.Context(), caller{class: "x"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = a.acquire(ctx, caller{class: "x"})
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
		if _, err = a.acquire(gone, caller{class: "x"}); !errors.Is(err, context.Canceled) ||
			errors.Is(err, ErrUnavailable) {
			t.Errorf("wait of a caller that has gone: got error %v, want context.Canceled", err)
		}
		release()
		if acquireAll(t, a, caller{class: "y"}) != 1 {
			t.Error("the released connection is not free, want it to be")
		}
	})
}
