package leases

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"berth/internal/server/servertest"
	"berth/internal/torture/harness"
)

// testLease is a lease that a test created for a host group.
type testLease struct {
	*hostGroup
	path, id     string
	reservations []string // IDs of the lease's reservations
}

// get reads the lease through the lease API.
func (l *testLease) get() servertest.Object {
	l.T.Helper()
	return l.api.Must("GET", l.path, nil)["lease"].(servertest.Object)
}

// startNow sets the start date of the lease to now through the lease API.
func (l *testLease) startNow() {
	l.T.Helper()
	harness.SetDateToNow(l.api, l.path, "start_date")
}

// endNow sets the end date of the lease to now through the lease API.
func (l *testLease) endNow() {
	l.T.Helper()
	harness.SetDateToNow(l.api, l.path, "end_date")
}

// awaitStatus waits until the lease has the status.
func (l *testLease) awaitStatus(status string) {
	l.T.Helper()
	l.await("the lease is "+status, func() string {
		if now := l.get(); now["status"] != status {
			return fmt.Sprint("it is ", now["status"], ": ", now["berth:why"])
		}
		return ""
	})
}

// awaitDeleted waits until the lease does not exist any more.
func (l *testLease) awaitDeleted() {
	l.T.Helper()
	l.await("the lease is deleted", func() string {
		code, body, err := l.api.Do("GET", l.path, nil)
		if code != http.StatusNotFound {
			return fmt.Sprint(code, body, err)
		}
		return ""
	})
}

// statuses returns, in one line, the status of the lease, the statuses of the lease's start and end events,
// and the statuses of the lease's reservations.
func (l *testLease) statuses() string {
	l.T.Helper()
	return strings.Join(l.deployment().Rows(`
		select l.status || ' ' || (select string_agg(e.status, ' ' order by e.event_type desc) from event e where e.lease_id = l.id and e.event_type <> 'before_end_lease')
			|| ' ' || coalesce((select string_agg(r.status, ' ' order by r.position) from reservation r where r.lease_id = l.id), '')
		from lease l
		where l.id = $1`, l.id), "")
}

// awaitStatuses waits until the method statuses returns the wanted line.
func (l *testLease) awaitStatuses(want string) {
	l.T.Helper()
	l.await("the statuses are "+want, func() string {
		if got := l.statuses(); got != want {
			return "they are " + got
		}
		return ""
	})
}

// awaitEvent waits until the lease's event of the type `typ` has the status `status`.
func (l *testLease) awaitEvent(typ, status string) {
	l.T.Helper()
	l.await("the event "+typ+" is "+status, func() string {
		for _, e := range l.get()["events"].([]any) {
			if e := e.(servertest.Object); e["event_type"] == typ && e["status"] != status {
				return fmt.Sprint("it is ", e["status"])
			}
		}
		return ""
	})
}

// awaitBlockedBy waits until the lease's attribute `berth:why`, which explains the lease's status, names the
// lease `other` as a blocker.
func (l *testLease) awaitBlockedBy(other *testLease) {
	l.T.Helper()
	l.await("the lease waits for the other lease", func() string {
		now := l.get()
		if now["status"] != "PENDING" || !strings.Contains(fmt.Sprint(now["berth:why"]), "lease/"+other.id) {
			return fmt.Sprint(now["status"], now["berth:why"])
		}
		return ""
	})
}

// aggregates lists Nova's aggregates of the group's hosts. In this list, "a" is the aggregate of the lease's
// first reservation, "b" is the aggregate of the second reservation, and so on.
func (l *testLease) aggregates() string { return l.hostAggregates(l.reservations...) }

// awaitAggregates waits until the method aggregates returns the wanted list.
func (l *testLease) awaitAggregates(want string) {
	l.T.Helper()
	l.await("Nova's aggregates are "+want, func() string {
		if got := l.aggregates(); got != want {
			return "they are " + got
		}
		return ""
	})
}

// healthFlags lists the health flags (`degraded`, `missing_resources`, `resources_changed`) that the lease
// API shows as true for the lease or for its reservations.
func (l *testLease) healthFlags() string {
	l.T.Helper()
	now := l.get()
	flags := map[string]bool{"degraded": now["degraded"].(bool)}
	for _, r := range now["reservations"].([]any) {
		for _, name := range []string{"missing_resources", "resources_changed"} {
			flags[name] = flags[name] || r.(servertest.Object)[name].(bool)
		}
	}
	var all []string
	for name, set := range flags {
		if set {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
