package leases

import (
	"net/http"
	"testing"
	"time"

	"berth/internal/contract"
	"berth/internal/server/servertest"
)

func TestHosts_PooledAfterNovaOutage(t *testing.T) {
	t.Parallel()
	d := newLeaseDeployment(t)
	d.StartWorker("relay,temporal")
	hits, removeFault := d.injectFault("GET", "/os-aggregates", http.StatusServiceUnavailable)
	g := d.newHostGroup(t, 3) // the API does not wait for Nova
	g.awaitHits(hits, 4)
	if code, _, _ := d.api.Do("DELETE", "/reservation/v1/os-hosts/"+g.hostIDs[2], nil); code != http.StatusNoContent {
		t.Errorf("DELETE a host during an outage of Nova: got status %d, want 204", code)
	}
	removeFault()
	awaitPool := func(want string) {
		t.Helper()
		d.Await("Nova's aggregates are "+want, func() string {
			if got := g.hostAggregates(); got != want {
				return "they are " + got
			}
			return ""
		})
		d.AwaitNone("no change of the pool is pending", `select service_name from host_pooling`)
	}
	awaitPool("freepool:1,2")

	l := g.createLease(time.Hour, 2*time.Hour, g.hostReservation(2, 2))
	if code, body, _ := d.api.Do("DELETE", "/reservation/v1/os-hosts/"+g.hostIDs[0], nil); code != http.StatusConflict {
		t.Errorf("DELETE a reserved host: got status %d, body %v; want 409", code, body)
	}
	l.startNow()
	l.awaitStatus("ACTIVE")
	l.awaitAggregates("a:1,2")
	d.api.Must("DELETE", l.path, nil)
	l.awaitDeleted()
	awaitPool("freepool:1,2")
	d.api.Must("DELETE", "/reservation/v1/os-hosts/"+g.hostIDs[0], nil)
	awaitPool("freepool:2")
	d.api.Must("POST", "/reservation/v1/os-hosts", servertest.Object{"name": g.hosts[0], "row": g.name})
	awaitPool("freepool:1,2")
	if id := contract.PoolID(g.hosts[0]); contract.Key(id) != g.hosts[0] {
		t.Errorf("contract.Key for the workflow ID %s: want the name of the host", id)
	}
}
