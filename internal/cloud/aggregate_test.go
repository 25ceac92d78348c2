package cloud_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/cloud"
	"berth/internal/lease"
	"berth/internal/notify/notifytest"
)

// ownerOf returns the owner of a reservation's aggregate, and the hosts of the aggregate.
func (s cloudTest) ownerOf(c lease.CloudReservation) (owner string, hosts []string) {
	for _, a := range s.nova.ComputeState().Aggregates {
		if a.Name == c.ID.String() {
			owner, hosts = a.Metadata["blazar:owner"], a.Hosts
		}
	}
	return owner, hosts
}

// startServers starts a server on each host of a reservation if BlazarFilter lets the reservation's project
// do so: the filter compares the project with the owner of the aggregate.
func (s cloudTest) startServers(c lease.CloudReservation) {
	owner, hosts := s.ownerOf(c)
	if owner != c.Project {
		return
	}
	for _, host := range hosts {
		s.nova.AddServer(notifytest.Server{Host: host})
	}
}

func TestDeprovision_ServersStartedAgainAndAgainKeepNoHost(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := hostsClaim("a", "b")
	s.apply(c)
	s.atEach(func(*http.Request) { s.startServers(c) })
	var err error
	for range 5 {
		if err = s.Deprovision(t.Context(), c); err == nil {
			break
		}
	}
	if err != nil {
		t.Errorf("five attempts to remove the reservation while its project starts servers: got the error %v, want none", err)
	}
	s.want(c, map[string][]string{"freepool": {"a", "b"}})
	if left := s.nova.ComputeState().Servers; len(left) > 0 {
		t.Errorf("servers after the removal: got %+v, want none", left)
	}
}

func TestDeprovision_ReleasesEachEmptyHost(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(s cloudTest){
		"a server that Nova deletes slowly": func(s cloudTest) {
			s.nova.AddServer(notifytest.Server{Host: "a", PollsUntilGone: 3})
		},
		"a server that Nova does not delete": func(s cloudTest) {
			stuck := s.nova.AddServer(notifytest.Server{Host: "a"})
			s.nova.InjectFaults(notifytest.Fault{Request: "POST /servers/" + stuck.ID, Status: http.StatusConflict})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCloudTest(t)
			c, next := hostsClaim("a", "b"), hostsClaim("b")
			next.ID, next.Project = uuid.New(), "blue"
			s.apply(c)
			prepare(s)
			if err := s.Deprovision(t.Context(), c); err == nil {
				t.Error("Deprovision while a host has a server: got no error, want one")
			}
			s.want(c, map[string][]string{"own": {"a"}, "freepool": {"b"}})
			s.apply(next)
			if owner, _ := s.ownerOf(c); owner == "" || owner == c.Project {
				t.Errorf("owner of the aggregate whose reservation ends: got %q, want one that is no project", owner)
			}
			taken := hostsClaim("a")
			taken.ID = uuid.New()
			if _, err := s.Provision(t.Context(), taken); !errors.Is(err, cloud.ErrInUse) {
				t.Errorf("reserve the host that is not released yet: got %v, want ErrInUse", err)
			}
			s.retry(func(ctx context.Context) error { return s.Deprovision(ctx, c) })
			if owner, hosts := s.ownerOf(next); owner != next.Project || !slices.Equal(hosts, []string{"b"}) {
				t.Errorf("the next reservation after the removal: got the owner %q and the hosts %v, want blue and b",
					owner, hosts)
			}
			if pool := s.pools(c)["freepool"]; !slices.Equal(pool, []string{"a"}) {
				t.Errorf("freepool after the removal: got %v, want host a", pool)
			}
		})
	}
}

// A process can die after any answer of Nova. The next attempt continues the removal; a reservation that
// starts again belongs to its project again.
func TestDeprovision_KilledAfterAnyRequestReleasesTheHosts(t *testing.T) {
	t.Parallel()
	c := hostsClaim("a", "b")
	for after := 1; ; after++ {
		again, ended := newCloudTest(t), newCloudTest(t)
		lived := false
		for _, s := range []cloudTest{again, ended} {
			s.apply(c)
			s.nova.AddServer(notifytest.Server{Host: "a"})
			lived = s.killed(after, func(ctx context.Context) error { return s.Deprovision(ctx, c) })
		}
		again.apply(c)
		if owner, hosts := again.ownerOf(c); owner != c.Project || len(hosts) != 2 {
			t.Errorf("a Deprovision that was killed after %d requests, then Provision: got the owner %q and the hosts %v, "+
				"want %q and both hosts", after, owner, hosts, c.Project)
		}
		ended.remove(c)
		ended.want(c, map[string][]string{"freepool": {"a", "b"}})
		if lived {
			return
		}
	}
}

// manyHosts returns a running reservation of many hosts, each with a server.
func manyHosts(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) (cloudTest, lease.CloudReservation) {
	t.Helper()
	s, c := newCloudTest(t), hostsClaim()
	server := httptest.NewServer(s.killer.behind(s.nova))
	t.Cleanup(server.Close)
	var err error
	if s.Cloud, err = cloud.New(cloud.Config{
		Nova:    server.URL + "/v2.1",
		Timeout: time.Hour,
		Wrap:    wrap,
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		host := fmt.Sprintf("cmp-%02d", i)
		s.nova.SetHypervisor(host, "up")
		c.ComputeHosts = append(c.ComputeHosts, lease.ReservedHost{Service: host, Slots: 1})
	}
	s.apply(c)
	s.startServers(c)
	return s, c
}

// An attempt to end a lease has a limited time, which is too short to delete the servers on thousands of
// hosts.
func TestDeprovision_EachAttemptReleasesSomeHosts(t *testing.T) {
	t.Parallel()
	s, c := manyHosts(t, nil)
	attempts, hosts := 0, len(c.ComputeHosts)
	for lived := false; !lived; attempts++ {
		// fewer requests than hosts, apart from those that delete the servers
		servers := len(s.nova.ComputeState().Servers)
		lived = s.killed(36+2*servers, func(ctx context.Context) error { return s.Deprovision(ctx, c) })
		_, left := s.ownerOf(c)
		if len(left) >= hosts && !lived {
			t.Fatalf("hosts of the reservation after attempt %d: got %d as before, want fewer", attempts, len(left))
		}
		hosts = len(left)
	}
	if attempts == 1 {
		t.Error("attempts: got 1, want several")
	}
	if pool := s.pools(c)["freepool"]; len(pool) != len(c.ComputeHosts) {
		t.Errorf("freepool after the removal: got %d hosts, want %d", len(pool), len(c.ComputeHosts))
	}
}

// roundTripper is a transport that consists of one function.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestDeprovision_HostOfWhichNovaListsNoServersKeepsNoOtherHost(t *testing.T) {
	t.Parallel()
	const hanging = "cmp-03"
	isHanging := atomic.Bool{}
	s, c := manyHosts(t, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if isHanging.Load() && r.URL.Query().Get("host") == hanging {
				return nil, os.ErrDeadlineExceeded
			}
			return next.RoundTrip(r)
		})
	})
	isHanging.Store(true)
	if err := s.Deprovision(t.Context(), c); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Deprovision while the list of a host times out: got %v, want the time-out", err)
	}
	if _, hosts := s.ownerOf(c); !slices.Equal(hosts, []string{hanging}) {
		t.Errorf("hosts of the reservation: got %v, want only %s", hosts, hanging)
	}
	isHanging.Store(false)
	s.remove(c)
}

func TestDeprovision_LaterErrorKeepsReleasedHostsReleased(t *testing.T) {
	t.Parallel()
	lists := atomic.Int32{}
	isRefused := atomic.Bool{}
	s, c := manyHosts(t, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if isRefused.Load() && strings.HasSuffix(r.URL.Path, "/os-migrations") && lists.Add(1) > 4 {
				return nil, os.ErrDeadlineExceeded
			}
			return next.RoundTrip(r)
		})
	})
	isRefused.Store(true)
	if err := s.Deprovision(t.Context(), c); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Deprovision while the second list of migrations times out: got %v, want the time-out", err)
	}
	if pool := s.pools(c)["freepool"]; len(pool) == 0 || len(pool) == len(c.ComputeHosts) {
		t.Errorf("freepool after the time-out: got %v, want the first hosts", pool)
	}
	isRefused.Store(false)
	s.remove(c)
}
