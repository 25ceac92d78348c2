package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.temporal.io/api/serviceerror"

	"berth/internal/contract"
	"berth/internal/odl/odltest"
	"berth/internal/store/storetest"
)

type seen = odltest.Request

// writes are the requests of that method by which the controller's objects change, as far as it saw them.
func (s *site) writes(method string) []seen {
	return slices.DeleteFunc(s.odl.Requests(), func(w seen) bool { return w.Method != method || w.ID == canary || listens(w.Path) })
}

// listens tells whether a request is of somebody who wants to hear what the controller says of its own accord.
func listens(path string) bool { return strings.HasPrefix(path, "/restconf/") }

func (s *site) same(what string, want, got any) {
	s.Helper()
	if d := cmp.Diff(want, got); d != "" {
		s.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// pin lets the next request of that method reach the controller only when its journal entry can no longer be
// settled: the entry's row is locked until free is called. The channel tells when that is so.
func (s *site) pin(method string) (pinned <-chan error, free func()) {
	s.Helper()
	c := storetest.Connect(s.T, s.db)
	done := make(chan error, 1)
	var meets func(*http.Request)
	var tx pgx.Tx
	meets = func(r *http.Request) {
		if r.Method != method || listens(r.URL.Path) || !s.meets.CompareAndSwap(&meets, nil) {
			return
		}
		var err error
		if tx, err = c.Begin(s.Context()); err == nil {
			_, err = tx.Exec(s.Context(), `select from journal_entry where state = 'processing' for share`)
		}
		done <- err
	}
	s.meets.Store(&meets)
	return done, func() {
		if err := tx.Rollback(s.Context()); err != nil {
			s.Error(err)
		}
	}
}

func TestKillBetweenAnswerAndCommitRepeatsNothing(t *testing.T) {
	t.Parallel()
	// Each case has a write, and a write that must not overtake it at the controller.
	for _, c := range []struct {
		method string
		given  func(api *child) (network, subnet string)
		write  func(api *child, network, subnet string)
		next   func(api *child, network, subnet string)
	}{
		{
			method: "POST",
			given:  func(*child) (string, string) { return "", "" },
			write:  func(api *child, _, _ string) { api.network("blue") },
			next: func(api *child, _, _ string) {
				all := api.must("GET", "/networking/v2.0/networks", nil)["networks"].([]any)
				api.subnet(all[0].(object)["id"].(string))
			},
		}, {
			method: "PUT",
			given:  func(api *child) (string, string) { return api.network("blue"), "" },
			write: func(api *child, network, _ string) {
				api.must("PUT", "/networking/v2.0/networks/"+network, object{"network": object{"name": "green"}})
			},
			next: func(api *child, network, _ string) { api.subnet(network) },
		}, {
			method: "DELETE",
			given: func(api *child) (string, string) {
				network := api.network("blue")
				return network, api.subnet(network)
			},
			write: func(api *child, _, subnet string) { api.must("DELETE", "/networking/v2.0/subnets/"+subnet, nil) },
			next: func(api *child, network, _ string) {
				api.must("DELETE", "/networking/v2.0/networks/"+network, nil)
			},
		},
	} {
		t.Run(c.method, func(t *testing.T) {
			t.Parallel()
			s, _ := sharedSite(t)
			api, victim := s.start("api"), s.start("relay,temporal")
			network, subnet := c.given(api)
			s.none("what was there before is mirrored", unfinished)
			pinned, free := s.pin(c.method)

			c.write(api, network, subnet)
			if err := <-pinned; err != nil {
				t.Fatal(err)
			}
			s.until("the worker has its answer and wants to commit", func() string {
				if len(s.rows(`select query from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)) == 0 {
					return "nobody waits for the pinned row"
				}
				return ""
			})
			victim.kill()
			c.next(api, network, subnet)
			free()
			written := s.writes(c.method)
			if len(written) != 1 || !written[0].Applied || s.rows(`select state from journal_entry order by taken_at desc nulls last`)[0] != "processing" {
				t.Fatalf("the kill missed its moment: %+v", written)
			}
			s.start("relay,temporal")
			s.mirrored()

			if again := slices.DeleteFunc(s.writes(c.method), func(w seen) bool { return w.ID != written[0].ID }); len(again) != 1 {
				t.Errorf("the controller was sent the same write again: %+v", again)
			}
		})
	}
}

func TestKillBetweenCommitAndRelayLosesNothing(t *testing.T) {
	t.Parallel()
	s, temporal := sharedSite(t)
	s.acquaint()
	api := s.start("api")
	api.agents()
	network := api.network("blue")
	api.subnet(network)
	port := api.create("port", portOf(network))
	lease := fmt.Sprint(api.lease(time.Hour, 2*time.Hour)["id"])

	api.kill()

	for _, id := range []string{contract.PortID(port), contract.LeaseID(lease)} {
		var missing *serviceerror.NotFound
		if _, err := temporal.DescribeWorkflowExecution(t.Context(), id, ""); !errors.As(err, &missing) {
			t.Fatalf("%s was delivered before the kill: %v", id, err)
		}
	}
	s.start("relay,temporal")
	s.mirrored()
	for id, want := range map[string]string{
		contract.PortID(port):   "DOWN for DHCP L2",
		contract.LeaseID(lease): "PENDING for start_lease",
	} {
		s.until(id+" says "+want, func() string {
			var why contract.Why
			v, err := temporal.QueryWorkflow(t.Context(), id, "", contract.QueryWhy)
			if err == nil {
				err = v.Get(&why)
			}
			says := why.State + " for"
			for _, w := range why.Waiting {
				says += " " + w.For
			}
			if says == want {
				return ""
			}
			return fmt.Sprintf("it says %q, %v", says, err)
		})
	}
	s.none("no note is left", `select workflow_id from note`)
}

// acquaint entrusts the empty database to Temporal. A relay that met a Temporal for the first time later on would
// leave a note for every row, and hide that one is lost.
func (s *site) acquaint() {
	s.Helper()
	relay := s.start("relay")
	s.until("the relay knows Temporal", func() string {
		if len(s.rows(`select id from temporal_namespace`)) == 0 {
			return "it has not met it"
		}
		return ""
	})
	relay.kill()
}
