package kills

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
	"berth/internal/torture/harness"
)

type controllerRequest = odltest.Request

// controllerWrites lists the HTTP requests with the given method that the stub of the controller received,
// except requests for event subscriptions and for the check network, with which berth notices that the
// controller has lost its data.
func controllerWrites(s *servertest.Deployment, method string) []controllerRequest {
	return slices.DeleteFunc(s.Controller.Requests(), func(w controllerRequest) bool {
		return w.Method != method || w.ID == servertest.Canary || isEventSubscription(w.Path)
	})
}

// isEventSubscription reports whether a request subscribes to change events of the controller.
func isEventSubscription(path string) bool { return strings.HasPrefix(path, "/restconf/") }

// lockEntryDuringRequest intercepts berth's next request with the given HTTP method to the controller, and
// locks the row of the request's journal entry before the request reaches the controller. berth cannot
// complete the locked journal entry until the test calls `unlock`. The returned channel `locked` receives nil
// when the row is locked, or the error if it cannot be locked.
func lockEntryDuringRequest(s *servertest.Deployment, method string) (locked <-chan error, unlock func()) {
	s.Helper()
	c := storetest.Connect(s.T, s.Database)
	done := make(chan error, 1)
	var intercept func(*http.Request)
	var tx pgx.Tx
	intercept = func(r *http.Request) {
		if r.Method != method || isEventSubscription(r.URL.Path) ||
			!s.Intercept.CompareAndSwap(&intercept, nil) {
			return
		}
		var err error
		if tx, err = c.Begin(s.Context()); err == nil {
			_, err = tx.Exec(s.Context(), `select from journal_entry where state = 'processing' for share`)
		}
		done <- err
	}
	s.Intercept.Store(&intercept)
	return done, func() {
		if err := tx.Rollback(s.Context()); err != nil {
			s.Error(err)
		}
	}
}

func TestJournalEntry_SentOnceThoughWorkerKilledBeforeCommit(t *testing.T) {
	t.Parallel()
	// In each case, the function `write` makes a change, and the function `next` makes a second change that
	// must reach the controller after the first one.
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
			s.AwaitNone("all earlier changes are mirrored", servertest.UnfinishedEntries)
			locked, unlock := lockEntryDuringRequest(s, c.method)

			c.write(api, network, subnet)
			if err := <-locked; err != nil {
				t.Fatal(err)
			}
			s.Await("the worker has the answer and waits for the locked row", func() string {
				blocked := s.Rows(`select query from pg_stat_activity
					where datname = current_database() and wait_event_type = 'Lock'`)
				if len(blocked) == 0 {
					return "no connection waits for a lock"
				}
				return ""
			})
			victim.Kill()
			// PostgreSQL would still commit the transaction of the killed worker, so the test ends the
			// connection of this transaction, too.
			s.Rows(
				`select pg_terminate_backend(pid, 60000)::text from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
			)
			c.next(api, network, subnet)
			unlock()
			written := controllerWrites(s, c.method)
			if len(written) != 1 || !written[0].Applied ||
				s.Rows(`select state from journal_entry order by taken_at desc nulls last`)[0] != "processing" {
				t.Fatalf(
					"kill the worker between the controller's answer and the commit: the controller received %+v, want one applied write of an entry that is still processing",
					written,
				)
			}
			s.StartWorker("relay,temporal")
			s.AwaitMirroredAndAudited(api)

			again := slices.DeleteFunc(controllerWrites(s, c.method), func(w controllerRequest) bool { return w.ID != written[0].ID })
			if len(again) != 1 {
				t.Errorf(
					"start another worker after the kill: the controller received the writes %+v, want exactly one",
					again,
				)
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
	lease := fmt.Sprint(harness.CreateHostLease(api, time.Hour, 2*time.Hour)["id"])

	api.Kill()

	for _, id := range []string{contract.PortID(port), contract.LeaseID(lease)} {
		var missing *serviceerror.NotFound
		if _, err := temporal.DescribeWorkflowExecution(t.Context(), id, ""); !errors.As(err, &missing) {
			t.Fatalf("describe workflow %s before a relay runs: got error %v, want NotFound", id, err)
		}
	}
	s.AwaitMirroredAndAudited(s.StartWorker("api,relay,temporal"))
	for id, want := range map[string]string{
		contract.PortID(port):   "DOWN for DHCP L2",
		contract.LeaseID(lease): "PENDING for start_lease",
	} {
		s.Await(id+" is "+want, func() string {
			var why contract.Why
			v, err := temporal.QueryWorkflow(t.Context(), id, "", contract.QueryWhy)
			if err == nil {
				err = v.Get(&why)
			}
			got := why.State + " for"
			for _, w := range why.Waiting {
				got += " " + w.For
			}
			if got == want {
				return ""
			}
			return fmt.Sprintf("got %q, %v", got, err)
		})
	}
	s.AwaitNone("all notes are delivered", `select workflow_id from note`)
}

// bindTemporalNamespace binds the database to the Temporal namespace while the database is empty. Otherwise
// the first relay would bind the database later, when the database has rows, and would enqueue a note (outbox
// row) for every row. A note that the binding enqueues would hide that berth has lost an earlier note.
func bindTemporalNamespace(s *servertest.Deployment) {
	s.Helper()
	relay := s.StartWorker("relay")
	s.Await("the database is bound to the namespace", func() string {
		if len(s.Rows(`select id from temporal_namespace`)) == 0 {
			return "it is not"
		}
		return ""
	})
	relay.Kill()
}
