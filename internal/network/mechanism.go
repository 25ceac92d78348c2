package network

import (
	"encoding/json"
	"slices"
	"strings"
)

// VIF types: what binding a port to a host came to.
const (
	VIFUnbound     = "unbound"
	VIFFailed      = "binding_failed"
	VIFOVS         = "ovs"
	VIFVhostUser   = "vhostuser"        // Open vSwitch and the device share memory
	VIFHardware    = "hw_veb"           // a virtual function that the NIC switches
	VIFPhysical    = "hostdev_physical" // a whole network card; nobody has to wire it
	VIFMacvtap     = "macvtap"
	VIFDistributed = "distributed" // on every host that asks for it
)

// HostAgent is an agent on a port's host, as far as binding depends on it.
type HostAgent struct {
	Type     string `json:"type"`
	Alive    bool   `json:"alive"`
	SmartNIC bool   `json:"smart_nic"` // it says that it programs the card of a bare machine
	// Configurations are what a controller says about the host, or an OVSAgent about its switch; NetworkType is that of the port's
	// network, of an ODLAgent only.
	Configurations json.RawMessage `json:"configurations"`
	NetworkType    string          `json:"network_type"`
}

// mechanism is a way to wire ports.
type mechanism struct {
	name  string
	agent string // who wires it; empty if nobody has to
	vif   string
	takes func(Port, HostAgent) bool
}

// mechanisms are tried in order; the first that takes a port binds it.
var mechanisms = []mechanism{
	{"openvswitch", OVSAgent, VIFVhostUser, func(p Port, a HostAgent) bool {
		return a.inUserSpace() && (p.VNIC == "normal" || p.VNIC == "vdpa" || p.VNIC == "smart-nic" && a.SmartNIC)
	}},
	{"openvswitch", OVSAgent, VIFOVS, func(p Port, a HostAgent) bool {
		switch p.VNIC {
		case "normal", "vdpa":
			return true
		case "direct":
			return p.switchdev()
		case "smart-nic":
			return a.SmartNIC
		default:
			return false
		}
	}},
	{"sriovnicswitch", NICSwitchAgent, VIFHardware, func(p Port, _ HostAgent) bool {
		return p.VNIC == "direct" && !p.switchdev() || p.VNIC == "macvtap" || p.VNIC == "accelerator-direct"
	}},
	{"sriovnicswitch", "", VIFPhysical, func(p Port, _ HostAgent) bool {
		return p.VNIC == "direct-physical" || p.VNIC == "accelerator-direct-physical"
	}},
	{"macvtap", MacvtapAgent, VIFMacvtap, func(p Port, _ HostAgent) bool { return p.VNIC == "normal" }},
}

// Wirers are, by the VIF type of a port that no controller wires, the types of the agents that do.
func Wirers() map[string]string {
	wirers := map[string]string{}
	for _, m := range mechanisms {
		if m.agent != "" {
			wirers[m.vif] = m.agent
		}
	}
	return wirers
}

// L2Agents are the types of the agents that wire ports.
func L2Agents() []string { return []string{OVSAgent, NICSwitchAgent, MacvtapAgent, ODLAgent} }

// switchdev tells whether the port asks for a virtual function that Open vSwitch offloads to.
func (p Port) switchdev() bool {
	var profile struct{ Capabilities []string }
	return json.Unmarshal(p.Profile, &profile) == nil && slices.Contains(profile.Capabilities, "switchdev")
}

// Bound tells whether the port is bound.
func (p Port) Bound() bool { return p.VIF != VIFUnbound && p.VIF != VIFFailed }

// Bind is the VIF type that the port gets on its host with the agents there: that of the first mechanism that takes
// it and whose agent lives, else what a controller makes of it.
func (p Port) Bind(agents []HostAgent) string { return p.BoundBy(agents).VIF }

// BoundBy is the port bound on its host by the agents there.
func (p Port) BoundBy(agents []HostAgent) Port {
	p.Details, p.Switch = nil, nil
	var by HostAgent
	if p.VIF, by = p.mechanically(agents); p.VIF != VIFFailed {
		if p.VIF == VIFOVS || p.VIF == VIFVhostUser {
			p.Switch = by.switchOf(p)
		}
		return p
	}
	if vif, details, ok := p.byController(agents); ok {
		p.VIF, p.Details = vif, details
	}
	return p
}

// mechanically is the VIF type that an agent gives the port, and which one does.
func (p Port) mechanically(agents []HostAgent) (vif string, by HostAgent) {
	if p.Distributed() {
		return VIFDistributed, by
	}
	if p.Host == "" {
		return VIFUnbound, by
	}
	for _, m := range mechanisms {
		if m.agent == "" && m.takes(p, by) {
			return m.vif, by
		}
		at := slices.IndexFunc(agents, func(a HostAgent) bool { return a.Type == m.agent && a.Alive })
		if at >= 0 && m.takes(p, agents[at]) {
			return m.vif, agents[at]
		}
	}
	return VIFFailed, by
}

// Driver is the name of the mechanism that bound the port; empty if none did.
func (p Port) Driver() string {
	if p.ByController() {
		return controllerDriver
	}
	at := slices.IndexFunc(mechanisms, func(m mechanism) bool { return m.vif == p.VIF })
	if at < 0 {
		return ""
	}
	return mechanisms[at].name
}

// unbindable says why binding the port to its host failed.
func (p Port) unbindable() string {
	var agents []string
	for _, m := range mechanisms {
		if m.takes(p, HostAgent{SmartNIC: true}) {
			agents = append(agents, m.agent)
		}
	}
	if len(agents) == 0 {
		return "binding to " + p.Host + " failed: no mechanism wires vnic_type " + p.VNIC
	}
	return "binding to " + p.Host + " failed: no live " + strings.Join(agents, " or ") + " there can wire it"
}
