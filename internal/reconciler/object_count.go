package reconciler

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/contract"
	"berth/internal/store/outbox"
)

// objectCount counts the ports and leases by status. A comparison reads the rows of all ports and leases
// anyway, so the count needs no query.
type objectCount struct {
	gauges map[string]*prometheus.GaugeVec // by prefix of the workflow ID
	counts map[string]map[string]float64   // by prefix of the workflow ID and status
}

func newObjectCount(metrics prometheus.Registerer) *objectCount {
	c := &objectCount{gauges: map[string]*prometheus.GaugeVec{
		contract.UUIDPrefix(contract.Port): prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "berth_ports",
			Help: "Ports by status at the last comparison of the rows with Temporal. DELETED are deleted ports with undelivered events for Nova. Only the process that compares exports this metric.",
		}, []string{"status"}),
		contract.UUIDPrefix(contract.Lease): prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "berth_leases",
			Help: "Leases that are not completed, by status, at the last comparison of the rows with Temporal. Only the process that compares exports this metric.",
		}, []string{"status"}),
	}}
	for _, g := range c.gauges {
		metrics.MustRegister(g)
	}
	return c
}

// objectStatuses are the statuses whose count is exported even if it is 0, by prefix of the workflow ID.
var objectStatuses = map[string][]string{
	contract.UUIDPrefix(contract.Port): {"ACTIVE", "BUILD", "DOWN", "ERROR"},
	contract.UUIDPrefix(contract.Lease): {
		"CREATING",
		"PENDING",
		"STARTING",
		"ACTIVE",
		"TERMINATING",
		"UPDATING",
		"DELETING",
		"ERROR",
	},
}

// begin forgets the counts of the previous comparison.
func (c *objectCount) begin() {
	c.counts = map[string]map[string]float64{}
	for prefix, statuses := range objectStatuses {
		c.counts[prefix] = map[string]float64{}
		for _, s := range statuses {
			c.counts[prefix][s] = 0
		}
	}
}

// add counts rows.
func (c *objectCount) add(rows map[string]outbox.Row) {
	for id, row := range rows {
		kind, _, _ := strings.Cut(id, "/")
		if byStatus, ok := c.counts[kind+"/"]; ok {
			byStatus[row.Attributes.Status]++
		}
	}
}

// publish sets the gauges to the counts of a complete comparison.
func (c *objectCount) publish() {
	for prefix, g := range c.gauges {
		g.Reset()
		for status, n := range c.counts[prefix] {
			g.WithLabelValues(status).Set(n)
		}
	}
}

// reset removes the values, because from now on another process compares.
func (c *objectCount) reset() {
	for _, g := range c.gauges {
		g.Reset()
	}
}
