package network

import (
	"encoding/json"
	"path"
	"slices"
)

// Switch is the Open vSwitch that wires a port, as far as whoever plugs something into the port has to know it.
type Switch struct {
	Datapath string `json:"datapath"` // system, or netdev where packets do not pass through the kernel
	Bridge   string `json:"bridge"`
	Hybrid   bool   `json:"hybrid"`           // the packet filter needs a bridge of its own before this one
	Socket   string `json:"socket,omitempty"` // where device and switch meet, if the port is VIFVhostUser
	Listens  bool   `json:"listens"`          // the device at its socket, and not the switch
}

// usualSwitch is what an agent has that says nothing else.
var usualSwitch = Switch{Datapath: "system", Bridge: "br-int"}

// switchConfiguration is what an Open vSwitch agent says about its switch.
type switchConfiguration struct {
	Datapath     string `json:"datapath_type"`
	Bridge       string `json:"integration_bridge"`
	Hybrid       bool   `json:"ovs_hybrid_plug"`
	Sockets      string `json:"vhostuser_socket_dir"`
	Capabilities struct {
		Interfaces []string `json:"iface_types"`
	} `json:"ovs_capabilities"`
}

// Interfaces of a switch to which devices are plugged by a socket that it, or they, listen at.
const (
	switchListens = "dpdkvhostuser"
	deviceListens = "dpdkvhostuserclient"
)

// socketPrefix begins the name of a port's socket.
const socketPrefix = "vhu"

// longest is how long a text of an agent may be that is kept with every port.
const longest = 255

// ofSwitch reads the agent's configurations, which may be anything: who says nonsense, says nothing.
func (a HostAgent) ofSwitch() switchConfiguration {
	var c switchConfiguration
	if a.Type != OVSAgent || json.Unmarshal(a.Configurations, &c) != nil {
		return switchConfiguration{}
	}
	for _, said := range []*string{&c.Datapath, &c.Bridge, &c.Sockets} {
		if len(*said) > longest {
			*said = ""
		}
	}
	return c
}

// inUserSpace tells whether the agent's switch is one that devices share memory with.
func (a HostAgent) inUserSpace() bool {
	c := a.ofSwitch()
	return c.Datapath == "netdev" && slices.ContainsFunc(c.Capabilities.Interfaces, func(kind string) bool { return kind == switchListens || kind == deviceListens })
}

// switchOf is the agent's switch for the port; nil if it is the usual one.
func (a HostAgent) switchOf(p Port) *Switch {
	c, s := a.ofSwitch(), usualSwitch
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
		s.Socket = path.Join(c.Sockets, (socketPrefix + p.ID.String())[:deviceName])
		s.Listens = slices.Contains(c.Capabilities.Interfaces, deviceListens)
	} else {
		s.Hybrid = c.Hybrid
	}
	if s == usualSwitch {
		return nil
	}
	return &s
}

// VIFDetails is what whoever plugs something into the port has to know, in the words of binding:vif_details; nil if nothing.
func (p Port) VIFDetails() map[string]any {
	s := usualSwitch
	if p.Switch != nil {
		s = *p.Switch
	}
	if p.Carrying != nil {
		s.Bridge = p.Carrying.Bridge()
	}
	switch p.VIF {
	case VIFOVS:
		return map[string]any{"connectivity": "l2", "port_filter": true, "ovs_hybrid_plug": s.Hybrid, "datapath_type": s.Datapath, "bridge_name": s.Bridge}
	case VIFVhostUser:
		mode := map[bool]string{true: "server", false: "client"}[s.Listens]
		return map[string]any{"connectivity": "l2", "port_filter": false, "ovs_hybrid_plug": false, "datapath_type": s.Datapath, "bridge_name": s.Bridge,
			"vhostuser_mode": mode, "vhostuser_ovs_plug": true, "vhostuser_socket": s.Socket}
	default:
		return nil
	}
}
