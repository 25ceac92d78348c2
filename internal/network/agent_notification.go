package network

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Resources about which agents are notified.
const (
	AboutNetwork = "network"
	AboutSubnet  = "subnet"
	AboutPort    = "port"
	AboutGroup   = "security_group"
	AboutRule    = "security_group_rule"
	AboutHosting = "hosting" // the DHCP agent on the host in the data starts or stops hosting the network
	AboutTunnel  = "tunnel"  // the data is a tunnel endpoint
	AboutAgent   = "agent"   // an operator enabled or disabled the DHCP agent on the host in the data

	AboutRouterMAC = "router_mac" // a host got a MAC for distributed routers
)

// Events of agent notifications.
const (
	EventCreated     = "created"
	EventUpdated     = "updated"
	EventReaddressed = "readdressed" // updated, and the DHCP configuration of the port changed
	EventDeleted     = "deleted"
)

// Announcement is one notification for agents.
type Announcement struct {
	ID      int64
	Network uuid.UUID
	Kind    string
	Event   string
	Object  uuid.UUID
	Data    json.RawMessage // for a deletion the last state, in the format of the Networking API
	Age     time.Duration
}

// Passage is the data of a port notification: which other hosts and security groups the update affects.
type Passage struct {
	From   string      `json:"from,omitempty"`   // the previous host, if the port still has a binding there
	Groups []uuid.UUID `json:"groups,omitempty"` // security groups whose members changed
}

// PassageOf compares a port before and after an update.
func PassageOf(before, after Port) Passage {
	var p Passage
	if before.Host != after.Host && slices.ContainsFunc(after.Bindings, func(b Binding) bool { return b.Host == before.Host }) {
		p.From = before.Host
	}
	switch same := slices.Equal(before.SecurityGroups, after.SecurityGroups); {
	case !same:
		p.Groups = slices.Concat(before.SecurityGroups, after.SecurityGroups)
	case !slices.Equal(before.Addresses, after.Addresses), !slices.Equal(before.AddressPairs, after.AddressPairs):
		p.Groups = after.SecurityGroups
	}
	return p
}

// RouterMAC is the source MAC of distributed routers on a host (Neutron's dvr_host_macs).
type RouterMAC struct {
	Host string `json:"host"`
	MAC  string `json:"mac_address"`
}

// Hosting is the data of a notification for the DHCP agent on one host.
type Hosting struct {
	Host    string `json:"host"`
	AdminUp bool   `json:"admin_up"`
}
