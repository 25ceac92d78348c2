package network

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Inactive is the status of a binding on a host that a port may move to.
const Inactive = "INACTIVE"

// Binding is a port's tie to a host besides its own: to one that it may move to (INACTIVE), or, of a distributed
// port, to one that it is wired on (BUILD, then ACTIVE).
type Binding struct {
	Host    string          `json:"host"`
	Status  string          `json:"status"`
	VNIC    string          `json:"vnic"`
	Profile json.RawMessage `json:"profile"`
	VIF     string          `json:"vif"`
	Plugged bool            `json:"plugged"` // the agent of an INACTIVE binding has reported
	Switch  *Switch         `json:"switch"`  // as a port's
}

// BindingChange is what a request says about a binding; nil means nothing.
type BindingChange struct {
	Host    *string
	VNIC    *string
	Profile json.RawMessage
}

// Tied lists all bindings of a port that is on one host at a time: its own if it has one, then the others.
func (p Port) Tied() []Binding {
	var all []Binding
	if p.Host != "" {
		all = append(all, Binding{Host: p.Host, Status: Active, VNIC: p.VNIC, Profile: p.Profile, VIF: p.VIF, Switch: p.Switch})
	}
	return append(all, p.Bindings...)
}

// Movable tells whether the port may have several bindings.
func (p Port) Movable() error {
	if strings.HasPrefix(p.DeviceOwner, "compute:") {
		return nil
	}
	return Faultf(BadRequest, "Bad port request: Port %s does not support multiple bindings, its device_owner is '%s'.", p.ID, p.DeviceOwner)
}

func (p Port) bindingAt(host string) int {
	return slices.IndexFunc(p.Bindings, func(b Binding) bool { return b.Host == host })
}

// Propose is the port with an INACTIVE binding to another host, which the agents there have to allow.
func (p Port) Propose(c BindingChange, agents []HostAgent) (Port, error) {
	if err := p.Movable(); err != nil {
		return p, err
	}
	b := Binding{Host: deref(c.Host), Status: Inactive, VNIC: "normal", Profile: json.RawMessage(`{}`)}
	if b.Host == p.Host || p.bindingAt(b.Host) >= 0 {
		return p, Faultf(BindingExists, "Binding for port %s on host %s already exists.", p.ID, b.Host)
	}
	b, err := b.with(p, c, agents)
	p.Bindings = append(slices.Clone(p.Bindings), b)
	return p, err
}

// Repropose is the port with an INACTIVE binding changed.
func (p Port) Repropose(host string, c BindingChange, agents []HostAgent) (Port, error) {
	if err := p.Movable(); err != nil {
		return p, err
	}
	at := p.bindingAt(host)
	if at < 0 {
		return p, p.missingBinding(host)
	}
	b, err := p.Bindings[at].with(p, c, agents)
	p.Bindings = slices.Clone(p.Bindings)
	p.Bindings[at] = b
	return p, err
}

// with is the binding after the change, bound anew.
func (b Binding) with(p Port, c BindingChange, agents []HostAgent) (Binding, error) {
	set(&b.VNIC, c.VNIC)
	if c.Profile != nil {
		b.Profile = c.Profile
	}
	p.Host, p.VNIC, p.Profile = b.Host, b.VNIC, b.Profile
	bound := p.BoundBy(agents)
	b.VIF, b.Switch = bound.VIF, bound.Switch
	if b.VIF == VIFFailed {
		return b, p.unbound(b.Host)
	}
	b.Plugged = false
	return b, nil
}

// Activate is the port moved to the host of an INACTIVE binding, with the agents there, where it has to be wired. It stays tied to the one
// that it came from, but is no longer bound there.
func (p Port) Activate(host string, around Surroundings, revision int64, now time.Time) (Port, error) {
	if err := p.Movable(); err != nil {
		return p, err
	}
	if host == p.Host {
		return p, Faultf(BindingActive, "Binding for port %s on host %s is already active.", p.ID, host)
	}
	at := p.bindingAt(host)
	if at < 0 {
		return p, p.missingBinding(host)
	}
	next := p.Bindings[at]
	bindings := slices.Delete(slices.Clone(p.Bindings), at, at+1)
	if p.Host != "" {
		bindings = append(bindings, Binding{Host: p.Host, Status: Inactive, VNIC: p.VNIC, Profile: p.Profile, VIF: VIFUnbound})
	}
	p.Host, p.VNIC, p.Profile, p.Bindings = next.Host, next.VNIC, next.Profile, bindings
	if p = p.BoundBy(around.Agents); p.VIF == VIFFailed {
		if next.VIF == VIFUnbound {
			return p, p.unbound(host)
		}
		p.VIF = next.VIF // the server is there already, and so the port is, though its agent has fallen silent since
	}
	return p.Arm(around, Cause{Bound: true, Revision: revision}, now), nil
}

// Settled is the port bound to its host, with the agents there. An INACTIVE binding to that host has become its own.
func (p Port) Settled(agents []HostAgent) Port {
	p = p.BoundBy(agents)
	p.Bindings = slices.DeleteFunc(slices.Clone(p.Bindings), func(b Binding) bool { return b.Host == p.Host || b.Status != Inactive })
	return p
}

// Withdraw is the port without an INACTIVE binding.
func (p Port) Withdraw(host string) (Port, error) {
	if err := p.Movable(); err != nil {
		return p, err
	}
	at := p.bindingAt(host)
	if at < 0 {
		return p, p.missingBinding(host)
	}
	p.Bindings = slices.Delete(slices.Clone(p.Bindings), at, at+1)
	return p, nil
}

func (p Port) unbound(host string) error {
	return Faultf(BindingFailed, "Binding for port %s on host %s could not be created: %s.", p.ID, host, p.unbindable())
}

func (p Port) missingBinding(host string) error {
	return Faultf(BindingNotFound, "Binding for port %s for host %s could not be found.", p.ID, host)
}

// elsewhere is the port after a report of the agent of an INACTIVE binding: Nova waits for it before it moves the
// server there.
func (p Port) elsewhere(r Report) (Port, bool) {
	at := p.bindingAt(r.Host)
	if r.Entity != L2 || at < 0 || p.Bindings[at].Status != Inactive || p.Bindings[at].VIF == VIFUnbound {
		return p, false
	}
	plugged := r.Event != Lost
	if r.Event == Begun || p.Bindings[at].Plugged == plugged {
		return p, false
	}
	p.Bindings = slices.Clone(p.Bindings)
	p.Bindings[at].Plugged = plugged
	return p, true
}

// NovaEventsFor are the external events of what became of the port. The entity is the last that reported, if any:
// while a server moves, only the wiring of its port counts for Nova.
func (p Port) NovaEventsFor(before Port, entity string) []NovaEvent {
	var events []NovaEvent
	migrating := p.migrating() && entity != L2 && p.Status == Active
	if e, ok := p.NovaEventFor(before.Status, p.Status); ok && !migrating {
		events = append(events, e)
	}
	for _, b := range p.Bindings {
		was := before.bindingAt(b.Host)
		if b.Plugged && was >= 0 && !before.Bindings[was].Plugged {
			if e, ok := p.novaEvent(Plugged, "completed"); ok {
				events = append(events, e)
			}
		}
	}
	return events
}

func (p Port) migrating() bool { return p.migratingTo() != "" }

// migratingTo is the host that the port's server is moving to; empty if it stays.
func (p Port) migratingTo() string {
	var profile struct {
		To string `json:"migrating_to"`
	}
	if json.Unmarshal(p.Profile, &profile) != nil {
		return ""
	}
	return profile.To
}

// Distributed tells whether the port is wired on every host that asks for it, and not on one.
func (p Port) Distributed() bool { return p.DeviceOwner == distributedOwner }

const distributedOwner = "network:router_interface_distributed"

// everywhere is a distributed port after a report: the agent of a host takes it up, wires it and gives it up.
func (p Port) everywhere(r Report) (Port, bool) {
	if r.Entity != L2 || r.Host == "" {
		return p, false
	}
	at := p.bindingAt(r.Host)
	bindings := slices.Clone(p.Bindings)
	switch {
	case r.Event == Lost && at >= 0:
		bindings = slices.Delete(bindings, at, at+1)
	case r.Event == Begun && at < 0 && p.AdminUp:
		bindings = append(bindings, Binding{Host: r.Host, Status: Build, VNIC: p.VNIC, Profile: json.RawMessage(`{}`), VIF: VIFDistributed})
	case r.Event == Begun && at >= 0 && p.AdminUp && bindings[at].Status != Build:
		bindings[at].Status = Build
	case (r.Event == "" || r.Event == Complete) && at >= 0 && bindings[at].Status != Active:
		bindings[at].Status = Active
	default:
		return p, false
	}
	p.Bindings = bindings
	return p, true
}

// spread is the status of a distributed port: that of the host where it is furthest.
func (p Port) spread() string {
	status := Down
	for _, b := range p.Bindings {
		if b.Status == Active {
			return Active
		}
		status = Build
	}
	return status
}
