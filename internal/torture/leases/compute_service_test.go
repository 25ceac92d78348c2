package leases

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/notify/notifytest"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// The hostname of a hypervisor is often an FQDN or the UUID of an Ironic node, but Nova adds a host to an
// aggregate only by the host name of the hypervisor's compute service.
func TestLease_HostsInAggregatesByComputeService(t *testing.T) {
	t.Parallel()
	d := newLeaseDeployment(t)
	d.StartWorker("relay,temporal")
	g := d.newHostGroup(t, 0)
	node := uuid.NewString()
	d.Nova.PutHypervisor(notifytest.Hypervisor{Hostname: node, Service: "ironic-1", Type: "ironic"})
	for _, hostname := range []string{"cmp-1.example.org", node, "cmp-3.example.org"} {
		d.api.Must("POST", "/placement/resource_providers", servertest.Object{"name": hostname})
		host := d.api.Must("POST", "/reservation/v1/os-hosts", servertest.Object{"name": hostname, "row": g.name})["host"].(servertest.Object)
		g.hosts = append(g.hosts, fmt.Sprint(host["service_name"]))
		g.hostIDs = append(g.hostIDs, fmt.Sprint(host["id"]))
	}
	if got := fmt.Sprint(g.hosts); got != "[cmp-1 ironic-1 cmp-3]" {
		t.Fatalf("compute services of the registered hosts: got %s, want [cmp-1 ironic-1 cmp-3]", got)
	}
	if code, body, _ := d.api.Do("POST", "/reservation/v1/os-hosts", servertest.Object{"name": "unknown.example.org"}); code != http.StatusNotFound {
		t.Errorf("register a host that Nova does not know: got status %d, body %v; want 404", code, body)
	}

	l := g.createLease(time.Hour, 2*time.Hour, g.hostReservation(2, 2))
	l.startNow()
	l.awaitStatus("ACTIVE")
	l.awaitAggregates("a:1,2 freepool:3")
	g.Nova.AddServer(notifytest.Server{Host: "cmp-1", Name: g.name})
	l.endNow()
	l.awaitStatus("TERMINATED")
	l.awaitAggregates("freepool:1,2,3")
	if n := g.serverCount(); n != 0 {
		t.Errorf("servers on the hosts of a lease that has ended: got %d, want 0", n)
	}

	// Now the row of the host has the wrong compute service, as if the host had been registered with its
	// hostname as its compute service. The lease starts when berth has learnt the right compute service.
	storetest.Exec(t, d.Database,
		`update host set service_name = hostname where hostname = 'cmp-3.example.org'`)
	l = g.createLease(time.Hour, 2*time.Hour, servertest.Object{
		"resource_type":         "physical:host",
		"min":                   1,
		"max":                   1,
		"hypervisor_properties": `["=","$hypervisor_hostname","cmp-3.example.org"]`,
		"resource_properties":   "",
	})
	l.startNow()
	d.Await("the lease waits for Nova", func() string {
		if reason := fmt.Sprint(l.get()["berth:why"].(servertest.Object)["failed_calls"]); reason == "[]" {
			return reason
		}
		return ""
	})
	d.runSweep()
	l.awaitStatus("ACTIVE")
	l.awaitAggregates("a:3 freepool:1,2")
	d.AwaitNone("no change of the pool is pending", `select service_name from host_pooling`)
}
