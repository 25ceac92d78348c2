package servertest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/devstack/temporaltest"
	"berth/internal/notify/notifytest"
	"berth/internal/odl/odltest"
	"berth/internal/store/storetest"
)

// patience is the maximum time that Await waits. The value of patience is large because the machine that runs
// the tests may be slow.
const patience = 10 * time.Minute

// Deployment is a database, a stub of the controller and a stub of Nova, and the settings with which berth's
// processes connect to the database and the stubs. The database and the stubs of a Deployment continue to run
// when a process of berth is killed or restarted.
type Deployment struct {
	*testing.T
	Database   string
	Controller *odltest.Controller
	Nova       *notifytest.Nova
	Intercept  atomic.Pointer[func(*http.Request)] // runs before each request to the controller
	Settings   []string

	connMu sync.Mutex
	conn   *pgx.Conn // connection of Rows, nil before the first call
}

// NewDeployment creates a deployment that uses the given database. The parameter `temporal` contains the
// settings of a Temporal namespace. The settings in `temporal` override the other settings of the Deployment.
func NewDeployment(t *testing.T, db string, temporal ...string) *Deployment {
	t.Helper()
	s := &Deployment{
		T:          t,
		Database:   db,
		Controller: odltest.New(),
		Nova:       &notifytest.Nova{},
	}
	s.Nova.MirrorHypervisors(func(ctx context.Context) ([]string, error) {
		return devstack.RootProviders(ctx, db)
	})
	// The stub of the controller has the check network from the beginning. Without the check network, the
	// scheduled check of the controller could start a full sync during the test.
	s.Controller.ServeHTTP(
		httptest.NewRecorder(),
		httptest.NewRequestWithContext(t.Context(), http.MethodPost, odltest.BasePath+"/networks",
			strings.NewReader(`{"network":{"id":"`+Canary+`"}}`)),
	)
	controller := Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := s.Intercept.Load(); f != nil {
			(*f)(r)
		}
		s.Controller.ServeHTTP(w, r)
	}))
	s.Settings = append(
		[]string{
			"BERTH_AUTH=noauth",
			"BERTH_LISTEN=127.0.0.1:0",
			answersUnwatched,
			"BERTH_DATABASE_URL=" + db,
			"BERTH_ODL_URL=" + controller + odltest.BasePath,
			"BERTH_NOVA_URL=" + Serve(t, s.Nova),
			"TEMPORAL_CONFIG_FILE=" + os.DevNull,
		},
		temporal...)
	return s
}

// Serve serves the handler on a free port until the test ends, and returns the URL of the server.
func Serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server, err := devstack.Serve(0, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server.URL
}

// NewNamespace creates a Temporal namespace in which the sweep is paused (see PauseSweep). NewNamespace
// returns the namespace's client and the settings that select the namespace.
func NewNamespace(t *testing.T) (client.Client, []string) {
	t.Helper()
	n := temporaltest.New(t)
	PauseSweep(t, n.Client)
	return n.Client, []string{"TEMPORAL_ADDRESS=" + n.Address, "TEMPORAL_NAMESPACE=" + n.Name}
}

// PauseSweep creates the Temporal Schedule of the sweep, which restarts lost workflows, as paused. The sweep
// must not run in a test, because it would repair the damage that a fault causes, and so hide the damage from
// the test.
func PauseSweep(t *testing.T, c client.Client) {
	t.Helper()
	id := contract.MaintenanceID(contract.KeySweep)
	action := &client.ScheduleWorkflowAction{
		ID:        id,
		Workflow:  contract.Maintenance,
		TaskQueue: contract.TaskQueue(contract.Maintenance),
	}
	paused := client.ScheduleOptions{ID: id, Paused: true, Action: action}
	if _, err := c.ScheduleClient().Create(t.Context(), paused); err != nil {
		t.Fatal(err)
	}
}

// SharedDeployment returns a Deployment with its own database and Temporal namespace, on the PostgreSQL and
// Temporal servers that all tests share.
func SharedDeployment(t *testing.T) (*Deployment, client.Client) {
	t.Helper()
	c, settings := NewNamespace(t)
	return NewDeployment(t, storetest.URL(t), settings...), c
}

// Await calls the function f repeatedly until f returns "". As long as the condition `what` is not met, f
// returns a text that says what is still missing. If the condition is not met after ten minutes, Await fails
// the test and prints the text that f has returned last.
func (s *Deployment) Await(what string, f func() string) {
	s.Helper()
	missing := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if missing = f(); missing == "" {
			return
		}
	}
	s.Fatalf("condition not met within %s: %s; still missing: %s", patience, what, missing)
}
