package servertest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/devstack/temporaltest"
	"berth/internal/notify/notifytest"
	"berth/internal/odl/odltest"
	"berth/internal/store/storetest"
)

// patience is how long a fault may take to heal. Temporal gives a killed worker's task to another one after ten
// seconds, and the machine may be slow.
const patience = 10 * time.Minute

// site is what stands around berth's processes: rows, Temporal, a controller and a Nova, which outlive them.
type Deployment struct {
	*testing.T
	Database   string
	Controller *odltest.Controller
	Nova       *notifytest.Nova
	Intercept  atomic.Pointer[func(*http.Request)] // what a request meets on its way to the controller
	Settings   []string
}

// NewDeployment has a database and a namespace of its own; settings win over them.
func NewDeployment(t *testing.T, db string, temporal ...string) *Deployment {
	t.Helper()
	s := &Deployment{T: t, Database: db, Controller: odltest.New(), Nova: &notifytest.Nova{}}
	// With the canary there from the beginning, no full sync begins when a schedule's minute happens to be over.
	s.Controller.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, odltest.BasePath+"/networks",
		strings.NewReader(`{"network":{"id":"`+Canary+`"}}`)))
	controller := Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := s.Intercept.Load(); f != nil {
			(*f)(r)
		}
		s.Controller.ServeHTTP(w, r)
	}))
	s.Settings = append([]string{"BERTH_LISTEN=127.0.0.1:0", "BERTH_DATABASE_URL=" + db, "BERTH_ODL_URL=" + controller + odltest.BasePath,
		"BERTH_NOVA_URL=" + Serve(t, s.Nova), "TEMPORAL_CONFIG_FILE=" + os.DevNull}, temporal...)
	return s
}

func Serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server, err := devstack.Serve(0, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server.URL
}

// NewNamespace makes a namespace and the settings that lead there.
func NewNamespace(t *testing.T) (client.Client, []string) {
	t.Helper()
	n := temporaltest.New(t)
	PauseSweep(t, n.Client)
	return n.Client, []string{"TEMPORAL_ADDRESS=" + n.Address, "TEMPORAL_NAMESPACE=" + n.Name}
}

// PauseSweep lets nobody sweep: what a fault loses would be found, and the test would pass nevertheless.
func PauseSweep(t *testing.T, c client.Client) {
	t.Helper()
	id := contract.MaintenanceID(contract.KeySweep)
	if _, err := c.ScheduleClient().Create(t.Context(), client.ScheduleOptions{ID: id, Paused: true,
		Action: &client.ScheduleWorkflowAction{ID: id, Workflow: contract.Maintenance, TaskQueue: contract.TaskQueue(contract.Maintenance)},
	}); err != nil {
		t.Fatal(err)
	}
}

// SharedDeployment stands on the servers of the run, which nobody disturbs.
func SharedDeployment(t *testing.T) (*Deployment, client.Client) {
	t.Helper()
	c, settings := NewNamespace(t)
	return NewDeployment(t, storetest.URL(t), settings...), c
}

// Await waits until f has nothing to wait for any more; it answers what is missing.
func (s *Deployment) Await(what string, f func() string) {
	s.Helper()
	missing := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if missing = f(); missing == "" {
			return
		}
	}
	s.Fatalf("waited %s until %s: %s", patience, what, missing)
}
