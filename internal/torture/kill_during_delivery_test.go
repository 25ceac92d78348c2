package torture

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/api/serviceerror"

	"berth/internal/contract"
	"berth/internal/odl/odltest"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

type seen = odltest.Request

// controllerWrites are the requests of that method by which the controller's objects change, as far as it saw them.
func controllerWrites(s *servertest.Deployment, method string) []seen {
	return slices.DeleteFunc(s.Controller.Requests(), func(w seen) bool { return w.Method != method || w.ID == servertest.Canary || listens(w.Path) })
}

// listens tells whether a request is of somebody who wants to hear what the controller says of its own accord.
func listens(path string) bool { return strings.HasPrefix(path, "/restconf/") }

// lockEntryDuringRequest lets the next request of that method reach the controller only when its journal entry can no longer be
// settled: the entry's row is locked until free is called. The channel tells when that is so.
func lockEntryDuringRequest(s *servertest.Deployment, method string) (pinned <-chan error, free func()) {
	s.Helper()
	c := storetest.Connect(s.T, s.Database)
	done := make(chan error, 1)
	var meets func(*http.Request)
	var tx pgx.Tx
	meets = func(r *http.Request) {
		if r.Method != method || listens(r.URL.Path) || !s.Intercept.CompareAndSwap(&meets, nil) {
			return
		}
		var err error
		if tx, err = c.Begin(s.Context()); err == nil {
			_, err = tx.Exec(s.Context(), `select from journal_entry where state = 'processing' for share`)
		}
		done <- err
	}
	s.Intercept.Store(&meets)
	return done, func() {
		if err := tx.Rollback(s.Context()); err != nil {
			s.Error(err)
		}
	}
}

func TestJournalEntry_SentOnceThoughWorkerKilledBeforeCommit(t *testing.T) {
	t.Parallel()
	// Each case has a write, and a write that must not overtake it at the controller.
	for _, c := range []struct {
		method string
		given  func(api *servertest.Worker) (network, subnet string)
		write  func(api *servertest.Worker, network, subnet string)
		next   func(api *servertest.Worker, network, subnet string)
	}{
		{
			method: "POST",
			given:  func(*servertest.Worker) (string, string) { return "", "" },
			write:  func(api *servertest.Worker, _, _ string) { api.CreateNetwork("blue") },
			next: func(api *servertest.Worker, _, _ string) {
				all := api.Must("GET", "/networking/v2.0/networks", nil)["networks"].([]any)
				api.CreateSubnet(all[0].(servertest.Object)["id"].(string))
			},
		}, {
			method: "PUT",
			given:  func(api *servertest.Worker) (string, string) { return api.CreateNetwork("blue"), "" },
			write: func(api *servertest.Worker, network, _ string) {
				api.Must("PUT", "/networking/v2.0/networks/"+network, servertest.Object{"network": servertest.Object{"name": "green"}})
			},
			next: func(api *servertest.Worker, network, _ string) { api.CreateSubnet(network) },
		}, {
			method: "DELETE",
			given: func(api *servertest.Worker) (string, string) {
				network := api.CreateNetwork("blue")
				return network, api.CreateSubnet(network)
			},
			write: func(api *servertest.Worker, _, subnet string) {
				api.Must("DELETE", "/networking/v2.0/subnets/"+subnet, nil)
			},
			next: func(api *servertest.Worker, network, _ string) {
				api.Must("DELETE", "/networking/v2.0/networks/"+network, nil)
			},
		},
	} {
		t.Run(c.method, func(t *testing.T) {
			t.Parallel()
			s, _ := servertest.SharedDeployment(t)
			api, victim := s.StartWorker("api"), s.StartWorker("relay,temporal")
			network, subnet := c.given(api)
			s.AwaitNone("what was there before is mirrored", servertest.UnfinishedEntries)
			pinned, free := lockEntryDuringRequest(s, c.method)

			c.write(api, network, subnet)
			if err := <-pinned; err != nil {
				t.Fatal(err)
			}
			s.Await("the worker has its answer and wants to commit", func() string {
				if len(s.Rows(`select query from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)) == 0 {
					return "nobody waits for the pinned row"
				}
				return ""
			})
			victim.Kill()
			c.next(api, network, subnet)
			free()
			written := controllerWrites(s, c.method)
			if len(written) != 1 || !written[0].Applied || s.Rows(`select state from journal_entry order by taken_at desc nulls last`)[0] != "processing" {
				t.Fatalf("the kill missed its moment: %+v", written)
			}
			s.StartWorker("relay,temporal")
			s.AwaitMirrored()

			if again := slices.DeleteFunc(controllerWrites(s, c.method), func(w seen) bool { return w.ID != written[0].ID }); len(again) != 1 {
				t.Errorf("the controller was sent the same write again: %+v", again)
			}
		})
	}
}

func TestNotes_DeliveredThoughAPIKilledAfterCommit(t *testing.T) {
	t.Parallel()
	s, temporal := servertest.SharedDeployment(t)
	bindTemporalNamespace(s)
	api := s.StartWorker("api")
	api.RegisterAgents()
	network := api.CreateNetwork("blue")
	api.CreateSubnet(network)
	port := api.Create("port", servertest.PortBody(network))
	lease := fmt.Sprint(createHostLease(api, time.Hour, 2*time.Hour)["id"])

	api.Kill()

	for _, id := range []string{contract.PortID(port), contract.LeaseID(lease)} {
		var missing *serviceerror.NotFound
		if _, err := temporal.DescribeWorkflowExecution(t.Context(), id, ""); !errors.As(err, &missing) {
			t.Fatalf("%s was delivered before the kill: %v", id, err)
		}
	}
	s.StartWorker("relay,temporal")
	s.AwaitMirrored()
	for id, want := range map[string]string{
		contract.PortID(port):   "DOWN for DHCP L2",
		contract.LeaseID(lease): "PENDING for start_lease",
	} {
		s.Await(id+" says "+want, func() string {
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
	s.AwaitNone("no note is left", `select workflow_id from note`)
}

// bindTemporalNamespace entrusts the empty database to Temporal. A relay that met a Temporal for the first time later on would
// leave a note for every row, and hide that one is lost.
func bindTemporalNamespace(s *servertest.Deployment) {
	s.Helper()
	relay := s.StartWorker("relay")
	s.Await("the relay knows Temporal", func() string {
		if len(s.Rows(`select id from temporal_namespace`)) == 0 {
			return "it has not met it"
		}
		return ""
	})
	relay.Kill()
}
