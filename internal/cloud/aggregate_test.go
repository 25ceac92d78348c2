package cloud_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

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
