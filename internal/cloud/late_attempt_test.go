package cloud_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/cloud"
	"berth/internal/lease"
	"berth/internal/notify/notifytest"
)

// newestRevision returns a function for Reread: the reservation has a revision.
func newestRevision(revision int64) func(context.Context, lease.CloudReservation) (lease.CloudReservation, error) {
	return func(_ context.Context, c lease.CloudReservation) (lease.CloudReservation, error) {
		c.Revision = revision
		return c, nil
	}
}

// serverNames returns the sorted names of the servers in Nova.
func (s cloudTest) serverNames() (names []string) {
	for _, server := range s.nova.ComputeState().Servers {
		names = append(names, server.Name)
	}
	slices.Sort(names)
	return names
}

// newProcess returns the Cloud of another process with the same Nova and Neutron.
func (s cloudTest) newProcess() *cloud.Cloud {
	s.Helper()
	nova, neutron := httptest.NewServer(s.nova), httptest.NewServer(s.neutron)
	s.Cleanup(nova.Close)
	s.Cleanup(neutron.Close)
	c, err := cloud.New(cloud.Config{Nova: nova.URL + "/v2.1", Neutron: neutron.URL, Timeout: time.Hour})
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// paused runs `attempt`, and runs the function `meanwhile` when Nova and Neutron have answered `after`
// requests, as if the process of the attempt was paused then. The result `reached` is false if the attempt
// has sent fewer requests. The attempt may fail, because Temporal ignores its result.
func (s cloudTest) paused(
	after int,
	attempt func(context.Context) error,
	meanwhile func(newer *cloud.Cloud) error,
) (reached bool) {
	s.Helper()
	newer, requests := s.newProcess(), 0
	s.atEach(func(*http.Request) {
		if requests++; requests != after {
			return
		}
		if err := meanwhile(newer); err != nil {
			s.Errorf("after %d requests of the late attempt: %v", after, err)
		}
	})
	_ = attempt(s.Context())
	s.atEach(nil) // waits until `meanwhile` has returned
	return requests >= after
}

func TestDeprovision_LateAttemptDeletesNoServerOfTheNextReservation(t *testing.T) {
	t.Parallel()
	for after, reached := 1, true; reached; after++ {
		s := newCloudTest(t)
		c, next := hostsClaim("a"), hostsClaim("a")
		next.ID, next.Project = uuid.New(), "blue"
		s.apply(c)
		s.nova.AddServer(notifytest.Server{Host: "a", Name: "old"})
		attempt := func(ctx context.Context) error { return s.Deprovision(ctx, c) }
		reached = s.paused(after, attempt, func(newer *cloud.Cloud) error {
			err := newer.Deprovision(t.Context(), c)
			if err == nil {
				_, err = newer.Provision(t.Context(), next)
			}
			s.nova.AddServer(notifytest.Server{Host: "a", Name: "of the next reservation"})
			return err
		})
		if !reached {
			return
		}
		if got, want := s.serverNames(), []string{"of the next reservation"}; !slices.Equal(got, want) {
			t.Errorf("servers after a late attempt that was paused after %d requests: got %q, want %q", after, got, want)
		}
		if owner, hosts := s.ownerOf(next); owner != next.Project || !slices.Equal(hosts, []string{"a"}) {
			t.Errorf("the next reservation after a late attempt that was paused after %d requests: "+
				"got the owner %q and the hosts %v, want blue and a", after, owner, hosts)
		}
	}
}

func TestProvision_LateAttemptDeletesNoServerOfARunningReservation(t *testing.T) {
	t.Parallel()
	c, next := hostsClaim("a"), hostsClaim("a")
	next.ID, next.Project = uuid.New(), "blue"
	for name, tt := range map[string]struct {
		ended bool // the reservation has ended meanwhile, and the next one has started
		of    lease.CloudReservation
	}{
		"of its own":     {of: c},
		"of another one": {ended: true, of: next},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for after, reached := 1, true; reached; after++ {
				s := newCloudTest(t)
				s.nova.AddServer(notifytest.Server{Host: "a", Name: "before the start"})
				attempt := func(ctx context.Context) error { _, err := s.Provision(ctx, c); return err }
				reached = s.paused(after, attempt, func(newer *cloud.Cloud) error {
					_, err := newer.Provision(t.Context(), c)
					if err == nil && tt.ended {
						err = newer.Deprovision(t.Context(), c)
					}
					if err == nil && tt.ended {
						_, err = newer.Provision(t.Context(), next)
					}
					s.nova.AddServer(notifytest.Server{Host: "a", Name: "running"})
					return err
				})
				if !reached {
					return
				}
				if got, want := s.serverNames(), []string{"running"}; !slices.Equal(got, want) {
					t.Errorf("servers after a late attempt that was paused after %d requests: got %q, want %q",
						after, got, want)
				}
				if _, hosts := s.ownerOf(tt.of); !slices.Equal(hosts, []string{"a"}) {
					t.Errorf("hosts of the running reservation after a late attempt that was paused after %d requests: "+
						"got %v, want a", after, hosts)
				}
			}
		})
	}
}

// An attempt that was paused must not give back the host by which healing has replaced another one since.
func TestProvision_LateAttemptOfAnOlderRevisionReleasesNoHost(t *testing.T) {
	t.Parallel()
	for name, claim := range map[string]func(...string) lease.CloudReservation{
		"hosts":     hostsClaim,
		"instances": instancesClaim,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCloudTest(t)
			old, now := claim("a", "b"), claim("a", "c")
			now.Revision++
			s.Reread(newestRevision(now.Revision))
			s.apply(now)
			s.nova.AddServer(notifytest.Server{Host: "c", Name: "new"})
			if _, err := s.Provision(t.Context(), old); err == nil || errors.Is(err, cloud.ErrInUse) {
				t.Errorf("Provision of an older revision: got error %v, want one that names a newer attempt", err)
			}
			s.want(now, map[string][]string{"own": {"a", "c"}})
			if left := s.serverNames(); !slices.Equal(left, []string{"new"}) {
				t.Errorf("servers on the new host: got %q, want the one", left)
			}
		})
	}
}

// The next reservation can be one of the same project. Only berth's database says then to which of the two an
// address or a segment belongs.
func TestDeprovision_LateAttemptDeletesNothingInNeutronOfTheNextReservation(t *testing.T) {
	t.Parallel()
	ofAddress, ofNetwork := addressesClaim("172.24.4.10"), networkClaim()
	ofAddress.Created, ofNetwork.NetworkBegun = ofAddress.FloatingIPs, true
	for name, late := range map[string]lease.CloudReservation{"floating IP": ofAddress, "network": ofNetwork} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := late
			next.ID = uuid.New()
			for after, reached := 1, true; reached; after++ {
				s := newCloudTest(t)
				s.apply(late)
				var ended atomic.Bool
				s.Reread(func(_ context.Context, c lease.CloudReservation) (lease.CloudReservation, error) {
					if c.ID == late.ID && ended.Load() {
						c.Created, c.CreatedByOthers, c.NetworkBegun = nil, late.Created, false
					}
					return c, nil
				})
				attempt := func(ctx context.Context) error { return s.Deprovision(ctx, late) }
				reached = s.paused(after, attempt, func(newer *cloud.Cloud) error {
					err := newer.Deprovision(t.Context(), late)
					ended.Store(true)
					if err == nil {
						_, err = newer.Provision(t.Context(), next)
					}
					return err
				})
				if left := len(s.neutron.FloatingIPs()) + len(s.neutron.Networks()); reached && left != 1 {
					t.Errorf("after a late attempt that was paused after %d requests: got %d objects, "+
						"want the one of the next reservation", after, left)
				}
			}
		})
	}
}

// A late attempt can create its object just before the next reservation of the same project begins to create
// its own, and can have listed its object before, too. It deletes its object when the next reservation has
// found it.
func TestProvision_KeepsNoObjectThatALateAttemptDeletes(t *testing.T) {
	t.Parallel()
	ofAddress, ofNetwork := addressesClaim("172.24.4.10"), networkClaim()
	ofAddress.Created, ofNetwork.NetworkBegun = ofAddress.FloatingIPs, true
	for name, late := range map[string]lease.CloudReservation{"floating IP": ofAddress, "network": ofNetwork} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := late
			next.ID = uuid.New()
			s := newCloudTest(t)
			s.apply(late)
			newer, begun := s.newProcess(), false
			s.Reread(func(_ context.Context, c lease.CloudReservation) (lease.CloudReservation, error) {
				if !begun {
					begun = true
					if _, err := newer.Provision(t.Context(), next); err != nil {
						t.Error(err)
					}
				}
				return c, nil // as it was before the next reservation began
			})

			s.remove(late)

			left := []string{}
			for _, f := range s.neutron.FloatingIPs() {
				left = append(left, f.Tags...)
			}
			for _, n := range s.neutron.Networks() {
				left = append(left, n.Tags...)
			}
			if d := cmp.Diff([]string{"blazar", "reservation:" + next.ID.String()}, left); d != "" || !begun {
				t.Errorf("tags of what is left after the late attempt (-want +got):\n%s", d)
			}
		})
	}
}
