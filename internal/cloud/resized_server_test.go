package cloud_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"berth/internal/cloud"
	"berth/internal/lease"
	"berth/internal/notify/notifytest"
)

// consumers are the UUIDs of the consumers in Placement that have allocations of the resource class of the
// reservation under test.
type consumers struct {
	mu  sync.Mutex
	all map[string]bool
}

func (c *consumers) add(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[id] = true
}

// move does for the stub of Nova what Nova does with the allocations of a server.
func (c *consumers) move(from, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[from] && to != "" {
		c.all[to] = true
	}
	delete(c.all, from)
}

func (c *consumers) read(context.Context, uuid.UUID) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.all)), nil
}

// newResizeTest returns a Cloud that reads the consumers of a running reservation of instances, the
// reservation, and the consumers.
func newResizeTest(t *testing.T) (cloudTest, lease.CloudReservation, *consumers) {
	t.Helper()
	s, c, left := newCloudTest(t), instancesClaim("a"), &consumers{all: map[string]bool{}}
	s.ReadConsumers(left.read)
	s.nova.MoveAllocations(left.move)
	s.nova.AddFlavor(notifytest.Flavor{
		ID:    "small",
		Name:  "m1.small",
		VCPUs: 1,
		RAM:   64,
	})
	s.apply(c)
	return s, c, left
}

// boot adds a server with the flavor of the reservation and an allocation of its resource class.
func (s cloudTest) boot(left *consumers, server notifytest.Server) notifytest.Server {
	server.Host, server.Flavor = "a", id.String()
	server = s.nova.AddServer(server)
	left.add(server.ID)
	return server
}

// act sends an action of the owner of a server to Nova, and returns the status of the answer.
func (s cloudTest) act(server notifytest.Server, action string) int {
	return s.requestNova("POST", "/servers/"+server.ID+"/action", action)
}

const resizeToSmall = `{"resize":{"flavorRef":"small"}}`

// After a resize that nobody confirms, a server has its new flavor, and its allocation of the reservation
// belongs to the migration: the slots of the reservation would stay used for ever.
func TestDeprovision_DeletesAServerWithAnUnconfirmedResize(t *testing.T) {
	t.Parallel()
	for name, reverted := range map[string]bool{"unconfirmed": false, "reverted after the flavor was deleted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c, left := newResizeTest(t)
			resized, other := s.boot(left, notifytest.Server{}), s.nova.AddServer(notifytest.Server{Host: "a", Flavor: "small"})
			if status := s.act(resized, resizeToSmall); status != http.StatusAccepted {
				t.Fatalf("the owner resizes the server: got %d, want 202", status)
			}
			if reverted {
				s.requestNova("DELETE", "/flavors/"+id.String(), "")
				s.act(resized, `{"revertResize":null}`)
			}

			s.remove(c)

			now, err := left.read(t.Context(), id)
			servers := s.nova.ComputeState().Servers
			if len(now) > 0 || err != nil || !slices.Equal(servers, []notifytest.Server{other}) {
				t.Errorf("after the end: got the consumers %v, error %v, and the servers %+v; want no consumer, and only the server %+v",
					now, err, servers, other)
			}
			if s.act(resized, `{"revertResize":null}`) == http.StatusAccepted {
				t.Error("the owner reverts the resize after the end: got 202, want a refusal")
			}
			s.remove(c)
		})
	}
}

func TestDeprovision_KeepsTheFlavorUntilResizedServersAreDeleted(t *testing.T) {
	t.Parallel()
	s, c, left := newResizeTest(t)
	s.act(s.boot(left, notifytest.Server{PollsUntilGone: 2}), resizeToSmall)
	hasFlavor := func() bool {
		return slices.ContainsFunc(s.nova.ComputeState().Flavors,
			func(f notifytest.Flavor) bool { return f.ID == id.String() })
	}
	if err := s.Deprovision(t.Context(), c); !errors.Is(err, cloud.ErrServersRemain) || !hasFlavor() {
		t.Errorf("Deprovision while Nova deletes a resized server: got error %v, flavor %t; want ErrServersRemain and the flavor",
			err, hasFlavor())
	}
	for range 3 { // Nova goes on deleting
		s.requestNova("GET", "/servers/detail", "")
	}
	s.remove(c)
	if hasFlavor() {
		t.Error("flavor after the end: got the flavor of the reservation, want none")
	}
}

// The owner of a server that has left the reservation keeps it.
func TestDeprovision_KeepsAServerWhoseResizeIsConfirmed(t *testing.T) {
	t.Parallel()
	for status, wait := range map[string]bool{"confirmed": false, "confirming": true} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			s, c, left := newResizeTest(t)
			server := s.boot(left, notifytest.Server{})
			s.act(server, resizeToSmall)
			if wait {
				s.nova.SetMigrationStatus(server.ID, status)
				if err := s.Deprovision(t.Context(), c); !errors.Is(err, cloud.ErrServersRemain) {
					t.Errorf("Deprovision while Nova confirms a resize: got %v, want ErrServersRemain", err)
				}
			}
			s.act(server, `{"confirmResize":null}`)
			s.remove(c)
			if len(s.nova.ComputeState().Servers) != 1 {
				t.Error("servers after the end: got none, want the server whose owner has confirmed its resize")
			}
		})
	}
}

// A server whose resize is confirmed while Deprovision reads the migrations has left the reservation, too.
func TestDeprovision_KeepsAServerWhoseResizeIsConfirmedMeanwhile(t *testing.T) {
	t.Parallel()
	s, c, left := newResizeTest(t)
	server := s.boot(left, notifytest.Server{})
	s.act(server, resizeToSmall)
	reads := 0
	s.ReadConsumers(func(ctx context.Context, reservation uuid.UUID) ([]string, error) {
		if reads++; reads == 2 {
			s.act(server, `{"confirmResize":null}`)
		}
		return left.read(ctx, reservation)
	})
	s.remove(c)
	if len(s.nova.ComputeState().Servers) != 1 {
		t.Error("servers after the end: got none, want the server whose owner has confirmed its resize")
	}
}

// An allocation that belongs to no server and no migration is reported by the removal of the inventory.
func TestDeprovision_UnknownConsumerDoesNotKeepTheFlavor(t *testing.T) {
	t.Parallel()
	s, c, left := newResizeTest(t)
	left.add(uuid.NewString())
	s.act(s.nova.AddServer(notifytest.Server{Host: "a", Flavor: id.String()}), resizeToSmall)
	s.remove(c)
	if now := s.nova.ComputeState(); len(now.Servers) != 1 || len(now.Flavors) != 1 {
		t.Errorf("after the end: got %+v, want the server without an allocation of the reservation, and no flavor of the reservation",
			now)
	}
}

func TestDeprovision_OfResizedServersMayBeKilledAnywhere(t *testing.T) {
	t.Parallel()
	for after := 1; ; after++ {
		s, c, left := newResizeTest(t)
		s.act(s.boot(left, notifytest.Server{}), resizeToSmall)
		lived := s.killed(after, func(ctx context.Context) error { return s.Deprovision(ctx, c) })
		s.remove(c)
		if now, _ := left.read(t.Context(), id); len(now) > 0 || len(s.nova.ComputeState().Servers) > 0 {
			t.Errorf("killed after %d answers: got the consumers %v and the servers %+v, want none",
				after, now, s.nova.ComputeState().Servers)
		}
		if lived {
			return
		}
	}
}

func TestDeprovision_NovaThatShowsNoMigrationsIsAnError(t *testing.T) {
	t.Parallel()
	s, c, left := newResizeTest(t)
	s.act(s.boot(left, notifytest.Server{}), resizeToSmall)
	s.nova.InjectFaults(notifytest.Fault{Request: "GET /os-migrations", Status: http.StatusForbidden})
	err := s.Deprovision(t.Context(), c)
	var call *lease.CallError
	if !errors.As(err, &call) || !strings.Contains(call.Call, "os-migrations") || !strings.Contains(call.Call, "403") {
		t.Errorf("Deprovision without the right to list migrations: got %v, want an error that names the call", err)
	}
}

// Nova keeps the memory and the disk of a resized server on its old host until the resize is confirmed, and
// its owner can bring it back to the old host.
func TestReservationOfHosts_ServersThatWereResizedAwayDoNotComeBack(t *testing.T) {
	t.Parallel()
	newTest := func(t *testing.T) (s cloudTest, left *consumers, resize func(host string) notifytest.Server) {
		t.Helper()
		s, left = newCloudTest(t), &consumers{all: map[string]bool{}}
		s.nova.MoveAllocations(left.move)
		s.nova.AddFlavor(notifytest.Flavor{ID: "small", Name: "m1.small", VCPUs: 1, RAM: 64})
		return s, left, func(host string) notifytest.Server {
			server := s.nova.AddServer(notifytest.Server{Host: host, Flavor: "large"})
			left.add(server.ID)
			s.act(server, resizeToSmall)
			s.nova.MoveServer(server.ID, "c")
			return server
		}
	}
	expect := func(s cloudTest, left *consumers, server notifytest.Server) {
		s.Helper()
		if now, err := left.read(s.Context(), id); len(now) > 0 || err != nil {
			s.Errorf("consumers of the old host: got %v, error %v; want none", now, err)
		}
		if s.act(server, `{"revertResize":null}`) == http.StatusAccepted {
			s.Error("the owner reverts the resize: got 202, want a refusal")
		}
		if n := len(s.nova.ComputeState().Servers); n != 1 {
			s.Errorf("servers, of which one is on another host: got %d, want 1", n)
		}
	}
	t.Run("before the start", func(t *testing.T) {
		t.Parallel()
		s, left, resize := newTest(t)
		server := resize("a")
		s.apply(hostsClaim("a"))
		expect(s, left, server)
	})
	t.Run("before the end", func(t *testing.T) {
		t.Parallel()
		s, left, resize := newTest(t)
		c := hostsClaim("a", "b")
		s.apply(c)
		server := resize("a")
		s.nova.SetMigrationStatus(server.ID, "post-migrating")
		if err := s.Deprovision(t.Context(), c); !errors.Is(err, cloud.ErrServersRemain) {
			t.Errorf("end while a server is moved away: got error %v, want ErrServersRemain", err)
		}
		if _, hosts := s.ownerOf(c); !slices.Equal(hosts, []string{"a"}) {
			t.Errorf("hosts of the reservation while a server is moved away from host a: got %v, want only a", hosts)
		}
		s.nova.SetMigrationStatus(server.ID, "finished")
		s.remove(c)
		expect(s, left, server)
	})
}

// newMigrationTest returns a running reservation of the hosts a and b, and a server that was resized away
// from host a.
func newMigrationTest(t *testing.T) (cloudTest, lease.CloudReservation, notifytest.Server) {
	t.Helper()
	s, c := newCloudTest(t), hostsClaim("a", "b")
	s.apply(c)
	s.nova.AddFlavor(notifytest.Flavor{
		ID:    "small",
		Name:  "m1.small",
		VCPUs: 1,
		RAM:   64,
	})
	server := s.nova.AddServer(notifytest.Server{Host: "a", Flavor: "large"})
	s.act(server, resizeToSmall)
	s.nova.MoveServer(server.ID, "c")
	return s, c, server
}

// Nova never finishes a migration whose server was reset by an operator, or was deleted after that.
func TestReservationOfHosts_StaleMigrationKeepsNoHost(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"finished", "post-migrating", "reverting", "confirming"} {
		for name, isDeleted := range map[string]bool{"server is active": false, "server is deleted": true} {
			t.Run(status+", "+name, func(t *testing.T) {
				t.Parallel()
				s, c, server := newMigrationTest(t)
				s.nova.SetMigrationStatus(server.ID, status)
				if got := s.act(server, `{"os-resetState":{"state":"active"}}`); got != http.StatusAccepted {
					t.Fatalf("an operator resets the state of the server: got %d, want 202", got)
				}
				if isDeleted {
					s.requestNova("DELETE", "/servers/"+server.ID, "")
				}
				s.remove(c)
				s.want(c, map[string][]string{"freepool": {"a", "b"}})
				if got := s.act(server, `{"revertResize":null}`); got == http.StatusAccepted {
					t.Error("the owner reverts the resize: got 202, want a refusal")
				}
			})
		}
	}
}

func TestReservationOfHosts_HostIsKeptWhileAServerCanComeBack(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(s cloudTest, server notifytest.Server){
		"Nova refuses the confirmation": func(s cloudTest, server notifytest.Server) {
			s.nova.InjectFaults(notifytest.Fault{Request: "POST /servers/" + server.ID, Status: http.StatusConflict})
		},
		"Nova does not answer the confirmation": func(s cloudTest, server notifytest.Server) {
			s.nova.InjectFaults(notifytest.Fault{Request: "POST /servers/" + server.ID, DropConnection: true})
		},
		"Nova does not answer for the server": func(s cloudTest, server notifytest.Server) {
			s.nova.SetMigrationStatus(server.ID, "reverting")
			s.nova.InjectFaults(notifytest.Fault{Request: "GET /servers/" + server.ID, DropConnection: true})
		},
		"Nova does not know the server for a moment": func(s cloudTest, server notifytest.Server) {
			s.nova.SetMigrationStatus(server.ID, "reverting")
			s.nova.InjectFaults(notifytest.Fault{Request: "GET /servers/" + server.ID, Status: http.StatusNotFound})
		},
		"post-migrating": func(s cloudTest, server notifytest.Server) {
			s.nova.SetMigrationStatus(server.ID, "post-migrating")
		},
		"reverting": func(s cloudTest, server notifytest.Server) {
			s.nova.SetMigrationStatus(server.ID, "reverting")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c, server := newMigrationTest(t)
			prepare(s, server)
			if err := s.Deprovision(t.Context(), c); err == nil {
				t.Error("end while a server can come back to host a: got no error, want one")
			}
			s.want(c, map[string][]string{"own": {"a"}, "freepool": {"b"}})
			s.nova.SetMigrationStatus(server.ID, "finished")
			s.remove(c)
			s.want(c, map[string][]string{"freepool": {"a", "b"}})
		})
	}
}
