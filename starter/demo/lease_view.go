package demo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth/starter/cli"
)

// combination lists the statuses that reservations and events may have while a lease has a certain status.
// The table of combinations follows Blazar's specification of leases. The table does not use berth's own
// lease rules, because the demo checks these rules.
type combination struct {
	reservation []string
	start, end  []string
}

var allowedCombinations = map[string]combination{
	"CREATING": {[]string{"pending"}, []string{"UNDONE"}, []string{"UNDONE"}},
	"PENDING":  {[]string{"pending"}, []string{"UNDONE"}, []string{"UNDONE"}},
	"STARTING": {[]string{"pending", "active", "error"}, []string{"IN_PROGRESS"}, []string{"UNDONE"}},
	"ACTIVE":   {[]string{"active"}, []string{"DONE"}, []string{"UNDONE"}},
	"TERMINATING": {
		[]string{"active", "deleted", "error"},
		[]string{"DONE", "ERROR"},
		[]string{"IN_PROGRESS"},
	},
	"TERMINATED": {[]string{"deleted"}, []string{"DONE"}, []string{"DONE"}},
}

// leaseView contains the statuses of a lease, of the lease's reservation and of the lease's events, as one
// answer of the API shows them.
type leaseView struct {
	status       string
	reservations []string
	events       map[string]string // event type → status
	due          map[string]string // event type → time
	updated      map[string]string // event type → updated_at
	reservation  string            // ID of the only reservation
}

func newLeaseView(o cli.Object) leaseView {
	v := leaseView{
		status:  fmt.Sprint(o["status"]),
		events:  map[string]string{},
		due:     map[string]string{},
		updated: map[string]string{},
	}
	all, _ := cli.Objects(o["reservations"])
	for _, r := range all {
		v.reservation = fmt.Sprint(r["id"])
		v.reservations = append(v.reservations, fmt.Sprint(r["status"]))
	}
	all, _ = cli.Objects(o["events"])
	for _, e := range all {
		kind := fmt.Sprint(e["event_type"])
		v.events[kind] = fmt.Sprint(e["status"])
		v.due[kind] = fmt.Sprint(e["time"])
		v.updated[kind] = fmt.Sprint(e["updated_at"])
	}
	return v
}

func (v leaseView) String() string {
	var events []string
	for _, kind := range slices.Sorted(maps.Keys(v.events)) {
		events = append(events, kind+" "+v.events[kind])
	}
	return fmt.Sprintf("lease %-11s  reservation %-7s  %s",
		v.status, strings.Join(v.reservations, ","), strings.Join(events, ", "))
}

// check returns an error unless the table of allowed combinations contains the statuses of the view.
func (v leaseView) check() error {
	c, ok := allowedCombinations[v.status]
	if !ok {
		return checkFailed("unexpected lease status: %s", v)
	}
	fits := slices.Contains(c.start, v.events["start_lease"]) && slices.Contains(c.end, v.events["end_lease"])
	for _, r := range v.reservations {
		fits = fits && slices.Contains(c.reservation, r)
	}
	if !fits {
		return checkFailed("the lease contract does not allow %s", v)
	}
	return nil
}
