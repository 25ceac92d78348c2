package kills

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"berth/internal/server/servertest"
	"berth/internal/torture/harness"
)

// A process with the role api on a standby answers reads with the rows of the standby and refuses writes. It
// is not ready, so a load balancer that asks /readyz sends it no request.
func TestStandby_ProcessAnswersReadsAndIsNotReady(t *testing.T) {
	t.Parallel()
	primary := harness.StartOwnPostgres(t)
	standby, err := primary.StartStandby(t.Context(), filepath.Join(filepath.Dir(servertest.DataFolder(t)), "standby"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Stop)
	_, settings := servertest.NewNamespace(t)
	id := servertest.NewDeployment(t, primary.URL, settings...).StartWorker("api").CreateNetwork("blue")
	s := servertest.NewDeployment(t, standby.URL, settings...)
	s.Await("the standby has the network", func() string {
		if got := s.Rows(`select id::text from network`); len(got) != 1 || got[0] != id {
			return fmt.Sprint("networks on the standby: ", got)
		}
		return ""
	})

	c := s.StartWorker("api")

	for _, want := range []struct {
		method, path string
		status       int
	}{
		{http.MethodGet, "/networking/v2.0/networks", http.StatusOK},
		{http.MethodGet, "/networking/v2.0/networks/" + id, http.StatusOK},
		{http.MethodGet, "/placement/resource_providers", http.StatusOK},
		{http.MethodGet, "/placement/allocation_candidates?resources=VCPU:1", http.StatusOK},
		{http.MethodGet, "/reservation/v1/leases", http.StatusOK},
		{http.MethodPost, "/networking/v2.0/networks", http.StatusServiceUnavailable},
		{http.MethodGet, "/readyz", http.StatusServiceUnavailable},
	} {
		status, answer, err := c.Do(want.method, want.path, servertest.Object{"network": servertest.Object{"name": "red"}})
		if err != nil || status != want.status {
			t.Errorf("%s %s of a process on a standby: got %d %v, error %v; want %d",
				want.method, want.path, status, answer, err, want.status)
		}
	}
}
