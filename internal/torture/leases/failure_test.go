package leases

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"berth/internal/notify/notifytest"
	"berth/internal/server/servertest"
	"berth/internal/torture/harness"
)

// oneReservationFailsToStart starts a lease with two reservations, and makes the creation of the flavor of
// one reservation fail. Both reservations of the lease must get the status `error`, and berth must remove the
// Nova objects of both reservations.
func oneReservationFailsToStart(g *hostGroup) {
	l := g.createLease(time.Hour, 2*time.Hour, g.hostReservation(2, 2), g.instanceReservation(1, nil))
	l.awaitAggregates("freepool:1,2,3")
	// creation of the reservation's flavor
	g.injectFault("POST", "reservation:"+l.reservations[1], http.StatusInternalServerError)
	l.startNow()
	l.awaitStatus("ERROR")
	if got := l.statuses(); got != "ERROR ERROR UNDONE error error" {
		g.Error(got)
	}
	l.awaitAggregates("freepool:1,2,3") // the resources of the started reservation are released
	g.api.Must("PUT", l.path, servertest.Object{"name": "renamed"})
	if got := l.get()["status"]; got != "ERROR" {
		g.Errorf("update the name of a lease in status ERROR: got status %v, want ERROR", got)
	}
	g.expectStatus(http.StatusConflict, "PUT", l.path, servertest.Object{"end_date": harness.TimeIn(3 * time.Hour)})
	// the failed lease keeps its hosts until its end
	g.expectStatus(http.StatusConflict, "POST", "/reservation/v1/leases", servertest.Object{
		"name":         "next",
		"start_date":   harness.TimeIn(time.Hour),
		"end_date":     harness.TimeIn(90 * time.Minute),
		"reservations": []servertest.Object{g.hostReservation(3, 3)},
	})
	g.api.Must("DELETE", l.path, nil)
	l.awaitDeleted()
	g.createLease(time.Hour, 2*time.Hour, g.hostReservation(3, 3))
}

// startRetriedAfterNovaError makes the start of a lease fail at Nova once. After a later attempt, the status
// of the lease must be ACTIVE.
func startRetriedAfterNovaError(g *hostGroup) {
	l := g.createLease(time.Hour, 2*time.Hour, g.hostReservation(1, 1))
	l.awaitAggregates("freepool:1")
	hits, removeFault := g.injectFault("POST", g.hosts[0], http.StatusInternalServerError)
	l.startNow()
	g.awaitHits(hits, 1)
	removeFault()
	l.awaitStatus("ACTIVE")
	if got := l.statuses(); got != "ACTIVE DONE UNDONE active" {
		g.Error(got)
	}
	l.awaitAggregates("a:1")
}

// oneHostFailsToStart makes the start of a lease fail on one of the lease's three hosts until the lease has
// ended. Then all three hosts must be free again.
func oneHostFailsToStart(g *hostGroup) {
	// list of the servers on the host
	g.injectFault("GET", "host="+g.hosts[1], http.StatusInternalServerError)
	l := g.createLease(time.Hour, 2*time.Hour, g.hostReservation(3, 3))
	setDatesSoon(g.api, l.path, 7*time.Second)
	l.awaitStatuses("ERROR ERROR ERROR error") // the start failed, and the lease has ended
	l.awaitAggregates("freepool:1,2,3")
	g.createLease(time.Hour, 2*time.Hour, g.hostReservation(3, 3)) // the hosts are free
}

// endLeaseWithServer ends a lease of one host. Nova rejects the deletion of a server on the leased host until
// the test calls `removeFault`.
func (g *hostGroup) endLeaseWithServer() (l *testLease, removeFault func()) {
	l = g.createLease(time.Hour, 2*time.Hour, g.hostReservation(1, 1))
	l.startNow()
	l.awaitStatus("ACTIVE")
	server := g.Nova.AddServer(notifytest.Server{Host: g.hosts[0], Name: g.name})
	_, removeFault = g.injectFault("POST", "/servers/"+server.ID, http.StatusConflict)
	l.endNow()
	return l, removeFault
}

// serversCannotBeDeleted ends a lease on whose host is a server that Nova does not delete. The status of the
// lease must become ERROR, and no other lease may get the lease's host until the lease is deleted.
func serversCannotBeDeleted(g *hostGroup) {
	l, removeFault := g.endLeaseWithServer()
	l.awaitStatus("ERROR")
	if got := l.statuses(); got != "ERROR DONE ERROR error" {
		g.Error(got)
	}
	g.expectStatus(http.StatusConflict, "POST", "/reservation/v1/leases", servertest.Object{
		"name":         "next",
		"start_date":   harness.TimeIn(time.Hour),
		"end_date":     harness.TimeIn(2 * time.Hour),
		"reservations": []servertest.Object{g.hostReservation(1, 1)},
	})
	l.awaitAggregates("a:1")
	removeFault()
	g.api.Must("DELETE", l.path, nil)
	l.awaitDeleted()
	l.awaitAggregates("freepool:1")
	g.createLease(time.Hour, 2*time.Hour, g.hostReservation(1, 1))
}

// nextLeaseWaitsForSlowEnd ends a lease on whose host is a server that Nova does not delete. The next lease
// of this host must wait until the first lease is deleted; leases of other hosts must not wait.
func nextLeaseWaitsForSlowEnd(g *hostGroup) {
	a := g.createLease(time.Hour, 2*time.Hour, g.hostReservation(1, 1))
	a.startNow()
	a.awaitStatus("ACTIVE")
	g.Nova.AddServer(notifytest.Server{Host: g.hosts[0], Name: g.name, PollsUntilGone: 1 << 20})
	others := []*testLease{
		g.createLease(time.Hour, 2*time.Hour, g.hostReservation(1, 1)),
		g.createLease(time.Hour, 2*time.Hour, g.hostReservation(1, 1)),
	}
	next := g.createLease(2*time.Hour, 3*time.Hour, g.reservationOnHost(1))
	a.endNow()
	a.await("the lease is no longer ACTIVE",
		func() string { return harness.WaitingFor("ACTIVE", a.get()["status"] != "ACTIVE") })
	for _, l := range others {
		l.startNow()
		l.awaitStatus("ACTIVE")
	}
	next.startNow()
	next.awaitBlockedBy(a)
	a.awaitStatus("ERROR") // the retry timeout is over; the next lease waits until the first lease is deleted
	next.awaitBlockedBy(a)
	g.Nova.RemoveServers(g.hosts[0])
	g.api.Must("DELETE", a.path, nil)
	next.awaitStatus("ACTIVE")
}

// failedEndBlocksOnlyItsHosts makes the end of the first lease fail on host 1. A second lease needs the hosts
// 1 and 2, so it waits for the first lease, and gets the status ERROR at its own end, because it never
// started. The next lease of host 2 must start. A lease that was planned on host 1, but can use any host,
// must start on another host.
func failedEndBlocksOnlyItsHosts(g *hostGroup) {
	hostsUpTo := func(n int) servertest.Object {
		r := g.hostReservation(n, n)
		r["hypervisor_properties"] = `["<=","$hypervisor_hostname","` + g.hosts[n-1] + `"]`
		return r
	}
	a := g.createLease(time.Hour, 2*time.Hour, g.reservationOnHost(1))
	both := g.createLease(2*time.Hour, 3*time.Hour, hostsUpTo(2))
	last := g.createLease(3*time.Hour, 4*time.Hour, g.reservationOnHost(2))
	movable := g.createLease(4*time.Hour, 5*time.Hour, g.reservationOnHost(1))
	g.api.Must("PUT", movable.path, servertest.Object{
		"reservations": []servertest.Object{{"id": movable.reservations[0], "hypervisor_properties": ""}},
	})
	a.startNow()
	a.awaitStatus("ACTIVE")
	// list of the servers on the host
	_, removeFault := g.injectFault("GET", "host="+g.hosts[0], http.StatusInternalServerError)
	a.endNow()
	for _, status := range []string{"TERMINATING", "ERROR"} {
		a.await(status+", and the explanation names the failed call", func() string {
			l := a.get()
			why := l["berth:why"].(servertest.Object)
			calls := why["failed_calls"].([]any)
			if l["status"] != status || len(calls) != 1 {
				return fmt.Sprint("it is ", l["status"], ": ", why)
			}
			call := calls[0].(servertest.Object)
			if call["party"] != "nova" || !strings.Contains(fmt.Sprint(call["call"]), "answered 500") ||
				!strings.Contains(fmt.Sprint(why["sentence"]), "Nova has failed since ") {
				g.Fatalf(
					"explanation of a lease that is %s: got %v, want Nova's call and its answer 500",
					status,
					why,
				)
			}
			return ""
		})
	}

	both.startNow()
	both.awaitBlockedBy(a)
	both.endNow()
	both.awaitStatuses("ERROR ERROR ERROR error")
	last.startNow()
	last.awaitStatus("ACTIVE")
	movable.startNow()
	g.await("the lease that can use another host is ACTIVE", func() string {
		g.runSweep()
		return harness.WaitingFor("it is PENDING", movable.get()["status"] == "ACTIVE")
	})
	if got := g.hostAggregates(a.reservations[0], last.reservations[0], movable.reservations[0]); got != "a:1 b:2 c:3" {
		g.Errorf("aggregates of the leases: got %s, want a:1 b:2 c:3", got)
	}
	quarantine := func() string {
		host := g.api.Must("GET", "/reservation/v1/os-hosts/"+g.hostIDs[0], nil)["host"].(servertest.Object)
		return fmt.Sprint(host["berth:quarantine"])
	}
	if got := quarantine(); !strings.Contains(got, "lease "+g.name+" ("+a.id+")") ||
		!strings.Contains(got, "Nova has failed since") {
		g.Errorf(
			"quarantine of the host that the lease has not released: got %q, want the lease and Nova's call",
			got,
		)
	}
	removeFault() // now berth can remove host 1 from the aggregate of the first lease
	g.await("Nova's aggregates are clean", func() string {
		got := g.hostAggregates(a.reservations[0], last.reservations[0], movable.reservations[0])
		return harness.WaitingFor("they are "+got, got == "b:2 c:3 freepool:1")
	})
	g.await("the host is out of quarantine", func() string {
		got := quarantine()
		return harness.WaitingFor(got, got == fmt.Sprint(nil))
	})
	a.awaitStatuses("ERROR DONE ERROR error")
	again := g.createLease(2*time.Hour, 3*time.Hour, g.reservationOnHost(1))
	again.startNow()
	again.awaitStatus("ACTIVE")
}

// snapshotFails makes the snapshots before the end of a lease fail. The status of the lease's
// before_end_lease event must become ERROR; the lease must stay ACTIVE and end normally.
func snapshotFails(g *hostGroup) {
	l := g.createLease(time.Hour, 3*time.Hour, servertest.Object{
		"resource_type":         "physical:host",
		"min":                   1,
		"max":                   1,
		"hypervisor_properties": "",
		"resource_properties":   g.hostFilter(),
		"before_end":            "snapshot",
	})
	l.startNow()
	l.awaitStatus("ACTIVE")
	g.Nova.AddServer(notifytest.Server{Host: g.hosts[0], Name: g.name})
	g.injectFault("POST", "reserved_"+g.name, http.StatusBadRequest)
	g.api.Must("PUT", l.path, servertest.Object{"before_end_date": harness.TimeIn(10 * time.Second)})
	l.awaitEvent("before_end_lease", "ERROR")
	if got := l.statuses(); got != "ACTIVE DONE UNDONE active" {
		g.Error(got)
	}
	g.api.Must("PUT", l.path, servertest.Object{"end_date": harness.TimeIn(4 * time.Hour)})
	l.endNow()
	l.awaitStatuses("TERMINATED DONE DONE deleted")
}
