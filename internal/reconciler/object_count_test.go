package reconciler

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestComparison_CountsPortsByStatusUntilAnotherProcessCompares(t *testing.T) {
	t.Parallel()
	f, registry := newFixture(t), prometheus.NewRegistry()
	r := New(Options{
		DB:        f.store.DB,
		Store:     f.store.Outbox,
		Client:    f.namespace.Client,
		Namespace: f.namespace.Name,
		Metrics:   registry,
	})
	c := newComparison(r)
	for range 2 { // the second comparison counts anew
		if _, err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := `
# HELP berth_ports Ports by status at the last comparison of the rows with Temporal. DELETED are deleted ports with undelivered events for Nova. Only the process that compares exports this metric.
# TYPE berth_ports gauge
berth_ports{status="ACTIVE"} 0
berth_ports{status="BUILD"} 0
berth_ports{status="DOWN"} 1
berth_ports{status="ERROR"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "berth_ports"); err != nil {
		t.Errorf("ports by status: %v", err)
	}
	r.objects.reset()
	if n, err := testutil.GatherAndCount(registry, "berth_ports", "berth_leases"); n != 0 || err != nil {
		t.Errorf("after another process has begun to compare: got %d values, error %v; want none", n, err)
	}
}
