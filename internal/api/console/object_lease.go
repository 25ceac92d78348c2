package console

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"berth/internal/contract"
	"berth/internal/lease"
	"berth/internal/store/reportstore"
)

// maxParts is the maximum number of parts of one kind, for example hosts of a reservation, that a page lists.
const maxParts = 50

// lease reads the page of a lease. Its timeline has the lease, its events and the failed calls for its
// reservations.
func (c *handler) lease(ctx context.Context, q query) (any, error) {
	id, err := idOf(q, "lease")
	if err != nil {
		return nil, err
	}
	l, err := c.Lease.Lease(ctx, id)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	v := leaseView(l, now)
	v.Temporal = c.temporalURL(contract.LeaseID(l.ID.String()))
	if l.Status == lease.Pending && now.Before(l.StartAt) {
		if err := c.addHeldHosts(ctx, &v, l); err != nil {
			return nil, err
		}
	}
	reservations, err := c.reservationTable(ctx, l)
	if err != nil {
		return nil, err
	}
	v.Tables = append(v.Tables, reservations)
	v.newestFirst(now)
	return v, nil
}

// addHeldHosts says which leases still have hosts of a lease that has not started yet, although their end has
// passed.
func (c *handler) addHeldHosts(ctx context.Context, v *objectView, l lease.Lease) error {
	held, err := c.Report.HeldHosts(ctx, l.ID)
	if err != nil || len(held) == 0 {
		return err
	}
	var parts []string
	for _, h := range held {
		parts = append(parts,
			fmt.Sprintf("lease %s leaves %s, which it should have left at %s", h.HolderName, h.Host, utc(h.Since)))
		v.Waits = append(v.Waits, wait{
			For:      "lease " + reportstore.Lease.Label(h.HolderName, h.Host),
			Path:     "/leases/" + h.Holder.String(),
			Since:    h.Since,
			Deadline: &l.StartAt,
		})
	}
	v.Why += " It starts late unless " + strings.Join(parts, ", and ") + "."
	return nil
}

// leaseView returns what the page of a lease shows to administrators and to the project of the lease.
func leaseView(l lease.Lease, now time.Time) objectView {
	sentence, waits := lease.Explain(l, now)
	v := objectView{
		Kind:    "Lease",
		Name:    l.Name,
		Status:  string(l.Status),
		Good:    l.Status == lease.Active || l.Status == lease.Terminated,
		Why:     sentence,
		Command: "starter why lease/" + l.ID.String(),
		Facts: []fact{
			{Name: "ID", Value: l.ID.String()},
			{Name: "Project", Value: l.Project},
			{Name: "User", Value: l.User},
			{Name: "Start", Value: utc(l.StartAt)},
			{Name: "End", Value: utc(l.EndAt)},
			{Name: "Degraded", Value: yesNo(l.Degraded)},
		},
	}
	for _, w := range waits {
		out := wait{For: w.For, Since: w.Since, Deadline: w.Deadline}
		if other, ok := strings.CutPrefix(w.For, "lease/"); ok {
			out.Path = "/leases/" + other
		} else if w.For == "lease" { // a lease that the caller may not see
			out.For = "another lease"
		}
		v.Waits = append(v.Waits, out)
	}
	v.Timeline = leaseMoments(l, now)
	return v
}

// reservationTable lists the reservations of a lease with links to their hosts.
func (c *handler) reservationTable(ctx context.Context, l lease.Lease) (table, error) {
	t := newReservationTable()
	var hosts []int64
	for _, r := range l.Reservations {
		hosts = append(hosts, r.Hosts[:min(len(r.Hosts), maxParts)]...)
	}
	names, err := c.Lease.HostNames(ctx, hosts)
	if err != nil {
		return t, err
	}
	consumers, err := c.consumingReservations(ctx, l)
	if err != nil {
		return t, err
	}
	for _, r := range l.Reservations[:min(len(l.Reservations), maxParts)] {
		problem := r.LastError
		if r.Failure != nil {
			problem = r.Failure.Sentence(time.Now().Truncate(time.Minute))
		}
		row := reservationRow(r, names, problem)
		if consumers[r.ID.String()] {
			row[0].Path = "/consumers/" + r.ID.String()
		}
		t.Rows = append(t.Rows, row)
		for _, h := range r.Hosts[:min(len(r.Hosts), maxParts)] {
			t.Rows = append(t.Rows, []fact{
				{Value: "host"},
				{Value: ""},
				{Value: ""},
				{Value: names[h], Path: "/hosts/" + strconv.FormatInt(h, 10)},
				{Value: ""},
			})
		}
	}
	return t, nil
}

// consumingReservations returns the IDs of the reservations of a lease that have allocations in Placement.
func (c *handler) consumingReservations(ctx context.Context, l lease.Lease) (map[string]bool, error) {
	var ids []string
	for _, r := range l.Reservations[:min(len(l.Reservations), maxParts)] {
		ids = append(ids, r.ID.String())
	}
	return c.Inventory.ConsumersAmong(ctx, ids)
}

func newReservationTable() table {
	return table{Title: "Reservations", Columns: []string{"Reservation", "Type", "Status", "Holds", "Problem"}}
}

// reservationRow returns the row of a reservation. The map has the names of hosts that the row may contain.
func reservationRow(r lease.Reservation, names map[int64]string, problem string) []fact {
	return []fact{
		{Value: r.ID.String()},
		{Value: r.Type},
		{Value: string(r.Status)},
		{Value: holdings(r, names)},
		{Value: problem},
	}
}

// holdings says what a reservation holds.
func holdings(r lease.Reservation, names map[int64]string) string {
	var parts []string
	for _, of := range []struct {
		n    int
		what string
	}{{len(r.Hosts), "host"}, {len(r.Addresses), "floating IP"}, {len(r.ResourceIDs), "resource"}} {
		if of.n > 0 {
			parts = append(parts, counted(of.n, of.what))
		}
	}
	if len(r.Hosts) == 1 && names[r.Hosts[0]] != "" {
		parts[0] = "host " + names[r.Hosts[0]]
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// counted returns the number of things in words.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// eventTexts says in words what the events of a lease are.
var eventTexts = map[lease.EventType]string{
	lease.StartLease:     "start",
	lease.EndLease:       "end",
	lease.BeforeEndLease: "warning before the end",
}

func leaseMoments(l lease.Lease, now time.Time) []moment {
	all := []moment{{At: l.CreatedAt, Part: "lease", Text: "created"}}
	if l.UpdatedAt != nil {
		all = append(all,
			moment{At: *l.UpdatedAt, Part: "lease", Text: "last changed, status " + string(l.Status)})
	}
	for _, e := range l.Events {
		all = append(all,
			moment{At: e.At, Part: "lease", Text: eventTexts[e.Type] + " is due: " + string(e.Status)})
		if e.UpdatedAt != nil && e.Status != lease.EventUndone {
			all = append(
				all,
				moment{At: *e.UpdatedAt, Part: "lease", Text: eventTexts[e.Type] + " is " + string(e.Status)},
			)
		}
	}
	for _, r := range l.Reservations[:min(len(l.Reservations), maxParts)] {
		all = append(
			all,
			moment{At: r.CreatedAt, Part: "allocation", Text: "reservation of type " + r.Type + " created"},
		)
		if r.UpdatedAt != nil {
			all = append(all, moment{
				At:   *r.UpdatedAt,
				Part: "allocation",
				Text: "reservation of type " + r.Type + " is " + string(r.Status),
			})
		}
		if f := r.Failure; f != nil {
			all = append(
				all,
				moment{
					At:   f.Since,
					Part: "lease",
					Text: "calls to " + lease.PartyName(f.Party) + " begin to fail: " + f.Call,
				},
				moment{
					At:   f.LastAt,
					Part: "lease",
					Text: fmt.Sprintf("attempt %d fails: %s", f.Attempts, f.Error),
				},
			)
		}
	}
	return all
}

func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
