package torture

import (
	"net/http"
	"time"

	"berth/internal/notify/notifytest"
	"berth/internal/server/servertest"
)

// leaseDeletedDuringStart deletes a lease while its start is retried. The start fails forever.
func leaseDeletedDuringStart(g *hostGroup) {
	l := g.createLease(time.Hour, 2*time.Hour, g.hostReservation(1, 1))
	l.awaitAggregates("freepool:1")
	hits, _ := g.injectFault("POST", `"name":"`+l.reservations[0], http.StatusServiceUnavailable) // creation of its aggregate
	l.startNow()
	g.awaitHits(hits, 2)
	g.expectStatus(http.StatusConflict, "PUT", l.path, servertest.Object{"end_date": timeIn(3 * time.Hour)})
	for range 2 {
		if code, _, err := g.api.Do("DELETE", l.path, nil); code != http.StatusNoContent && code != http.StatusAccepted && code != http.StatusNotFound {
			g.Errorf("DELETE of the lease: got status %d (%v), want 202, 204 or 404", code, err)
		}
	}
	l.awaitDeleted()
	l.awaitAggregates("freepool:1")
	g.createLease(time.Hour, 2*time.Hour, g.hostReservation(1, 1))
}

// leaseDeletedDuringEnd deletes a lease while its end is retried.
func leaseDeletedDuringEnd(g *hostGroup) {
	l, removeFault := g.endLeaseWithServer()
	l.awaitStatus("TERMINATING")
	if code, o, err := g.api.Do("DELETE", l.path, nil); code != http.StatusNoContent && code != http.StatusAccepted {
		g.Errorf("DELETE of the lease while its end is retried: got %d %v %v, want 202 or 204", code, o, err)
	}
	l.awaitStatus("DELETING")
	removeFault()
	l.awaitDeleted()
	l.awaitAggregates("freepool:1")
	if n := g.serverCount(); n != 0 {
		g.Errorf("after the deletion of the lease %d servers remain on its host, want 0", n)
	}
}

// deletionRetriedUntilDone fails the deletion at Nova for longer than the lease's retry timeout: the lease stays DELETING until Nova recovers.
func deletionRetriedUntilDone(g *hostGroup) {
	l := g.createLease(time.Hour, 2*time.Hour, g.hostReservation(1, 1))
	l.startNow()
	l.awaitStatus("ACTIVE")
	g.Nova.AddServer(notifytest.Server{Host: g.hosts[0], Name: g.name})
	hits, removeFault := g.injectFault("GET", "host="+g.hosts[0], http.StatusInternalServerError)
	code, _, _ := g.api.Do("DELETE", l.path, nil)
	g.awaitHits(hits, 6)
	if now := l.get(); code != http.StatusAccepted || now["status"] != "DELETING" {
		g.Errorf("DELETE during the Nova outage: status code %d, lease status %v; want the lease to stay DELETING", code, now["status"])
	}
	g.expectStatus(http.StatusConflict, "PUT", l.path, servertest.Object{"name": "too late"})
	removeFault()
	l.awaitDeleted()
	l.awaitAggregates("freepool:1")
	g.expectStatus(http.StatusNotFound, "DELETE", l.path, nil)
}
