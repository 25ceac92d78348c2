package top

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"berth/starter/cli"
	"berth/starter/resource"
)

// host is what berth knows about a host: its agents, and how leases can reserve it.
type host struct {
	name       string
	agents     []cli.Object
	reservable any    // nil: no lease can reserve the host, or the token may not read it
	quarantine string // why no lease gets the host now; empty: none
	awaited    int64  // ports that wait for a report of the agents
	oldest     *time.Time
	// types of the agents that send no heartbeats, and of those that an administrator has disabled
	silent, disabled []string
}

// hosts is the view of the hosts.
func (r reader) hosts() *screen {
	return &screen{
		title: "hosts",
		columns: []column{
			{name: "HOST", most: 36},
			{name: "AGENTS", most: 8},
			{name: "HEARTBEAT", most: 9, drop: 2},
			{name: "AWAITED", most: 9, drop: 1},
			{name: "LEASES", most: 10, drop: 3},
			{name: "STATE"},
		},
		read: r.limited(func(ctx context.Context) (content, error) {
			var agents, reservable []cli.Object
			note, err := readBoth(
				func() (err error) { agents, err = resource.Agents.List(ctx, r.Session, nil); return err },
				func() (err error) { reservable, err = resource.Hosts.List(ctx, r.Session, nil); return err },
			)
			if err != nil {
				return content{}, err
			}
			c := content{note: note}
			for _, h := range hostsOf(agents, reservable) {
				c.rows = append(c.rows, r.host(h))
			}
			return c, nil
		}),
	}
}

// hostsOf joins the agents and the hosts that leases can reserve, by the name of the host.
func hostsOf(agents, reservable []cli.Object) []*host {
	byName := map[string]*host{}
	named := func(v any) *host {
		name, _ := v.(string)
		if byName[name] == nil {
			byName[name] = &host{name: name}
		}
		return byName[name]
	}
	for _, a := range agents {
		named(a["host"]).addAgent(a)
	}
	for _, o := range reservable {
		h := named(o["hypervisor_hostname"])
		h.reservable = o["reservable"]
		if q := o["berth:quarantine"]; q != nil {
			h.quarantine = cli.Cell(q)
		}
	}
	all := make([]*host, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, byName[name])
	}
	return all
}

func (h *host) addAgent(a cli.Object) {
	h.agents = append(h.agents, a)
	h.awaited += max(cli.Integer(a["berth:awaited"]), 0)
	kind := fmt.Sprint(a["agent_type"])
	switch {
	case a["admin_state_up"] == false:
		h.disabled = append(h.disabled, kind)
	case a["alive"] == false:
		h.silent = append(h.silent, kind)
	}
	if at := instant(a["heartbeat_timestamp"]); at != nil && (h.oldest == nil || at.Before(*h.oldest)) {
		h.oldest = at
	}
}

// state describes what is wrong with the host.
func (h *host) state() string {
	var parts []string
	if len(h.silent) > 0 {
		parts = append(parts, "silent: "+strings.Join(h.silent, ", "))
	}
	if len(h.disabled) > 0 {
		parts = append(parts, "disabled: "+strings.Join(h.disabled, ", "))
	}
	if h.quarantine != "" {
		parts = append(parts, "in quarantine: "+h.quarantine)
	}
	if len(parts) == 0 {
		return "ok"
	}
	return strings.Join(parts, "; ")
}

// host makes the row of a host.
func (r reader) host(h *host) row {
	alive := len(h.agents) - len(h.silent) - len(h.disabled)
	leases := "-"
	if h.reservable != nil {
		leases = map[bool]string{true: "reservable", false: "no"}[h.reservable == true]
	}
	return row{
		key: h.name,
		cells: []cell{
			text(h.name),
			{text: fmt.Sprintf("%d of %d", alive, len(h.agents)), order: float64(alive - len(h.agents))},
			since(h.oldest, r.Now()),
			{text: fmt.Sprint(h.awaited), order: -float64(h.awaited)},
			text(leases),
			text(h.state()),
		},
		detail: fmt.Sprintf(
			"Host %s: %d of %d agents alive, %s waiting for them; %s.",
			h.name, alive, len(h.agents), plural(h.awaited, "report"), h.state(),
		),
		alarm: len(h.silent) > 0 || h.quarantine != "",
		open:  func() *screen { return r.ports(h.name) },
	}
}

// ports lists the ports of a host; those that are not ACTIVE come first.
func (r reader) ports(host string) *screen {
	return &screen{
		title: "ports of " + host,
		columns: []column{
			{name: "STATUS", most: 8},
			{name: "DEVICE OWNER", most: 20, drop: 1},
			{name: "PORT", most: 36},
			{name: "ADDRESSES"},
		},
		read: r.limited(func(ctx context.Context) (content, error) {
			query := url.Values{"binding:host_id": {host}, "limit": {fmt.Sprint(maxRows)}}
			all, err := resource.Ports.List(ctx, r.Session, query)
			if err != nil {
				return content{}, err
			}
			var c content
			if len(all) == maxRows {
				c.note = fmt.Sprintf("Only %d ports are shown.", maxRows)
			}
			for _, o := range all {
				c.rows = append(c.rows, r.port(o))
			}
			return c, nil
		}),
	}
}

func (r reader) port(o cli.Object) row {
	id, name := fmt.Sprint(o["id"]), resource.Ports.DisplayName(o)
	rank := 1.0
	if shouldBeActive(o) {
		rank = 0
	}
	return row{
		key: id,
		cells: []cell{
			{text: clean(cli.Cell(o["status"])), order: rank},
			text(o["device_owner"]),
			text(name),
			text(addresses(o)),
		},
		detail: "Port " + name + " (" + id + ") is " + cli.Cell(o["status"]) + ".",
		open:   func() *screen { return r.explanation("port/"+id, "port "+name) },
	}
}

// shouldBeActive reports whether a port has not reached the status ACTIVE yet, although it is not disabled.
func shouldBeActive(o cli.Object) bool {
	return o["status"] != "ACTIVE" && o["admin_state_up"] != false
}

// addresses returns the IP addresses of a port.
func addresses(port cli.Object) []any {
	fixed, _ := cli.Objects(port["fixed_ips"])
	var all []any
	for _, f := range fixed {
		all = append(all, f["ip_address"])
	}
	return all
}
