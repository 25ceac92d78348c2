package cloud_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"

	"berth/internal/lease"
)

func (s cloudTest) addToFreepool(f func(context.Context, string) error, hosts ...string) {
	s.Helper()
	for _, h := range hosts {
		if err := f(s.Context(), h); err != nil {
			s.Fatal(err)
		}
	}
}

func TestAddToFreepool_AddsUnreservedHostsOnly(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := hostsClaim("a")
	s.addToFreepool(s.AddToFreepool, "a", "b", "a")
	s.want(c, map[string][]string{"freepool": {"a", "b"}})

	s.apply(c)
	s.addToFreepool(s.AddToFreepool, "a") // no effect: the reservation c has the host a
	s.want(c, map[string][]string{"own": {"a"}, "freepool": {"b"}})
	beside := instancesClaim("b")
	beside.ID = uuid.New()
	s.apply(beside)
	s.addToFreepool(s.RemoveFromFreepool, "b", "b", "a", "unheard of")
	s.want(c, map[string][]string{"own": {"a"}, "freepool": {}, beside.ID.String(): {"b"}})
	s.addToFreepool(s.AddToFreepool, "b") // an instance reservation does not own the whole host
	s.want(c, map[string][]string{"own": {"a"}, "freepool": {"b"}, beside.ID.String(): {"b"}})

	s.remove(c)
	s.want(c, map[string][]string{"freepool": {"a", "b"}, beside.ID.String(): {"b"}})
}

func TestAddToFreepool_RacesWithAReservation(t *testing.T) {
	t.Parallel()
	for range 20 {
		s := newCloudTest(t)
		c := hostsClaim("a", "b")
		var both sync.WaitGroup
		both.Go(func() {
			s.retry(func(ctx context.Context) error { _, err := s.Provision(ctx, c); return err })
		})
		both.Go(func() { s.retry(func(ctx context.Context) error { return s.AddToFreepool(ctx, "a") }) })
		both.Wait()
		if own := s.pools(c); len(own["own"]) != 2 || len(own["freepool"]) != 0 {
			t.Fatalf(
				"hosts after Provision and AddToFreepool at the same time: got %v, want both in the reservation's aggregate",
				own,
			)
		}
	}
}

// ofEveryType returns, for each resource type, a reservation of two resources.
func ofEveryType() map[string]lease.CloudReservation {
	return map[string]lease.CloudReservation{
		"hosts":     hostsClaim("a", "b"),
		"instances": instancesClaim("a", "b"),
		"addresses": addressesClaim("172.24.4.10", "172.24.4.11"),
	}
}

// clean checks that no object is left in Nova and Neutron except the freepool with both hosts.
// The failure messages of clean contain the number of requests after which the call was killed.
func (s cloudTest) clean(c lease.CloudReservation, after int) {
	s.Helper()
	s.want(c, map[string][]string{"freepool": {"a", "b"}})
	if now := s.nova.ComputeState(); len(now.Flavors)+len(now.ServerGroups)+len(s.neutron.FloatingIPs()) > 0 {
		s.Fatalf(
			"objects after a kill after %d requests and a repeated call: got %+v, floating IPs %+v; want none",
			after, now, s.neutron.FloatingIPs(),
		)
	}
}

// For every request that Provision or Deprovision sends, the test kills the call after this request and
// repeats the call.
func TestProvision_KilledAnywhereCreatesNothingTwice(t *testing.T) {
	t.Parallel()
	for name, c := range ofEveryType() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for after, over := 1, false; !over; after++ {
				s := newCloudTest(t)
				s.addToFreepool(s.AddToFreepool, "a", "b")
				provided := s.killed(after,
					func(ctx context.Context) error { _, err := s.Provision(ctx, c); return err })
				if !provided {
					s.apply(c)
				}
				now := s.nova.ComputeState()
				if n := len(s.pools(c)["own"]); n != len(c.ComputeHosts) || len(now.Flavors) > 1 ||
					len(now.ServerGroups) > 1 ||
					len(s.neutron.FloatingIPs()) != len(c.FloatingIPs) {
					t.Fatalf(
						"objects after Provision was killed after %d requests and repeated: got %+v, floating IPs %+v; want each object once",
						after, now, s.neutron.FloatingIPs(),
					)
				}
				withdrawn := s.killed(after, func(ctx context.Context) error { return s.Deprovision(ctx, c) })
				if !withdrawn {
					s.remove(c)
				}
				s.clean(c, after)
				over = provided && withdrawn
			}
		})
	}
}

// For every request that Provision sends, the test kills Provision after this request, and then runs
// Deprovision.
func TestDeprovision_RemovesAHalfDoneProvision(t *testing.T) {
	t.Parallel()
	for name, c := range ofEveryType() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for after, over := 1, false; !over; after++ {
				s := newCloudTest(t)
				s.addToFreepool(s.AddToFreepool, "a", "b")
				over = s.killed(after,
					func(ctx context.Context) error { _, err := s.Provision(ctx, c); return err })
				s.remove(c)
				s.clean(c, after)
			}
		})
	}
}

// The test replaces a host of a reservation and, for every request of Provision, kills Provision after this
// request. The next call must find the replaced host without the database, because no row contains this host
// any more.
func TestProvision_ReplacedHostReturnsToTheFreepool(t *testing.T) {
	t.Parallel()
	for after, over := 1, false; !over; after++ {
		s := newCloudTest(t)
		s.apply(hostsClaim("a", "b"))
		s.addToFreepool(s.AddToFreepool, "c")
		now := hostsClaim("a", "c")
		over = s.killed(after,
			func(ctx context.Context) error { _, err := s.Provision(ctx, now); return err })
		s.apply(now)
		s.want(now, map[string][]string{"own": {"a", "c"}, "freepool": {"b"}})
	}
}
