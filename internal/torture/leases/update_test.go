package leases

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"berth/internal/server/servertest"
	"berth/internal/torture/harness"
)

// activeLeaseGrows updates active reservations of hosts and instances. berth must accept more hosts or
// instances, and reject fewer.
func activeLeaseGrows(g *hostGroup) {
	whole := g.createLease(time.Hour, 2*time.Hour, g.hostReservation(1, 1))
	whole.startNow()
	whole.awaitStatus("ACTIVE")
	g.api.Must("PUT", whole.path, servertest.Object{
		"reservations": []servertest.Object{{"id": whole.reservations[0], "min": 1, "max": 2}},
	})
	whole.awaitAggregates("a:1,2 freepool:3")
	g.expectStatus(http.StatusConflict, "PUT", whole.path, servertest.Object{
		"reservations": []servertest.Object{{"id": whole.reservations[0], "min": 1, "max": 1}},
	})

	some := g.createLease(time.Hour, 2*time.Hour, g.instanceReservation(1, nil))
	some.startNow()
	some.awaitStatus("ACTIVE")
	g.expectStatus(
		http.StatusConflict, "PUT", some.path,
		servertest.Object{"reservations": []servertest.Object{{"id": some.reservations[0], "amount": 5}}},
	)
	g.api.Must(
		"PUT",
		some.path,
		servertest.Object{"reservations": []servertest.Object{{"id": some.reservations[0], "amount": 4}}},
	)
	g.expectStatus(
		http.StatusConflict, "PUT", some.path,
		servertest.Object{"reservations": []servertest.Object{{"id": some.reservations[0], "amount": 3}}},
	)
	g.expectStatus(
		http.StatusConflict, "PUT", some.path,
		servertest.Object{"reservations": []servertest.Object{{"id": some.reservations[0], "vcpus": 1}}},
	)
	if got := some.statuses(); got != "ACTIVE DONE UNDONE active" {
		g.Error(got)
	}
	whole.endNow()
	whole.awaitStatus("TERMINATED")
	g.api.Must(
		"PUT",
		some.path,
		servertest.Object{"reservations": []servertest.Object{{"id": some.reservations[0], "amount": 6}}},
	)
	some.await("the aggregate of the reservation has two hosts", func() string {
		if got := some.aggregates(); !strings.HasPrefix(got, "a:1,3") && !strings.HasPrefix(got, "a:2,3") {
			return got
		}
		return ""
	})
	g.api.Must("DELETE", some.path, nil)
	some.awaitDeleted()
	some.awaitAggregates("freepool:1,2,3")
}

// floatingIPReservationGrows adds floating IPs to an active reservation while some requests to Neutron fail.
func floatingIPReservationGrows(g *hostGroup) {
	network := g.registerFloatingIPs("172.24.4.10", "172.24.4.11", "172.24.4.12")
	l := g.createLease(time.Hour, 2*time.Hour,
		servertest.Object{"resource_type": "virtual:floatingip", "network_id": network, "amount": 1})
	l.startNow()
	l.awaitStatus("ACTIVE")
	hits, removeFault := g.injectFault("POST", network, http.StatusInternalServerError)
	g.api.Must("PUT", l.path,
		servertest.Object{"reservations": []servertest.Object{{"id": l.reservations[0], "amount": 3}}})
	g.awaitHits(hits, 2)
	removeFault()
	g.await("Neutron has three floating IPs", func() string {
		return harness.WaitingFor("Neutron has "+g.floatingIPs(network),
			len(strings.Fields(g.floatingIPs(network))) >= 3)
	})
	if got := l.statuses(); got != "ACTIVE DONE UNDONE active" {
		g.Error(got)
	}
	g.expectStatus(http.StatusBadRequest, "PUT", l.path,
		servertest.Object{"reservations": []servertest.Object{{"id": l.reservations[0], "amount": 2}}})
	g.api.Must("DELETE", l.path, nil)
	l.awaitDeleted()
	if got := g.floatingIPs(network); got != "" {
		g.Errorf("delete a lease of floating IPs: got %s at Neutron, want none", got)
	}
}

// invalidUpdates sends invalid updates to a pending and an active lease, and checks that no row changes.
func invalidUpdates(g *hostGroup) {
	pending := g.createLease(time.Hour, 2*time.Hour, g.hostReservation(1, 1))
	active := g.createLease(time.Hour, 3*time.Hour, g.hostReservation(1, 1))
	active.startNow()
	active.awaitStatus("ACTIVE")
	reservation := func(l *testLease, more servertest.Object) servertest.Object {
		o := servertest.Object{"id": l.reservations[0]}
		for k, v := range more {
			o[k] = v
		}
		return servertest.Object{"name": "changed", "reservations": []servertest.Object{o}}
	}
	const rowsOf = `select l::text
		|| (select string_agg(e::text, ' ' order by e.id) from event e where e.lease_id = l.id)
		|| (select string_agg(r::text, ' ') from reservation r where r.lease_id = l.id)
		from lease l where id = $1`
	for _, l := range []*testLease{pending, active} {
		before := g.deployment().Rows(rowsOf, l.id)
		for _, c := range []struct {
			code int
			body servertest.Object
		}{
			{400, servertest.Object{"end_date": "2040-13-01 10:00"}}, {400, servertest.Object{"end_date": harness.TimeIn(-time.Hour)}}, {400, servertest.Object{"start_date": harness.TimeIn(-time.Hour)}},
			{400, servertest.Object{"start_date": harness.TimeIn(4 * time.Hour)}}, {400, servertest.Object{"end_date": 7}}, {400, servertest.Object{"name": ""}}, {400, servertest.Object{"name": nil}},
			{400, servertest.Object{"name": strings.Repeat("x", 81)}}, {403, servertest.Object{"before_end_date": harness.TimeIn(9 * time.Hour)}}, {403, servertest.Object{"before_end_date": harness.TimeIn(-time.Hour)}},
			{400, servertest.Object{"before_end_date": "now"}}, {400, servertest.Object{"project_id": "mine"}}, {400, servertest.Object{"status": "ACTIVE"}}, {400, servertest.Object{"degraded": true}},
			{400, servertest.Object{"reservations": []servertest.Object{{}}}}, {400, servertest.Object{"reservations": []servertest.Object{{"id": uuid.NewString(), "max": 1}}}},
			{409, reservation(l, servertest.Object{"resource_type": "virtual:instance"})}, {409, reservation(l, servertest.Object{"resource_type": "virtual:fridge"})},
			{400, reservation(l, servertest.Object{"min": 0})}, {400, reservation(l, servertest.Object{"min": 2, "max": 1})}, {400, reservation(l, servertest.Object{"max": "many"})},
			{409, reservation(l, servertest.Object{"min": 3, "max": 3})}, {400, reservation(l, servertest.Object{"resource_properties": `["or",1]`})},
			{400, reservation(l, servertest.Object{"hypervisor_properties": `["=","$no_such_property","1"]`})}, {400, reservation(l, servertest.Object{"before_end": "email"})},
			{400, servertest.Object{"reservations": "none"}},
		} {
			g.expectStatus(c.code, "PUT", l.path, c.body)
		}
		after := g.deployment().Rows(rowsOf, l.id)
		if !slices.Equal(before, after) {
			g.Errorf(
				"send invalid updates of a lease: want its rows unchanged; before:\n%v\nafter:\n%v",
				before,
				after,
			)
		}
	}
}
