package leases

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/notify/notifytest"
	"berth/internal/server/servertest"
	"berth/internal/torture/harness"
)

// leaseDeployment is a deployment of berth with stubs of Nova and Neutron on which a test can make selected
// requests fail.
type leaseDeployment struct {
	*servertest.Deployment
	*faultInjector
	api      *servertest.Worker
	neutron  *notifytest.Neutron
	temporal client.Client
}

// newLeaseDeployment creates a deployment and starts a process with the role api. The parameter `settings` of
// newLeaseDeployment overrides default settings of the deployment.
func newLeaseDeployment(t *testing.T, settings ...string) *leaseDeployment {
	t.Helper()
	s, c := servertest.SharedDeployment(t)
	d := &leaseDeployment{
		Deployment:    s,
		faultInjector: &faultInjector{},
		neutron:       &notifytest.Neutron{},
		temporal:      c,
	}
	s.Settings = append(
		append(
			s.Settings, "BERTH_NOVA_URL="+servertest.Serve(t, d.wrap(s.Nova)),
			"BERTH_NEUTRON_URL="+servertest.Serve(t, d.wrap(d.neutron)), "BERTH_LEASE_PATIENCE=5m",
		),
		settings...)
	d.api = s.StartWorker("api")
	return d
}

// runSweep runs the Maintenance workflow (the sweep) once and waits until the workflow has ended.
func (d *leaseDeployment) runSweep() {
	d.Helper()
	run, err := d.temporal.ExecuteWorkflow(
		d.Context(),
		client.StartWorkflowOptions{ID: contract.MaintenanceID("by hand"),
			TaskQueue: contract.TaskQueue(contract.Maintenance)},
		contract.Maintenance,
		contract.Input{Key: contract.KeySweep},
	)
	if err == nil {
		err = run.Get(d.Context(), nil)
	}
	if err != nil {
		d.Fatal(err)
	}
}

// faultInjector answers selected HTTP requests to a stub with an error status, so that these requests do not
// reach the stub.
type faultInjector struct {
	mu     sync.Mutex
	faults []*injectedFault
}

// injectedFault is a fault for the HTTP requests that have the method `method` and contain the string `text`
// in their path, query or body.
type injectedFault struct {
	method, text string
	status, hits int
}

// injectFault makes the HTTP requests with the given method and text fail with the given status until the
// test calls `remove`. The returned function `hits` returns the number of requests that the injected fault
// has made fail.
func (i *faultInjector) injectFault(method, text string, status int) (hits func() int, remove func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	injected := &injectedFault{method: method, text: text, status: status}
	i.faults = append(i.faults, injected)
	return func() int {
			i.mu.Lock()
			defer i.mu.Unlock()
			return injected.hits
		}, func() {
			i.mu.Lock()
			defer i.mu.Unlock()
			i.faults = slices.DeleteFunc(i.faults,
				func(other *injectedFault) bool { return other == injected })
		}
}

// wrap returns an HTTP handler that answers a request with the injected fault that matches the request, or
// calls the given handler if no fault matches.
func (i *faultInjector) wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(raw))
		if status := i.match(r.Method, r.URL.RequestURI()+" "+string(raw)); status != 0 {
			w.WriteHeader(status)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// match returns the status of the first fault that matches a request, or 0 if none matches.
func (i *faultInjector) match(method, text string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, f := range i.faults {
		if f.method == method && strings.Contains(text, f.text) {
			f.hits++
			return f.status
		}
	}
	return 0
}

// notificationTypes returns the types of the notifications about a lease, in the order in which the
// notifications arrived at the webhook. If a notification arrived more than once, only its first arrival
// counts.
func notificationTypes(listener *notifytest.Webhook, lease any) (types []string) {
	ids := map[string]bool{}
	for _, n := range listener.Notifications() {
		if n.Payload["lease_id"] == lease && !ids[n.ID] {
			ids[n.ID], types = true, append(types, n.Type)
		}
	}
	return types
}

// setDatesSoon makes a lease start in a few seconds and end the given duration later. The start is still in
// the present minute or in the future when the API reads the request, as the API demands.
func setDatesSoon(c *servertest.Worker, path string, duration time.Duration) {
	c.T.Helper()
	for lead := 2 * time.Second; ; lead *= 2 {
		code, answer, err := c.Do("PUT", path, servertest.Object{
			"start_date": harness.TimeIn(lead),
			"end_date":   harness.TimeIn(lead + duration),
		})
		switch {
		case err == nil && code < http.StatusMultipleChoices:
			return
		// 400: the date was over when the API read the request
		case err != nil || code != http.StatusBadRequest || lead > 10*time.Minute:
			c.T.Fatalf("set the start date of %s to a time in %s: got %d %v, error %v; want a success",
				path, lead, code, answer, err)
		}
	}
}
