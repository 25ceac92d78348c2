package network

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// BindingInactive is the status of a binding to a host to which a port may move.
const BindingInactive = "INACTIVE"

// Binding is a port's binding to a host other than Port.Host. A Binding is either the INACTIVE binding to the
// target host of a live migration, or one of the bindings of a distributed port, whose status is BUILD and
// later ACTIVE.
type Binding struct {
	Host    string          `json:"host"`
	Status  string          `json:"status"`
	VNIC    string          `json:"vnic"`
	Profile json.RawMessage `json:"profile"`
	VIF     string          `json:"vif"`
	// the agent on the host of an INACTIVE binding reported the port as wired
	Plugged bool    `json:"plugged"`
	Switch  *Switch `json:"switch"` // as Port.Switch
}

// BindingChange contains the attributes of a port binding that a request sets; an attribute whose field is
// nil does not change.
type BindingChange struct {
	Host    *string
	VNIC    *string
	Profile json.RawMessage
}

// AllBindings returns all bindings of a port that is not distributed. If the port has a host, the active
// binding to that host is the first one.
func (p Port) AllBindings() []Binding {
	var all []Binding
	if p.Host != "" {
		all = append(all, Binding{
			Host:    p.Host,
			Status:  Active,
			VNIC:    p.VNIC,
			Profile: p.Profile,
			VIF:     p.VIF,
			Switch:  p.Switch,
		})
	}
	return append(all, p.Bindings...)
}

// CheckMultipleBindings returns a fault if the port must not have several bindings. Only the ports of servers
// may have several bindings.
func (p Port) CheckMultipleBindings() error {
	if strings.HasPrefix(p.DeviceOwner, "compute:") {
		return nil
	}
	return Faultf(BadRequest,
		"Bad port request: Port %s does not support multiple bindings, its device_owner is '%s'.",
		p.ID, p.DeviceOwner)
}

func (p Port) bindingAt(host string) int {
	return slices.IndexFunc(p.Bindings, func(b Binding) bool { return b.Host == host })
}

// AddInactiveBinding returns the port with a new INACTIVE binding to another host. AddInactiveBinding fails
// if no agent on the requested host can wire the port.
func (p Port) AddInactiveBinding(c BindingChange, agents []HostAgent) (Port, error) {
	if err := p.CheckMultipleBindings(); err != nil {
		return p, err
	}
	b := Binding{
		Host:    deref(c.Host),
		Status:  BindingInactive,
		VNIC:    "normal",
		Profile: json.RawMessage(`{}`),
	}
	if b.Host == p.Host || p.bindingAt(b.Host) >= 0 {
		return p, Faultf(BindingExists, "Binding for port %s on host %s already exists.", p.ID, b.Host)
	}
	b, err := b.updated(p, c, agents)
	p.Bindings = append(slices.Clone(p.Bindings), b)
	return p, err
}

// UpdateInactiveBinding returns the port with a changed INACTIVE binding.
func (p Port) UpdateInactiveBinding(host string, c BindingChange, agents []HostAgent) (Port, error) {
	if err := p.CheckMultipleBindings(); err != nil {
		return p, err
	}
	at := p.bindingAt(host)
	if at < 0 {
		return p, p.bindingNotFoundFault(host)
	}
	b, err := p.Bindings[at].updated(p, c, agents)
	p.Bindings = slices.Clone(p.Bindings)
	p.Bindings[at] = b
	return p, err
}

// updated returns the binding after the change, with the VIF type that follows from the agents on the
// binding's host.
func (b Binding) updated(p Port, c BindingChange, agents []HostAgent) (Binding, error) {
	set(&b.VNIC, c.VNIC)
	if c.Profile != nil {
		b.Profile = c.Profile
	}
	p.Host, p.VNIC, p.Profile = b.Host, b.VNIC, b.Profile
	bound := p.BindWith(agents)
	b.VIF, b.Switch = bound.VIF, bound.Switch
	if b.VIF == VIFFailed {
		return b, p.bindingFailedFault(b.Host)
	}
	b.Plugged = false
	return b, nil
}

// ActivateBinding makes the INACTIVE binding to the given host the port's active binding; the port has a
// block until the agent on that host has wired the port. ActivateBinding makes the binding to the port's
// previous host INACTIVE and unbound.
func (p Port) ActivateBinding(host string, pc PortContext, revision int64, now time.Time) (Port, error) {
	if err := p.CheckMultipleBindings(); err != nil {
		return p, err
	}
	if host == p.Host {
		return p, Faultf(BindingActive, "Binding for port %s on host %s is already active.", p.ID, host)
	}
	at := p.bindingAt(host)
	if at < 0 {
		return p, p.bindingNotFoundFault(host)
	}
	next := p.Bindings[at]
	bindings := slices.Delete(slices.Clone(p.Bindings), at, at+1)
	if p.Host != "" {
		bindings = append(bindings, Binding{
			Host:    p.Host,
			Status:  BindingInactive,
			VNIC:    p.VNIC,
			Profile: p.Profile,
			VIF:     VIFUnbound,
		})
	}
	p.Host, p.VNIC, p.Profile, p.Bindings = next.Host, next.VNIC, next.Profile, bindings
	if p = p.BindWith(pc.HostAgents); p.VIF == VIFFailed {
		if next.VIF == VIFUnbound {
			return p, p.bindingFailedFault(host)
		}
		// keep the VIF type even if the agent is no longer alive, because the server already runs on the host
		p.VIF = next.VIF
	}
	return p.UpdateBlocks(pc, BlockTrigger{BindingChanged: true, Revision: revision}, now), nil
}

// BindToNewHost returns the port with a new binding to Port.Host, whose VIF type follows from the agents on
// that host. BindToNewHost deletes an INACTIVE binding to the same host, and the bindings that the port had
// as a distributed port.
func (p Port) BindToNewHost(agents []HostAgent) Port {
	p = p.BindWith(agents)
	p.Bindings = slices.DeleteFunc(slices.Clone(p.Bindings),
		func(b Binding) bool { return b.Host == p.Host || b.Status != BindingInactive })
	return p
}

// DeleteInactiveBinding returns the port without its INACTIVE binding to the given host.
func (p Port) DeleteInactiveBinding(host string) (Port, error) {
	if err := p.CheckMultipleBindings(); err != nil {
		return p, err
	}
	at := p.bindingAt(host)
	if at < 0 {
		return p, p.bindingNotFoundFault(host)
	}
	p.Bindings = slices.Delete(slices.Clone(p.Bindings), at, at+1)
	return p, nil
}

func (p Port) bindingFailedFault(host string) error {
	return Faultf(BindingFailed, "Binding for port %s on host %s could not be created: %s.",
		p.ID, host, p.bindingFailureReason())
}

func (p Port) bindingNotFoundFault(host string) error {
	return Faultf(BindingNotFound, "Binding for port %s for host %s could not be found.", p.ID, host)
}

// applyInactiveBindingReport applies an agent's report from the host of an INACTIVE binding. Before Nova
// migrates the server to that host, Nova waits for the external event that follows from the report.
func (p Port) applyInactiveBindingReport(r Report) (Port, bool) {
	at := p.bindingAt(r.Host)
	if r.Entity != L2 || at < 0 || p.Bindings[at].Status != BindingInactive ||
		p.Bindings[at].VIF == VIFUnbound {
		return p, false
	}
	plugged := r.Event != ReportLost
	if r.Event == ReportBegun || p.Bindings[at].Plugged == plugged {
		return p, false
	}
	p.Bindings = slices.Clone(p.Bindings)
	p.Bindings[at].Plugged = plugged
	return p, true
}

// NovaEvents returns the Nova external events for the difference between the port and its previous state
// `before`. If a report caused the difference, the parameter `entity` is the entity of the report, otherwise
// it is empty; during a live migration only a report of the entity L2 produces a plugged event.
func (p Port) NovaEvents(before Port, entity string) []NovaEvent {
	var events []NovaEvent
	migrating := p.migrating() && entity != L2 && p.Status == Active
	if e, ok := p.NovaEventForStatus(before.Status, p.Status); ok && !migrating {
		events = append(events, e)
	}
	for _, b := range p.Bindings {
		was := before.bindingAt(b.Host)
		if b.Plugged && was >= 0 && !before.Bindings[was].Plugged {
			if e, ok := p.newNovaEvent(NovaVIFPlugged, "completed"); ok {
				events = append(events, e)
			}
		}
	}
	return events
}

func (p Port) migrating() bool { return p.migratingTo() != "" }

// migratingTo returns the target host of the live migration of the port's server, or an empty string if no
// live migration is in progress.
func (p Port) migratingTo() string {
	var profile struct {
		To string `json:"migrating_to"`
	}
	if json.Unmarshal(p.Profile, &profile) != nil {
		return ""
	}
	return profile.To
}

// Distributed reports whether the port belongs to a distributed router; such a port is wired on each host
// whose L2 agent reports it.
func (p Port) Distributed() bool { return p.DeviceOwner == DeviceOwnerDistributed }

// DeviceOwnerDistributed is the device owner of the ports of a distributed router, which each host wires.
const DeviceOwnerDistributed = "network:router_interface_distributed"

// applyDistributedReport applies the report of an L2 agent to a distributed port: the agent has begun,
// completed or removed the wiring of the port on the agent's host.
func (p Port) applyDistributedReport(r Report) (Port, bool) {
	if r.Entity != L2 || r.Host == "" {
		return p, false
	}
	at := p.bindingAt(r.Host)
	bindings := slices.Clone(p.Bindings)
	switch {
	case r.Event == ReportLost && at >= 0:
		bindings = slices.Delete(bindings, at, at+1)
	case r.Event == ReportBegun && at < 0 && p.AdminUp:
		bindings = append(bindings, Binding{
			Host:    r.Host,
			Status:  Build,
			VNIC:    p.VNIC,
			Profile: json.RawMessage(`{}`),
			VIF:     VIFDistributed,
		})
	case r.Event == ReportBegun && at >= 0 && p.AdminUp && bindings[at].Status != Build:
		bindings[at].Status = Build
	case (r.Event == "" || r.Event == ReportComplete) && at >= 0 && bindings[at].Status != Active:
		bindings[at].Status = Active
	default:
		return p, false
	}
	p.Bindings = bindings
	return p, true
}

// distributedStatus returns the status of a distributed port: ACTIVE if the port is wired on at least one
// host, otherwise BUILD if an agent has begun to wire the port, otherwise DOWN.
func (p Port) distributedStatus() string {
	status := Down
	for _, b := range p.Bindings {
		if b.Status == Active {
			return Active
		}
		status = Build
	}
	return status
}

// CheckBoundChange returns a fault if the port differs from its previous state `before` in attributes that
// cannot change while the port is bound.
func (p Port) CheckBoundChange(before Port) error {
	if !before.Bound() || p.Host == "" {
		return nil
	}
	if before.MAC != p.MAC {
		return Faultf(
			PortBound,
			"Unable to complete operation on port %s, port is already bound, port type: %s, old_mac %s, new_mac %s.",
			before.ID, before.VIF, before.MAC, p.MAC,
		)
	}
	if before.VNIC != p.VNIC {
		return Faultf(
			PortBound,
			"Unable to complete operation on port %s, port is already bound, its vnic_type %s cannot become %s.",
			before.ID, before.VNIC, p.VNIC,
		)
	}
	return nil
}
