package cloud_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"berth/internal/lease"
	"berth/internal/notify/notifytest"
)

// requestNova sends a request of a user to the stub of Nova, and returns the status of the answer.
func (s cloudTest) requestNova(method, path, body string) int {
	answer := httptest.NewRecorder()
	s.nova.ServeHTTP(answer, httptest.NewRequest(method, path, strings.NewReader(body)))
	return answer.Code
}

// With the option reclaim_instance_interval of Nova, a user can restore the servers that were deleted with
// DELETE. After the end of a lease, a restored server would run on a host of another project.
func TestServers_DeletedForALeaseCannotBeRestored(t *testing.T) {
	t.Parallel()
	ofHost, ofFlavor := hostsClaim("a"), instancesClaim("a")
	for name, tt := range map[string]struct {
		reservation lease.CloudReservation
		atStart     bool // the servers are on the host before the start of the lease
	}{
		"start of a reservation of hosts":   {reservation: ofHost, atStart: true},
		"end of a reservation of hosts":     {reservation: ofHost},
		"end of a reservation of instances": {reservation: ofFlavor},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCloudTest(t)
			s.nova.EnableSoftDelete()
			if !tt.atStart {
				s.apply(tt.reservation)
			}
			running := s.nova.AddServer(notifytest.Server{Host: "a", Flavor: id.String()})
			deleted := s.nova.AddServer(notifytest.Server{Host: "a", Flavor: id.String()})
			if status := s.requestNova("DELETE", "/servers/"+deleted.ID, ""); status != http.StatusNoContent {
				t.Fatalf("the owner deletes a server: got %d, want 204", status)
			}

			if tt.atStart {
				s.apply(tt.reservation)
			} else {
				s.remove(tt.reservation)
			}

			for _, server := range []notifytest.Server{running, deleted} {
				if s.requestNova("POST", "/servers/"+server.ID+"/action", `{"restore":null}`) == http.StatusAccepted {
					t.Errorf("the owner restores server %+v after the %s: got 202, want a refusal", server, name)
				}
			}
		})
	}
}

func TestDeprovision_WaitsUntilNovaHasDeletedASoftDeletedServer(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	s.nova.EnableSoftDelete()
	c := hostsClaim("a")
	s.apply(c)
	s.nova.AddServer(notifytest.Server{Host: "a", SoftDeleted: true, PollsUntilGone: 2})
	if err := s.Deprovision(t.Context(), c); err == nil {
		t.Error("Deprovision while Nova deletes a server that was soft-deleted: got no error, want ErrServersRemain")
	}
	s.want(c, map[string][]string{"own": {"a"}})
	s.remove(c)
	s.want(c, map[string][]string{"freepool": {"a"}})
}

// The owner of many servers can give them so much metadata that their list is larger than the limit of an
// answer.
func TestDeprovision_DeletesServersWithAnyMetadata(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := hostsClaim("a")
	s.apply(c)
	for range 120 {
		s.nova.AddServer(notifytest.Server{Host: "a", MetadataSize: 400 << 10})
	}
	s.remove(c)
	if left := len(s.nova.ComputeState().Servers); left > 0 {
		t.Errorf("servers after Deprovision: got %d, want none", left)
	}
}
