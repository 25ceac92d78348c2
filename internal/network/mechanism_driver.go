package network

import (
	"encoding/json"
	"slices"
	"strings"
)

// VIF types (binding:vif_type).
const (
	VIFUnbound   = "unbound"
	VIFFailed    = "binding_failed"
	VIFOVS       = "ovs"
	VIFVhostUser = "vhostuser" // Open vSwitch and the device share memory
	// SR-IOV: a virtual function of a network card that switches in hardware
	VIFHardware = "hw_veb"
	VIFPhysical = "hostdev_physical" // the port is a whole network card, which no agent wires
	VIFMacvtap  = "macvtap"
	// a port of a distributed router, wired on each host whose L2 agent reports the port
	VIFDistributed = "distributed"
)

// HostAgent is an agent on a port's host, with the attributes on which the binding of the port depends.
type HostAgent struct {
	Type     string `json:"type"`
	Alive    bool   `json:"alive"`
	SmartNIC bool   `json:"smart_nic"` // the agent programs the SmartNIC of a bare-metal node
	// Configurations describe the host for an ODLAgent, or the switch for an OVSAgent.
	Configurations json.RawMessage `json:"configurations"`
}

// mechanism is a mechanism driver: the rules by which one type of agent wires ports.
type mechanism struct {
	name      string
	agentType string // type of the agent that wires the port; empty: no agent wires it
	vifType   string
	// provider:network_type of the networks whose ports the driver binds; nil: every type
	networkTypes []string
	supportsVNIC func(Port, HostAgent) bool
}

// supports reports whether the mechanism driver can bind the port with the agent.
func (m mechanism) supports(p Port, a HostAgent) bool {
	return (m.networkTypes == nil || slices.Contains(m.networkTypes, p.NetworkType)) && m.supportsVNIC(p, a)
}

// physicalNetworks are the types of the networks that are directly on a physical network.
var physicalNetworks = []string{Flat, VLAN}

// mechanisms are tried in order. The first mechanism in the list that supports a port binds the port.
var mechanisms = []mechanism{
	{"openvswitch", OVSAgent, VIFVhostUser, nil, func(p Port, a HostAgent) bool {
		return a.usesUserSpaceDatapath() &&
			(p.VNIC == "normal" || p.VNIC == "vdpa" || p.VNIC == "smart-nic" && a.SmartNIC)
	}},
	{"openvswitch", OVSAgent, VIFOVS, nil, func(p Port, a HostAgent) bool {
		switch p.VNIC {
		case "normal", "vdpa":
			return true
		case "direct":
			return p.wantsSwitchdev()
		case "smart-nic":
			return a.SmartNIC
		default:
			return false
		}
	}},
	{"sriovnicswitch", NICSwitchAgent, VIFHardware, physicalNetworks, func(p Port, _ HostAgent) bool {
		return p.VNIC == "direct" && !p.wantsSwitchdev() ||
			slices.Contains([]string{"macvtap", "accelerator-direct", "accelerator-direct-physical"}, p.VNIC)
	}},
	{
		"sriovnicswitch",
		"",
		VIFPhysical,
		physicalNetworks,
		func(p Port, _ HostAgent) bool { return p.VNIC == "direct-physical" },
	},
	{
		"macvtap",
		MacvtapAgent,
		VIFMacvtap,
		physicalNetworks,
		func(p Port, _ HostAgent) bool { return p.VNIC == "normal" },
	},
}

// AgentTypeByVIF maps each VIF type to the type of the agent that wires the ports of this VIF type. The
// result of AgentTypeByVIF does not apply to a port that a controller wires.
func AgentTypeByVIF() map[string]string {
	types := map[string]string{}
	for _, m := range mechanisms {
		if m.agentType != "" {
			types[m.vifType] = m.agentType
		}
	}
	return types
}

// L2AgentTypes returns the types of the agents that wire ports.
func L2AgentTypes() []string { return []string{OVSAgent, NICSwitchAgent, MacvtapAgent, ODLAgent} }

// wantsSwitchdev reports whether the port's binding profile requests a virtual function with Open vSwitch
// hardware offload.
func (p Port) wantsSwitchdev() bool {
	var profile struct{ Capabilities []string }
	return json.Unmarshal(p.Profile, &profile) == nil && slices.Contains(profile.Capabilities, "switchdev")
}

// Bound reports whether the port has a successful binding.
func (p Port) Bound() bool { return p.VIF != VIFUnbound && p.VIF != VIFFailed }

// VIFTypeWith returns the VIF type that the port gets when it is bound on its host. The first mechanism
// driver that supports the port, and that has a live agent on the host or needs no agent, determines the VIF
// type. If no mechanism driver can bind the port, the OpenDaylight controller determines the VIF type.
func (p Port) VIFTypeWith(agents []HostAgent) string { return p.BindWith(agents).VIF }

// BindWith returns the port as it is after binding: the agents on the port's host determine the VIF type, the
// VIF details and the switch.
func (p Port) BindWith(agents []HostAgent) Port {
	p.ControllerVIFDetails, p.Switch = nil, nil
	var by HostAgent
	if p.VIF, by = p.bindByMechanism(agents); p.VIF != VIFFailed {
		if p.VIF == VIFOVS || p.VIF == VIFVhostUser {
			p.Switch = by.switchFor(p)
		}
		return p
	}
	if vif, details, ok := p.bindByController(agents); ok {
		p.VIF, p.ControllerVIFDetails = vif, details
	}
	return p
}

// bindByMechanism returns the VIF type from the mechanisms, and the agent that wires the port.
func (p Port) bindByMechanism(agents []HostAgent) (vif string, by HostAgent) {
	if p.Distributed() {
		return VIFDistributed, by
	}
	if p.Host == "" {
		return VIFUnbound, by
	}
	for _, m := range mechanisms {
		if m.agentType == "" && m.supports(p, by) {
			return m.vifType, by
		}
		at := slices.IndexFunc(agents, func(a HostAgent) bool { return a.Type == m.agentType && a.Alive })
		if at >= 0 && m.supports(p, agents[at]) {
			return m.vifType, agents[at]
		}
	}
	return VIFFailed, by
}

// MechanismDriver returns the name of the mechanism driver that bound the port, or an empty string if the
// port is not bound.
func (p Port) MechanismDriver() string {
	if p.WiredByController() {
		return controllerDriver
	}
	at := slices.IndexFunc(mechanisms, func(m mechanism) bool { return m.vifType == p.VIF })
	if at < 0 {
		return ""
	}
	return mechanisms[at].name
}

// bindingFailureReason explains why no agent on the host can wire the port.
func (p Port) bindingFailureReason() string {
	var agents []string
	for _, m := range mechanisms {
		if m.supports(p, HostAgent{SmartNIC: true}) {
			agents = append(agents, m.agentType)
		}
	}
	if len(agents) == 0 {
		return "binding to " + p.Host + " failed: no mechanism driver supports vnic_type " + p.VNIC + " on a network of the type " + p.NetworkType
	}
	return "binding to " + p.Host + " failed: no live " + strings.Join(agents, " or ") + " there can wire it"
}
