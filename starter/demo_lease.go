package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// combination is what reservations and events may be while a lease has a status. It is written down here once
// more, from the contract and not from the rules under test.
type combination struct {
	reservation []string
	start, end  []string
}

var combinations = map[string]combination{
	"CREATING":    {[]string{"pending"}, []string{"UNDONE"}, []string{"UNDONE"}},
	"PENDING":     {[]string{"pending"}, []string{"UNDONE"}, []string{"UNDONE"}},
	"STARTING":    {[]string{"pending", "active", "error"}, []string{"IN_PROGRESS"}, []string{"UNDONE"}},
	"ACTIVE":      {[]string{"active"}, []string{"DONE"}, []string{"UNDONE"}},
	"TERMINATING": {[]string{"active", "deleted", "error"}, []string{"DONE", "ERROR"}, []string{"IN_PROGRESS"}},
	"TERMINATED":  {[]string{"deleted"}, []string{"DONE"}, []string{"DONE"}},
}

// view is a lease as one answer of the API showed it.
type view struct {
	status       string
	reservations []string
	events       map[string]string // type → status
	at           map[string]string // type → time
	changed      map[string]string // type → updated_at
	reservation  string            // ID of the only one
}

func viewOf(o object) view {
	v := view{status: fmt.Sprint(o["status"]), events: map[string]string{}, at: map[string]string{}, changed: map[string]string{}}
	all, _ := objects(o["reservations"])
	for _, r := range all {
		v.reservation = fmt.Sprint(r["id"])
		v.reservations = append(v.reservations, fmt.Sprint(r["status"]))
	}
	all, _ = objects(o["events"])
	for _, e := range all {
		kind := fmt.Sprint(e["event_type"])
		v.events[kind], v.at[kind], v.changed[kind] = fmt.Sprint(e["status"]), fmt.Sprint(e["time"]), fmt.Sprint(e["updated_at"])
	}
	return v
}

func (v view) String() string {
	var events []string
	for _, kind := range slices.Sorted(maps.Keys(v.events)) {
		events = append(events, kind+" "+v.events[kind])
	}
	return fmt.Sprintf("lease %-11s  reservation %-7s  %s", v.status, strings.Join(v.reservations, ","), strings.Join(events, ", "))
}

// check holds a view against the table.
func (v view) check() error {
	c, ok := combinations[v.status]
	if !ok {
		return broken("the lease is %s", v)
	}
	fits := slices.Contains(c.start, v.events["start_lease"]) && slices.Contains(c.end, v.events["end_lease"])
	for _, r := range v.reservations {
		fits = fits && slices.Contains(c.reservation, r)
	}
	if !fits {
		return broken("the lease contract does not allow %s", v)
	}
	return nil
}

func (d *stage) playLease(ctx context.Context) error {
	host, provider, err := d.register(ctx)
	if err != nil {
		return err
	}
	start := time.Now().Add(3 * time.Second).Truncate(time.Second)
	end := start.Add(3 * time.Second)
	o, err := leases.create(ctx, d.session, object{"name": d.name("lease"), "start_date": second(start), "end_date": second(end),
		"events": []object{},
		"reservations": []object{{"resource_type": "physical:host", "min": 1, "max": 1, "resource_properties": "",
			"hypervisor_properties": fmt.Sprintf(`["=", "$hypervisor_hostname", "%s"]`, host)}}})
	if err != nil {
		return err
	}
	d.lease = fmt.Sprint(o["id"])
	v := viewOf(o)
	d.step("POST /reservation/v1/leases", "lease %s from %s to %s is created", o["name"], start.Local().Format("15:04:05"), end.Local().Format("15:04:05"))
	d.step("", "%s", v)
	if len(v.reservations) != 1 || v.reservation == "" {
		return broken("the lease has %d reservations instead of one", len(v.reservations))
	}
	if err := d.holds(ctx, v, provider); err != nil {
		return err
	}
	last := time.Until(end) + patience
	return d.until(ctx, last, "the lease is TERMINATED", func(ctx context.Context) (bool, error) {
		return d.look(ctx, &v, provider)
	})
}

// look looks at the lease and, if it changed, tells and checks what changed.
func (d *stage) look(ctx context.Context, v *view, provider string) (done bool, err error) {
	o, err := leases.get(ctx, d.session, d.lease)
	if err != nil {
		return false, err
	}
	now := viewOf(o)
	if now.String() == v.String() {
		return false, nil
	}
	causes := map[string]string{"STARTING": "the timer for its start", "ACTIVE": "its resources are wired",
		"TERMINATING": "the timer for its end", "TERMINATED": "its resources are released"}
	cause := causes[now.status]
	if now.status == v.status {
		cause = "the timer of an event"
	}
	d.step(cause, "%s", now)
	before := *v
	*v = now
	if err := now.check(); err != nil {
		return false, err
	}
	if now.status == before.status {
		return false, nil
	}
	switch now.status {
	case "ACTIVE":
		err = d.punctual(now, "start_lease")
	case "TERMINATED":
		err = d.punctual(now, "end_lease")
		done = true
	default:
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return done, d.holds(ctx, now, provider)
}

// tardy is a delay that no busy machine explains.
const tardy = 15 * time.Second

// punctual tells how late an event was done, by the database's clock.
func (d *stage) punctual(v view, event string) error {
	due, err := time.Parse("2006-01-02T15:04:05.000000", v.at[event])
	if err != nil {
		return broken("the time of %s is %q", event, v.at[event])
	}
	done, err := time.Parse("2006-01-02 15:04:05.999999", v.changed[event])
	if err != nil {
		return broken("the updated_at of %s is %q", event, v.changed[event])
	}
	late := done.Sub(due)
	switch {
	case late < 0 || late >= tardy:
		return broken("%s was due at %s and done %s later", event, due.Format("15:04:05"), late)
	case late >= time.Second:
		d.step("this machine is busy", "%s was done %s after its second", event, late.Round(time.Millisecond))
	default:
		d.step("", "%s was done %d ms after its second", event, late.Milliseconds())
	}
	return nil
}

// holds checks in Placement what the reservation holds: its host while ACTIVE, else nothing.
func (d *stage) holds(ctx context.Context, v view, provider string) error {
	o, err := holding(ctx, d.session, v.reservation)
	if err != nil {
		return err
	}
	claims, _ := o["allocations"].(object)
	var on []string
	for id := range claims {
		p, err := providers.get(ctx, d.session, id)
		if err != nil {
			return err
		}
		on = append(on, fmt.Sprint(p["name"]))
	}
	wanted := []string{}
	if v.status == "ACTIVE" {
		wanted = []string{provider}
	}
	after, err := leases.get(ctx, d.session, d.lease)
	if err != nil || after["status"] != v.status {
		return err // it went on while we looked
	}
	if len(on) != len(wanted) || len(on) == 1 && on[0] != provider {
		return broken("while the lease is %s its reservation should hold %v but holds %v", v.status, wanted, on)
	}
	if v.status == "ACTIVE" {
		raw, _ := json.Marshal(claims)
		d.step("GET /placement/allocations/{reservation}", "its allocation is on provider %s: %s", provider, raw)
		return nil
	}
	d.step("GET /placement/allocations/{reservation}", "it holds no allocation")
	return nil
}

// register makes a host that can be leased: a provider with an inventory, known to Placement, then to the leases.
func (d *stage) register(ctx context.Context) (host, reserved string, err error) {
	host = d.name("node")
	o, err := providers.create(ctx, d.session, object{"name": host})
	if err != nil {
		return "", "", err
	}
	if err := stock(ctx, d.session, fmt.Sprint(o["uuid"]), integer(o["generation"]), object{"VCPU": 16, "MEMORY_MB": 65536, "DISK_GB": 500}); err != nil {
		return "", "", err
	}
	d.step("POST /placement/resource_providers, PUT …/inventories", "provider %s has 16 VCPU, 65536 MEMORY_MB, 500 DISK_GB", host)
	if o, err = hosts.create(ctx, d.session, object{"name": host}); err != nil {
		return "", "", err
	}
	d.step("POST /reservation/v1/os-hosts", "host %s can be leased, as number %s", host, o["id"])
	return host, "blazar_" + host, nil
}
