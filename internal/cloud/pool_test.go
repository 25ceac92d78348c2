package cloud_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"

	"berth/internal/lease"
)

func (s sky) pool(f func(context.Context, string) error, hosts ...string) {
	s.Helper()
	for _, h := range hosts {
		if err := f(s.Context(), h); err != nil {
			s.Fatal(err)
		}
	}
}

func TestHostsThatCanBeLeasedAreInThePool(t *testing.T) {
	t.Parallel()
	s := newSky(t)
	c := hostsClaim("a")
	s.pool(s.AddToFreepool, "a", "b", "a")
	s.want(c, map[string][]string{"freepool": {"a", "b"}})

	s.provide(c)
	s.pool(s.AddToFreepool, "a") // a reservation has it
	s.want(c, map[string][]string{"own": {"a"}, "freepool": {"b"}})
	beside := instancesClaim("b")
	beside.ID = uuid.New()
	s.provide(beside)
	s.pool(s.RemoveFromFreepool, "b", "b", "a", "unheard of")
	s.want(c, map[string][]string{"own": {"a"}, "freepool": {}, beside.ID.String(): {"b"}})
	s.pool(s.AddToFreepool, "b") // instances leave room for others
	s.want(c, map[string][]string{"own": {"a"}, "freepool": {"b"}, beside.ID.String(): {"b"}})

	s.withdraw(c)
	s.want(c, map[string][]string{"freepool": {"a", "b"}, beside.ID.String(): {"b"}})
}

func TestPoolAndReservationDoNotBothKeepAHost(t *testing.T) {
	t.Parallel()
	for range 20 {
		s := newSky(t)
		c := hostsClaim("a", "b")
		var both sync.WaitGroup
		both.Go(func() { s.insist(func(ctx context.Context) error { _, err := s.Provision(ctx, c); return err }) })
		both.Go(func() { s.insist(func(ctx context.Context) error { return s.AddToFreepool(ctx, "a") }) })
		both.Wait()
		if own := s.pools(c); len(own["own"]) != 2 || len(own["freepool"]) != 0 {
			t.Fatalf("%v", own)
		}
	}
}

// ofEveryType is a claim of two of each type.
func ofEveryType() map[string]lease.Claim {
	return map[string]lease.Claim{"hosts": hostsClaim("a", "b"), "instances": instancesClaim("a", "b"),
		"addresses": addressesClaim("172.24.4.10", "172.24.4.11")}
}

// clean holds the cloud against nothing but both hosts in the pool, after a kill after so many requests.
func (s sky) clean(c lease.Claim, after int) {
	s.Helper()
	s.want(c, map[string][]string{"freepool": {"a", "b"}})
	if now := s.nova.ComputeState(); len(now.Flavors)+len(now.ServerGroups)+len(s.neutron.FloatingIPs()) > 0 {
		s.Fatalf("left after a kill after %d requests: %+v %+v", after, now, s.neutron.FloatingIPs())
	}
}

// TestWhoIsKilledBetweenTwoRequestsLeavesNothingDouble kills whoever provides and withdraws after each of his requests.
func TestWhoIsKilledBetweenTwoRequestsLeavesNothingDouble(t *testing.T) {
	t.Parallel()
	for name, c := range ofEveryType() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for after, over := 1, false; !over; after++ {
				s := newSky(t)
				s.pool(s.AddToFreepool, "a", "b")
				provided := s.killed(after, func(ctx context.Context) error { _, err := s.Provision(ctx, c); return err })
				if !provided {
					s.provide(c)
				}
				now := s.nova.ComputeState()
				if n := len(s.pools(c)["own"]); n != len(c.Servers) || len(now.Flavors) > 1 || len(now.ServerGroups) > 1 || len(s.neutron.FloatingIPs()) != len(c.Floating) {
					t.Fatalf("provided again after a kill after %d requests: %+v %+v", after, now, s.neutron.FloatingIPs())
				}
				withdrawn := s.killed(after, func(ctx context.Context) error { return s.Deprovision(ctx, c) })
				if !withdrawn {
					s.withdraw(c)
				}
				s.clean(c, after)
				over = provided && withdrawn
			}
		})
	}
}

// TestGivenUpHalfWayLeavesNothing kills whoever provides after each of his requests and then withdraws.
func TestGivenUpHalfWayLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range ofEveryType() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for after, over := 1, false; !over; after++ {
				s := newSky(t)
				s.pool(s.AddToFreepool, "a", "b")
				over = s.killed(after, func(ctx context.Context) error { _, err := s.Provision(ctx, c); return err })
				s.withdraw(c)
				s.clean(c, after)
			}
		})
	}
}

// TestReplacedHostIsNotLostOnItsWayToThePool kills whoever tells the cloud that a host was replaced. No row names that
// host any more.
func TestReplacedHostIsNotLostOnItsWayToThePool(t *testing.T) {
	t.Parallel()
	for after, over := 1, false; !over; after++ {
		s := newSky(t)
		s.provide(hostsClaim("a", "b"))
		s.pool(s.AddToFreepool, "c")
		now := hostsClaim("a", "c")
		over = s.killed(after, func(ctx context.Context) error { _, err := s.Provision(ctx, now); return err })
		s.provide(now)
		s.want(now, map[string][]string{"own": {"a", "c"}, "freepool": {"b"}})
	}
}
