package leases

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/notify/notifytest"
	"berth/internal/server/servertest"
	"berth/internal/torture/harness"
)

// TestLease_WithNovaAndNeutron runs lease scenarios concurrently on one deployment. A fault that one lease
// scenario injects must affect no other scenario, because the scenarios share one deployment.
func TestLease_WithNovaAndNeutron(t *testing.T) {
	t.Parallel()
	runScenarios(t, newLeaseDeployment(t), map[string]leaseScenario{
		"hosts leave the free pool at the start and return without servers at the end": {
			2,
			hostLeaseLifecycle,
		},
		"instance reservation has flavor, inventory and server group while the lease is active": {
			2,
			instanceLeaseLifecycle,
		},
		"server with an unconfirmed resize is deleted at the end": {
			1,
			resizedServerIsDeleted,
		},
		"floating IPs are created at the start and deleted at the end": {
			0,
			floatingIPLeaseLifecycle,
		},
		"network of a segment is created at the start and deleted at the end": {
			0,
			segmentLeaseLifecycle,
		},
		"lease without reservations starts and ends": {
			0,
			emptyLeaseLifecycle,
		},
		"start is retried after a Nova error": {
			1,
			startRetriedAfterNovaError,
		},
		"deletion interrupts a start that is retried": {
			1,
			leaseDeletedDuringStart,
		},
		"deletion interrupts an end that is retried": {
			1,
			leaseDeletedDuringEnd,
		},
		"deletion frees a host while another host is not released": {
			2,
			hostFreedWhileDeletionIsRetried,
		},
		"active lease can grow and cannot shrink": {
			3,
			activeLeaseGrows,
		},
		"active floating IP reservation grows after a Neutron error": {
			0,
			floatingIPReservationGrows,
		},
		"invalid update changes nothing": {
			2,
			invalidUpdates,
		},
	})
}

// TestLease_ShortRetryTimeout runs lease scenarios in which berth retries failed calls to Nova and Neutron
// for only 4 s.
func TestLease_ShortRetryTimeout(t *testing.T) {
	t.Parallel()
	runScenarios(t, newLeaseDeployment(t, "BERTH_LEASE_PATIENCE=4s"), map[string]leaseScenario{
		"one reservation that fails puts the whole lease into error": {3, oneReservationFailsToStart},
		"one host that fails releases all hosts at the end":          {3, oneHostFailsToStart},
		"deletion is retried beyond the retry timeout":               {1, deletionRetriedUntilDone},
		"server that cannot be deleted keeps the host reserved":      {1, serversCannotBeDeleted},
		"slow end delays only the next lease of the same host":       {3, nextLeaseWaitsForSlowEnd},
		"failed end blocks only the leases of its hosts":             {3, failedEndBlocksOnlyItsHosts},
		"snapshot that fails affects only its event":                 {1, snapshotFails},
	})
}

// leaseScenario is a test function and the number of hosts that the test function needs.
type leaseScenario struct {
	hosts int
	run   func(*hostGroup)
}

// runScenarios starts a berth process with the roles relay and temporal. runScenarios runs each lease
// scenario as a parallel subtest with its own hosts.
func runScenarios(t *testing.T, d *leaseDeployment, all map[string]leaseScenario) {
	t.Helper()
	d.StartWorker("relay,temporal")
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.run(d.newHostGroup(t, s.hosts))
		})
	}
}

// hostLeaseLifecycle starts a lease of two hosts, and then ends it. At the start, berth must delete a server
// of another project from the hosts. Before the end, berth must take snapshots of the lease's own servers,
// and at the end, it must delete these servers.
func hostLeaseLifecycle(g *hostGroup) {
	l := g.createLease(time.Hour, 3*time.Hour, servertest.Object{
		"resource_type":         "physical:host",
		"min":                   2,
		"max":                   2,
		"hypervisor_properties": "",
		"resource_properties":   g.hostFilter(),
		"before_end":            "snapshot",
	})
	l.awaitAggregates("freepool:1,2")
	g.Nova.AddServer(notifytest.Server{Host: g.hosts[0], Name: "foreign server"})
	l.startNow()
	l.awaitStatus("ACTIVE")
	l.awaitAggregates("a:1,2")
	if n := g.serverCount(); n != 0 {
		g.Errorf("count servers of other projects on the hosts of an ACTIVE lease: got %d, want 0", n)
	}
	g.Nova.AddServer(notifytest.Server{Host: g.hosts[0], Name: g.name})
	g.Nova.AddServer(notifytest.Server{Host: g.hosts[1], Name: g.name, PollsUntilGone: 3})
	g.api.Must("PUT", l.path, servertest.Object{"before_end_date": harness.TimeIn(time.Second)})
	g.await("the snapshot exists", func() string {
		if images := g.Nova.ComputeState().Images; !slices.Contains(images, "reserved_"+g.name) {
			return fmt.Sprint(images)
		}
		return ""
	})
	l.awaitEvent("before_end_lease", "DONE")
	g.api.Must("PUT", l.path, servertest.Object{"end_date": harness.TimeIn(4 * time.Hour)})
	l.awaitEvent("before_end_lease", "UNDONE") // a later end date schedules the before_end_lease event again
	l.endNow()
	l.awaitStatus("TERMINATED")
	if got := l.statuses(); got != "TERMINATED DONE DONE deleted" || g.serverCount() != 0 {
		g.Errorf(
			"end a lease of hosts: got statuses %s and %d servers, want TERMINATED DONE DONE deleted and 0 servers",
			got,
			g.serverCount(),
		)
	}
	l.awaitAggregates("freepool:1,2")
	g.expectStatus(http.StatusBadRequest, "PUT", l.path, servertest.Object{"end_date": harness.TimeIn(5 * time.Hour)})
	g.api.Must("PUT", l.path, servertest.Object{"name": "history"})
	g.api.Must("DELETE", l.path, nil)
	l.awaitDeleted()
}

// instanceLeaseLifecycle starts and ends a lease of two instances. The stub of Nova boots one of the two
// reserved instances.
func instanceLeaseLifecycle(g *hostGroup) {
	l := g.createLease(time.Hour, 2*time.Hour, g.instanceReservation(2, "False"))
	id := l.reservations[0]
	class := "CUSTOM_RESERVATION_" + strings.ToUpper(strings.ReplaceAll(id, "-", "_"))
	l.startNow()
	l.awaitStatus("ACTIVE")
	l.awaitAggregates("a:1,2 freepool:1,2")
	f, groups := g.flavorAndGroups(id)
	if f == nil || len(f.Access) != 1 || f.Specs["resources:"+class] != "1" || f.Specs["affinity_id"] == "" ||
		groups != 1 {
		g.Errorf(
			"start a lease of instances: got flavor %+v and %d server groups at Nova, want a flavor for the reservation and 1",
			f,
			groups,
		)
	}
	want := []string{"blazar_" + g.hosts[0] + " 1 1", "blazar_" + g.hosts[1] + " 1 1"}
	inventory := func() []string {
		return g.deployment().Rows(`
			select p.name || ' ' || i.total || ' ' || i.max_unit
			from inventory i join provider p on p.id = i.provider_id join resource_class c on c.id = i.class_id
			where c.name = $1
			order by p.name`, class)
	}
	if got := inventory(); !slices.Equal(got, want) {
		g.Errorf(
			"start a lease of instances: got the reserved inventory %v, want one instance on each of the two hosts",
			got,
		)
	}
	// The test does in Placement what Nova does for a server: the test allocates the reserved inventory, and
	// deletes the allocation after the server is deleted.
	server := g.Nova.AddServer(notifytest.Server{Host: g.hosts[0], Flavor: id, PollsUntilGone: 2})
	nested := g.deployment().Rows(`select uuid from provider where name = $1`, "blazar_"+g.hosts[0])[0]
	allocations := func(generation, amount int) servertest.Object {
		o := servertest.Object{
			"allocations":         servertest.Object{},
			"project_id":          "p",
			"user_id":             "u",
			"consumer_generation": nil,
		}
		if amount > 0 {
			o["allocations"] = servertest.Object{
				nested: servertest.Object{"resources": servertest.Object{class: amount}},
			}
		}
		if generation > 0 {
			o["consumer_generation"] = generation
		}
		return o
	}
	g.api.Must("PUT", "/placement/allocations/"+server.ID, allocations(0, 1))
	g.expectStatus(http.StatusConflict, "PUT", "/placement/allocations/"+uuid.NewString(), allocations(0, 1))
	l.endNow()
	g.await("the server is deleted",
		func() string { return harness.WaitingFor("the server exists", g.serverCount() == 0) })
	g.api.Must("PUT", "/placement/allocations/"+server.ID, allocations(1, 0))
	l.awaitStatus("TERMINATED")
	if f, groups := g.flavorAndGroups(id); f != nil || groups != 0 || len(inventory()) != 0 {
		g.Errorf(
			"end a lease of instances: got flavor %+v, %d server groups and the reserved inventory %v, want none of them",
			f, groups, inventory(),
		)
	}
	if left := g.deployment().Rows(`select name from resource_class where name = $1`, class); len(left) != 0 {
		g.Error(
			"the reservation's resource class still exists after the end of the lease, want it to be deleted",
		)
	}
	l.awaitAggregates("freepool:1,2")
}

// resizedServerIsDeleted ends a lease of instances whose server was resized to a flavor outside the lease.
// The resize is not confirmed, so that Nova has given the slot of the lease to the migration.
func resizedServerIsDeleted(g *hostGroup) {
	l := g.createLease(time.Hour, 2*time.Hour, g.instanceReservation(1, nil))
	id := l.reservations[0]
	class := "CUSTOM_RESERVATION_" + strings.ToUpper(strings.ReplaceAll(id, "-", "_"))
	l.startNow()
	l.awaitStatus("ACTIVE")
	nested := g.deployment().Rows(`select uuid from provider where name = $1`, "blazar_"+g.hosts[0])[0]
	allocate := func(consumer string) {
		g.api.Must("PUT", "/placement/allocations/"+consumer, servertest.Object{
			"allocations": servertest.Object{
				nested: servertest.Object{"resources": servertest.Object{class: 1}},
			},
			"project_id":          "p",
			"user_id":             "u",
			"consumer_generation": nil,
		})
	}
	consumer := g.Nova.AddServer(notifytest.Server{Host: g.hosts[0], Flavor: id}).ID
	path := "/servers/" + consumer + "/action"
	allocate(consumer)
	g.Nova.MoveAllocations(func(from, to string) {
		if from != consumer {
			return
		}
		g.api.Must("DELETE", "/placement/allocations/"+from, nil)
		if consumer = to; to != "" {
			allocate(to)
		}
	})
	g.Nova.AddFlavor(notifytest.Flavor{ID: g.name, VCPUs: 1, RAM: 64})
	answer := httptest.NewRecorder()
	g.Nova.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{"resize":{"flavorRef":"`+g.name+`"}}`)))
	if answer.Code != http.StatusAccepted {
		g.Fatalf("resize the server: got %d %s, want 202", answer.Code, answer.Body)
	}
	l.endNow()
	l.awaitStatus("TERMINATED")
	if left := g.deployment().Rows(`select name from resource_class where name = $1`, class); g.serverCount() != 0 || len(left) != 0 {
		g.Errorf("end a lease with a resized server: got %d servers and the resource classes %v, want none",
			g.serverCount(), left)
	}
}

// floatingIPLeaseLifecycle starts and ends a lease of two floating IPs. When the lease ends, a port uses one
// of the two floating IPs.
func floatingIPLeaseLifecycle(g *hostGroup) {
	network := g.registerFloatingIPs("172.24.4.10", "172.24.4.11", "172.24.4.12")
	l := g.createLease(time.Hour, 2*time.Hour, servertest.Object{
		"resource_type":        "virtual:floatingip",
		"network_id":           network,
		"amount":               2,
		"required_floatingips": []string{"172.24.4.12"},
	})
	l.startNow()
	l.awaitStatus("ACTIVE")
	if got := g.floatingIPs(network); got != "172.24.4.10 172.24.4.12" {
		g.Errorf("start a lease of floating IPs: got %s at Neutron, want 172.24.4.10 172.24.4.12", got)
	}
	g.expectStatus(http.StatusBadRequest, "PUT", l.path, servertest.Object{
		"reservations": []servertest.Object{{"id": l.reservations[0], "network_id": uuid.NewString()}},
	})
	port := "7d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e00aa"
	g.neutron.PutFloatingIP(notifytest.FloatingIP{Network: network, IP: "172.24.4.12", Port: &port})
	l.endNow()
	l.awaitStatus("TERMINATED")
	if got := g.floatingIPs(network); got != "" {
		g.Errorf("end a lease of floating IPs: got %s at Neutron, want none", got)
	}
	g.createLease(time.Hour, 2*time.Hour,
		servertest.Object{"resource_type": "virtual:floatingip", "network_id": network, "amount": 3})
}

// segmentLeaseLifecycle starts and ends a lease of a network and a device. Neutron first refuses to create
// the network and later to delete it, and a server still has a port on the network when the lease ends.
func segmentLeaseLifecycle(g *hostGroup) {
	rack := uuid.NewString() // a name that limits the faults and segments to this scenario
	g.api.Must("POST", "/reservation/v1/networks",
		servertest.Object{"network_type": "vlan", "physical_network": rack, "segment_id": 100})
	g.api.Must("POST", "/reservation/v1/devices",
		servertest.Object{"name": rack, "device_type": "container", "device_driver": "zun"})
	segment := servertest.Object{
		"resource_type":      "network",
		"network_name":       "lab-" + g.name,
		"network_properties": `["=","$physical_network","` + rack + `"]`,
	}
	device := servertest.Object{
		"resource_type":       "device",
		"min":                 1,
		"max":                 1,
		"resource_properties": `["=","$name","` + rack + `"]`,
	}
	hits, repair := g.injectFault("POST", rack, http.StatusInternalServerError)
	l := g.createLease(time.Hour, 2*time.Hour, segment, device)
	g.expectStatus(http.StatusConflict, "POST", "/reservation/v1/leases", servertest.Object{
		"name":         "other",
		"start_date":   harness.TimeIn(time.Hour),
		"end_date":     harness.TimeIn(2 * time.Hour),
		"reservations": []servertest.Object{segment},
	})
	l.startNow()
	g.awaitHits(hits, 2)
	repair()
	l.awaitStatus("ACTIVE")
	made, _ := g.networkOn(rack)
	if got := l.get()["reservations"].([]any)[0].(servertest.Object)["network_id"]; made.Name != "lab-"+g.name ||
		made.Segment != 100 ||
		got != made.ID {
		g.Errorf("start a lease of a network: got the network %+v, and the ID %v in the reservation",
			made, got)
	}

	server := g.Nova.AddServer(notifytest.Server{Name: g.name}).ID
	port := g.neutron.AddPort(made.ID, "compute:nova", server)
	hits, repair = g.injectFault("DELETE", made.ID, http.StatusInternalServerError)
	l.endNow()
	g.await("the lease waits for the server on its network", func() string {
		why, _ := l.get()["berth:why"].(servertest.Object)
		return harness.WaitingFor(fmt.Sprint(why["sentence"]),
			strings.Contains(fmt.Sprint(why["sentence"]), "server "+server+" has port"))
	})
	g.neutron.DeletePort(port)
	g.awaitHits(hits, 1)
	repair()
	l.awaitStatus("TERMINATED")
	if left, is := g.networkOn(rack); is {
		g.Errorf("end a lease of a network: got the network %+v at Neutron, want none", left)
	}
	g.createLease(time.Hour, 2*time.Hour, segment, device)
}

// networkOn returns the network that Neutron has on a physical network.
func (g *hostGroup) networkOn(physical string) (n notifytest.Network, is bool) {
	for _, one := range g.neutron.Networks() {
		if one.PhysicalNetwork == physical {
			return one, true
		}
	}
	return n, false
}

// emptyLeaseLifecycle lets a lease without reservations start and end.
func emptyLeaseLifecycle(g *hostGroup) {
	l := g.createLease(time.Hour, 2*time.Hour)
	setDatesSoon(g.api, l.path, 2*time.Second)
	l.awaitStatus("TERMINATED")
	if got := l.statuses(); got != "TERMINATED DONE DONE " {
		g.Error(got)
	}
}
