package cloud_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/notify/notifytest"
)

// leftAt is when healing has replaced the former host of replacedHost.
var leftAt = time.Date(2040, 1, 1, 11, 0, 0, 0, time.UTC)

// replacedHost starts a reservation of the host a, replaces this host by the host b, and returns the
// reservation.
func (s cloudTest) replacedHost() lease.CloudReservation {
	s.Helper()
	s.apply(hostsClaim("a"))
	c := hostsClaim("b")
	c.FormerHosts = []lease.FormerHost{{Service: "a", LeftAt: leftAt}}
	s.apply(c)
	s.want(c, map[string][]string{"own": {"b"}, "freepool": {"a"}})
	return c
}

// A host that healing has replaced can be down only for a while. Its servers would stay for ever on a host
// that other reservations get.
func TestDeprovision_DeletesOnlyItsOwnServersOnFormerHosts(t *testing.T) {
	t.Parallel()
	before, after := leftAt.Add(-time.Minute), leftAt.Add(time.Minute)
	of := func(name, project string, created time.Time) notifytest.Server {
		return notifytest.Server{Host: "a", Name: name, Project: project, Created: created}
	}
	next := hostsClaim("a")
	next.ID = uuid.New()
	instances := instancesClaim("a")
	instances.ID = uuid.New()
	moved := of("of instances", "red", before)
	moved.Flavor = instances.ID.String()
	for name, tt := range map[string]struct {
		next []lease.CloudReservation // that have the former host now
		want []string
	}{
		"of a free host": {want: []string{"later", "of another project", "of unknown age"}},
		"of a host that has instances of another reservation": {
			next: []lease.CloudReservation{instances},
			want: []string{"later", "of another project", "of instances", "of unknown age"},
		},
		"of a host of another reservation": {
			next: []lease.CloudReservation{next},
			want: []string{"later", "of another project", "of instances", "of unknown age", "own"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCloudTest(t)
			c := s.replacedHost()
			for _, r := range tt.next {
				s.apply(r)
			}
			s.nova.AddServer(of("own", "red", before))
			s.nova.AddServer(of("of another project", "blue", before))
			s.nova.AddServer(of("later", "red", after))
			s.nova.AddServer(of("of unknown age", "red", time.Time{}))
			if len(tt.next) > 0 {
				s.nova.AddServer(moved)
			}
			s.nova.AddServer(notifytest.Server{Host: "b", Name: "on the current host"})

			s.remove(c)

			if got := s.serverNames(); !slices.Equal(got, tt.want) {
				t.Errorf("servers after the removal: got %q, want %q", got, tt.want)
			}
		})
	}
}

// The removal of a reservation from Nova is complete without the servers on its former hosts.
func TestDeprovision_ServersOnFormerHostsKeepNoCurrentHost(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(s cloudTest, server notifytest.Server){
		"Nova does not delete the server": func(s cloudTest, server notifytest.Server) {
			s.nova.InjectFaults(notifytest.Fault{Request: "POST /servers/" + server.ID, Status: http.StatusConflict})
		},
		"Nova deletes the server slowly": func(cloudTest, notifytest.Server) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCloudTest(t)
			c := s.replacedHost()
			prepare(s, s.nova.AddServer(notifytest.Server{
				Host:           "a",
				Project:        "red",
				Created:        leftAt.Add(-time.Minute),
				PollsUntilGone: 2,
			}))
			err := s.Deprovision(t.Context(), c)
			var call *lease.CallError
			if !errors.Is(err, lease.ErrFormerHosts) || !errors.As(err, &call) || call.Party != lease.PartyNova {
				t.Errorf("Deprovision: got %v, want ErrFormerHosts of Nova", err)
			}
			s.want(c, map[string][]string{"freepool": {"a", "b"}})
			for range 4 {
				err = s.Deprovision(t.Context(), c)
			}
			if left := s.serverNames(); err != nil || len(left) > 0 {
				t.Errorf("after further attempts: got error %v and %d servers, want none", err, len(left))
			}
		})
	}
}

func TestDeprovision_FormerHostOfWhichNovaListsNoServersKeepsNoOtherServer(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := s.replacedHost()
	c.FormerHosts = append([]lease.FormerHost{{Service: "c", LeftAt: leftAt}}, c.FormerHosts...)
	s.nova.AddServer(notifytest.Server{Host: "a", Project: "red", Created: leftAt.Add(-time.Minute)})
	s.remove(hostsClaim("b"))
	s.nova.InjectFaults(notifytest.Fault{Request: "GET /servers/detail", Status: http.StatusInternalServerError})
	if err := s.Deprovision(t.Context(), c); !errors.Is(err, lease.ErrFormerHosts) {
		t.Errorf("Deprovision while Nova does not list the servers of a former host: got %v, want ErrFormerHosts", err)
	}
	if left := s.serverNames(); len(left) > 0 {
		t.Errorf("servers on the other former host: got %d, want none", len(left))
	}
}

// The reservation has had the host before, so only its own servers stay.
func TestProvision_FormerHostThatComesBackKeepsItsServers(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := s.replacedHost()
	for name, created := range map[string]time.Time{
		"own":             leftAt.Add(-time.Minute),
		"later":           leftAt.Add(time.Minute),
		"of unknown age":  {},
		"other host, own": leftAt.Add(-time.Minute),
	} {
		host := "a"
		if name == "other host, own" {
			host = "c"
		}
		s.nova.AddServer(notifytest.Server{Host: host, Name: name, Project: "red", Created: created})
	}
	s.nova.AddServer(notifytest.Server{
		Host:    "a",
		Name:    "of another project",
		Project: "blue",
		Created: leftAt.Add(-time.Minute),
	})
	back := hostsClaim("a", "b", "c")
	back.FormerHosts = c.FormerHosts
	s.apply(back)
	s.want(back, map[string][]string{"own": {"a", "b", "c"}, "freepool": nil})
	if got, want := s.serverNames(), []string{"own"}; !slices.Equal(got, want) {
		t.Errorf("servers after the host has come back: got %q, want %q", got, want)
	}
}

func TestBeforeEnd_ServersOnFormerHostsGetImages(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := s.replacedHost()
	c.BeforeEnd = "snapshot"
	server := notifytest.Server{Host: "a", Name: "own", Project: "red", Created: leftAt.Add(-time.Minute)}
	s.nova.AddServer(server)
	server.Name, server.Project = "foreign", "blue"
	s.nova.AddServer(server)
	s.nova.AddServer(notifytest.Server{Host: "b", Name: "current"})
	if err := s.BeforeEnd(t.Context(), c); err != nil {
		t.Error(err)
	}
	if got, want := s.images(), []string{"reserved_current", "reserved_own"}; !slices.Equal(got, want) {
		t.Errorf("images: got %q, want %q", got, want)
	}
}
