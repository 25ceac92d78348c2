package leases

import (
	"net/http"
	"time"

	"berth/internal/notify/notifytest"
	"berth/internal/server/servertest"
	"berth/internal/torture/harness"
)

// leaseDeletedDuringStart deletes a lease while berth retries the start of the lease. A fault at Nova makes
// every attempt to start the lease fail.
func leaseDeletedDuringStart(g *hostGroup) {
	l := g.createLease(time.Hour, 2*time.Hour, g.hostReservation(1, 1))
	l.awaitAggregates("freepool:1")
	// creation of the reservation's aggregate
	hits, _ := g.injectFault("POST", `"name":"`+l.reservations[0], http.StatusServiceUnavailable)
	l.startNow()
	g.awaitHits(hits, 2)
	g.expectStatus(http.StatusConflict, "PUT", l.path, servertest.Object{"end_date": harness.TimeIn(3 * time.Hour)})
	for range 2 {
		if code, _, err := g.api.Do("DELETE", l.path, nil); code != http.StatusNoContent &&
			code != http.StatusAccepted &&
			code != http.StatusNotFound {
			g.Errorf(
				"DELETE a lease while its start is retried: got status %d (error %v), want 202, 204 or 404",
				code,
				err,
			)
		}
	}
	l.awaitDeleted()
	l.awaitAggregates("freepool:1")
	g.createLease(time.Hour, 2*time.Hour, g.hostReservation(1, 1))
}

// leaseDeletedDuringEnd deletes a lease while berth retries the end of the lease.
func leaseDeletedDuringEnd(g *hostGroup) {
	l, removeFault := g.endLeaseWithServer()
	l.awaitStatus("TERMINATING")
	if code, o, err := g.api.Do("DELETE", l.path, nil); code != http.StatusNoContent &&
		code != http.StatusAccepted {
		g.Errorf(
			"DELETE a lease while its end is retried: got status %d, body %v, error %v; want 202 or 204",
			code, o, err,
		)
	}
	l.awaitStatus("DELETING")
	removeFault()
	l.awaitDeleted()
	l.awaitAggregates("freepool:1")
	if n := g.serverCount(); n != 0 {
		g.Errorf("count the servers on the host of a deleted lease: got %d, want 0", n)
	}
}

// deletionRetriedUntilDone makes the deletion of a lease fail at Nova for longer than the retry timeout of
// leases. The status of the lease must stay DELETING until Nova works again.
func deletionRetriedUntilDone(g *hostGroup) {
	l := g.createLease(time.Hour, 2*time.Hour, g.hostReservation(1, 1))
	l.startNow()
	l.awaitStatus("ACTIVE")
	g.Nova.AddServer(notifytest.Server{Host: g.hosts[0], Name: g.name})
	hits, removeFault := g.injectFault("GET", "host="+g.hosts[0], http.StatusInternalServerError)
	code, _, _ := g.api.Do("DELETE", l.path, nil)
	g.awaitHits(hits, 6)
	if now := l.get(); code != http.StatusAccepted || now["status"] != "DELETING" {
		g.Errorf(
			"DELETE a lease during an outage of Nova: got HTTP status %d, lease status %v; want 202 and DELETING",
			code,
			now["status"],
		)
	}
	g.expectStatus(http.StatusConflict, "PUT", l.path, servertest.Object{"name": "too late"})
	removeFault()
	l.awaitDeleted()
	l.awaitAggregates("freepool:1")
	g.expectStatus(http.StatusNotFound, "DELETE", l.path, nil)
}

// hostFreedWhileDeletionIsRetried deletes a lease of two reservations while Nova fails for the host of the
// second one. The host of the first one must be free for other leases at once.
func hostFreedWhileDeletionIsRetried(g *hostGroup) {
	l := g.createLease(time.Hour, 2*time.Hour, g.reservationOnHost(1), g.reservationOnHost(2))
	l.startNow()
	l.awaitStatus("ACTIVE")
	hits, removeFault := g.injectFault("GET", "host="+g.hosts[1], http.StatusInternalServerError)
	g.expectStatus(http.StatusAccepted, "DELETE", l.path, nil)
	g.awaitHits(hits, 2)
	next := g.createLease(time.Hour, 2*time.Hour, g.hostReservation(1, 1))
	next.startNow()
	next.awaitStatus("ACTIVE")
	if now := l.get(); now["status"] != "DELETING" {
		g.Errorf("lease of a host that Nova does not release: got status %v, want DELETING", now["status"])
	}
	removeFault()
	l.awaitDeleted()
}
