package leases

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/notify/notifytest"
	"berth/internal/server/servertest"
	"berth/internal/torture/harness"
)

// hostGroup is a set of hosts for the leases of one test. All hosts of the group have the same value of the
// host property "row", and no other host has this value, so a lease can select the hosts of the group by this
// property.
type hostGroup struct {
	*leaseDeployment
	*testing.T
	name    string   // of the group; also the value of the property "row" of the group's hosts
	hosts   []string // names of the hosts
	hostIDs []string
}

// newHostGroup registers new hosts for reservations; `hosts` is their number. Each host in the group has an
// inventory of 8 VCPU.
func (d *leaseDeployment) newHostGroup(t *testing.T, hosts int) *hostGroup {
	t.Helper()
	g := &hostGroup{leaseDeployment: d, T: t, name: "row-" + uuid.NewString()[:8]}
	for i := range hosts {
		name := fmt.Sprintf("%s-%d", g.name, i+1)
		provider := d.api.Must("POST", "/placement/resource_providers", servertest.Object{"name": name})
		d.api.Must(
			"PUT",
			fmt.Sprint("/placement/resource_providers/", provider["uuid"], "/inventories"),
			servertest.Object{"resource_provider_generation": provider["generation"],
				"inventories": servertest.Object{
					"VCPU":      servertest.Object{"total": 8},
					"MEMORY_MB": servertest.Object{"total": 8192},
					"DISK_GB":   servertest.Object{"total": 100},
				}},
		)
		host := d.api.Must("POST", "/reservation/v1/os-hosts", servertest.Object{"name": name, "row": g.name})["host"].(servertest.Object)
		g.hosts, g.hostIDs = append(g.hosts, name), append(g.hostIDs, fmt.Sprint(host["id"]))
	}
	return g
}

// await calls Deployment.Await with the testing.T of the host group's subtest, so that a timeout fails the
// subtest and not the parent test.
func (g *hostGroup) await(what string, f func() string) {
	g.T.Helper()
	g.deployment().Await(what, f)
}

// awaitHits waits until an injected fault has answered at least n requests with its error status. The
// function `hits` must return the number of requests that the injected fault has answered.
func (g *hostGroup) awaitHits(hits func() int, n int) {
	g.T.Helper()
	g.await(fmt.Sprintf("%d requests failed by the injected fault", n), func() string {
		return harness.WaitingFor(fmt.Sprintf("%d requests failed", hits()), hits() >= n)
	})
}

// deployment returns the deployment of the host group with the testing.T of the group's subtest, so that
// failed checks fail the subtest and not the parent test.
func (g *hostGroup) deployment() *servertest.Deployment {
	return &servertest.Deployment{
		T:          g.T,
		Database:   g.Database,
		Controller: g.Controller,
		Nova:       g.Nova,
	}
}

// hostReservation returns the request body of a reservation of whole hosts of the group.
func (g *hostGroup) hostReservation(min, max int) servertest.Object {
	return servertest.Object{
		"resource_type":         "physical:host",
		"min":                   min,
		"max":                   max,
		"hypervisor_properties": "",
		"resource_properties":   g.hostFilter(),
	}
}

// reservationOnHost returns the request body of a reservation of the group's n-th host, counted from 1.
func (g *hostGroup) reservationOnHost(n int) servertest.Object {
	return servertest.Object{
		"resource_type":         "physical:host",
		"min":                   1,
		"max":                   1,
		"resource_properties":   g.hostFilter(),
		"hypervisor_properties": `["=","$hypervisor_hostname","` + g.hosts[n-1] + `"]`,
	}
}

// instanceReservation returns the request body of a reservation of instances. Each instance of
// instanceReservation has 2 VCPU, so four instances fit on a host with 8 VCPU.
func (g *hostGroup) instanceReservation(amount int, affinity any) servertest.Object {
	return servertest.Object{
		"resource_type":       "virtual:instance",
		"vcpus":               2,
		"memory_mb":           512,
		"disk_gb":             5,
		"amount":              amount,
		"affinity":            affinity,
		"resource_properties": g.hostFilter(),
	}
}

// hostFilter returns a filter in Blazar's format (resource_properties) that selects the hosts of the group.
func (g *hostGroup) hostFilter() string { return `["=","$row","` + g.name + `"]` }

// createLease creates a lease that starts when the duration `start` has passed from now, and ends when the
// duration `end` has passed from now.
func (g *hostGroup) createLease(start, end time.Duration, reservations ...servertest.Object) *testLease {
	g.T.Helper()
	l := g.api.Must("POST", "/reservation/v1/leases", servertest.Object{
		"name":         g.name,
		"start_date":   harness.TimeIn(start),
		"end_date":     harness.TimeIn(end),
		"events":       []servertest.Object{},
		"reservations": reservations,
	})["lease"].(servertest.Object)
	created := &testLease{
		hostGroup: g,
		path:      fmt.Sprint("/reservation/v1/leases/", l["id"]),
		id:        fmt.Sprint(l["id"]),
	}
	for _, r := range created.get()["reservations"].([]any) {
		created.reservations = append(created.reservations, fmt.Sprint(r.(servertest.Object)["id"]))
	}
	return created
}

// expectStatus sends a request and checks that the answer has the HTTP status `code`.
func (g *hostGroup) expectStatus(code int, method, path string, body any) {
	g.T.Helper()
	if got, answer, err := g.api.Do(method, path, body); got != code || err != nil {
		g.Errorf("%s with the body %v: want status %d, got status %d, body %v, error %v",
			method, body, code, got, answer, err)
	}
}

// hostAggregates lists each of Nova's aggregates with the numbers of the group's hosts that belong to it, for
// example "a:1,2 freepool:3". In this list, hostAggregates writes "a" for the aggregate of the first given
// reservation, "b" for the aggregate of the second reservation, and so on.
func (g *hostGroup) hostAggregates(reservations ...string) string {
	var all []string
	for _, a := range g.Nova.ComputeState().Aggregates {
		var hosts []string
		for i, h := range g.hosts {
			if slices.Contains(a.Hosts, h) {
				hosts = append(hosts, fmt.Sprint(i+1))
			}
		}
		name := a.Name
		if i := slices.Index(reservations, name); i >= 0 {
			name = string(rune('a' + i))
		}
		if len(hosts) > 0 {
			all = append(all, name+":"+strings.Join(hosts, ","))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// serverCount returns the number of servers that Nova has on the group's hosts.
func (g *hostGroup) serverCount() (n int) {
	for _, s := range g.Nova.ComputeState().Servers {
		if slices.Contains(g.hosts, s.Host) {
			n++
		}
	}
	return n
}

// flavorAndGroups returns the flavor that Nova has for a reservation, or nil, and the number of server groups
// that Nova has for it.
func (g *hostGroup) flavorAndGroups(reservation string) (f *notifytest.Flavor, groups int) {
	now := g.Nova.ComputeState()
	if i := slices.IndexFunc(now.Flavors, func(f notifytest.Flavor) bool { return f.ID == reservation }); i >= 0 {
		f = &now.Flavors[i]
	}
	for _, group := range now.ServerGroups {
		if group.Name == "reservation:"+reservation {
			groups++
		}
	}
	return f, groups
}

// registerFloatingIPs creates a network and registers floating IPs of this network for reservations.
func (g *hostGroup) registerFloatingIPs(addresses ...string) (network string) {
	g.T.Helper()
	network = g.api.Create("network", servertest.Object{"name": g.name})
	g.api.Create("subnet", servertest.Object{
		"network_id":       network,
		"ip_version":       4,
		"cidr":             "172.24.4.0/24",
		"allocation_pools": []servertest.Object{{"start": "172.24.4.100", "end": "172.24.4.200"}},
	})
	for _, a := range addresses {
		g.api.Must("POST", "/reservation/v1/floatingips",
			servertest.Object{"floating_network_id": network, "floating_ip_address": a})
	}
	return network
}

// floatingIPs lists the floating IPs that Neutron has on a network.
func (g *hostGroup) floatingIPs(network string) string {
	var all []string
	for _, f := range g.neutron.FloatingIPs() {
		if f.Network == network {
			all = append(all, f.IP)
		}
	}
	return strings.Join(all, " ")
}

// awaitNotifications waits until the webhook has received the notifications `want` about a lease, in the
// order of `want` and each at least once.
func (g *hostGroup) awaitNotifications(listener *notifytest.Webhook, l *testLease, want string) {
	g.T.Helper()
	g.await("the webhook received: "+want, func() string {
		var received []string
		for _, typ := range notificationTypes(listener, l.id) {
			received = append(received, strings.TrimPrefix(strings.TrimPrefix(typ, "lease."), "event."))
		}
		if got := strings.Join(received, " "); got != want {
			return "it received: " + got
		}
		return ""
	})
}
