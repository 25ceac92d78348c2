package network

import (
	"encoding/json"
	"path"
	"slices"
)

// Switch describes the Open vSwitch that wires a port, for Nova's VIF driver.
type Switch struct {
	Datapath string `json:"datapath"` // system, or netdev (DPDK: packets bypass the kernel)
	Bridge   string `json:"bridge"`
	// ovs_hybrid_plug: the firewall needs a Linux bridge in front of the Open vSwitch bridge
	HybridPlug bool   `json:"hybrid"`
	Socket     string `json:"socket,omitempty"` // vhost-user socket, for VIFVhostUser only
	// the device, not the switch, is the server side of the socket
	DeviceListens bool `json:"listens"`
}

// defaultSwitch is the Open vSwitch that an agent uses if the agent's configurations do not name a datapath
// type or an integration bridge.
var defaultSwitch = Switch{Datapath: "system", Bridge: "br-int"}

// switchConfiguration is the part of an Open vSwitch agent's `configurations` that describes the agent's
// switch.
type switchConfiguration struct {
	Datapath     string `json:"datapath_type"`
	Bridge       string `json:"integration_bridge"`
	Hybrid       bool   `json:"ovs_hybrid_plug"`
	Sockets      string `json:"vhostuser_socket_dir"`
	Capabilities struct {
		Interfaces []string `json:"iface_types"`
	} `json:"ovs_capabilities"`
}

// Open vSwitch interface types for vhost-user: the switch or the device is the server side of the socket.
const (
	switchListens = "dpdkvhostuser"
	deviceListens = "dpdkvhostuserclient"
)

// socketPrefix is the prefix of a port's vhost-user socket name.
const socketPrefix = "vhu"

// maxAgentText is the maximum length of a text from an agent's configurations that is stored with a port.
const maxAgentText = 255

// parseSwitchConfiguration decodes the agent's configurations. parseSwitchConfiguration ignores values that
// are malformed or too long.
func (a HostAgent) parseSwitchConfiguration() switchConfiguration {
	var c switchConfiguration
	if a.Type != OVSAgent || json.Unmarshal(a.Configurations, &c) != nil {
		return switchConfiguration{}
	}
	for _, text := range []*string{&c.Datapath, &c.Bridge, &c.Sockets} {
		if len(*text) > maxAgentText {
			*text = ""
		}
	}
	return c
}

// usesUserSpaceDatapath reports whether devices connect to the agent's switch by shared memory (DPDK).
func (a HostAgent) usesUserSpaceDatapath() bool {
	c := a.parseSwitchConfiguration()
	listens := func(kind string) bool { return kind == switchListens || kind == deviceListens }
	return c.Datapath == "netdev" && slices.ContainsFunc(c.Capabilities.Interfaces, listens)
}

// switchFor returns the description of the agent's switch for the port's binding:vif_details, or nil if the
// agent uses the default switch.
func (a HostAgent) switchFor(p Port) *Switch {
	c, s := a.parseSwitchConfiguration(), defaultSwitch
	if c.Datapath != "" {
		s.Datapath = c.Datapath
	}
	if c.Bridge != "" {
		s.Bridge = c.Bridge
	}
	if p.VIF == VIFVhostUser {
		if c.Sockets == "" {
			c.Sockets = "/var/run/openvswitch"
		}
		s.Socket = path.Join(c.Sockets, (socketPrefix + p.ID.String())[:maxDeviceName])
		s.DeviceListens = slices.Contains(c.Capabilities.Interfaces, deviceListens)
	} else {
		s.HybridPlug = c.Hybrid
	}
	if s == defaultSwitch {
		return nil
	}
	return &s
}

// VIFDetails returns binding:vif_details of the port, or nil if the port has no VIF details.
func (p Port) VIFDetails() map[string]any {
	s := defaultSwitch
	if p.Switch != nil {
		s = *p.Switch
	}
	if p.TrunkDetails != nil {
		s.Bridge = p.TrunkDetails.BridgeName()
	}
	switch p.VIF {
	case VIFOVS:
		return map[string]any{
			"connectivity":    "l2",
			"port_filter":     true,
			"ovs_hybrid_plug": s.HybridPlug,
			"datapath_type":   s.Datapath,
			"bridge_name":     s.Bridge,
		}
	case VIFVhostUser:
		mode := map[bool]string{true: "server", false: "client"}[s.DeviceListens]
		return map[string]any{
			"connectivity":       "l2",
			"port_filter":        false,
			"ovs_hybrid_plug":    false,
			"datapath_type":      s.Datapath,
			"bridge_name":        s.Bridge,
			"vhostuser_mode":     mode,
			"vhostuser_ovs_plug": true,
			"vhostuser_socket":   s.Socket,
		}
	default:
		return nil
	}
}
