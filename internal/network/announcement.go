package network

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Kinds of what agents are told about.
const (
	AboutNetwork = "network"
	AboutSubnet  = "subnet"
	AboutPort    = "port"
	AboutGroup   = "security_group"
	AboutRule    = "security_group_rule"
	AboutHosting = "hosting" // a DHCP agent, the host in the data, hosts the network or hosts it no longer
	AboutTunnel  = "tunnel"  // the data is a TunnelEnd
	AboutAgent   = "agent"   // an operator has enabled or disabled the DHCP agent whose host is in the data

	AboutRouterMAC = "router_mac" // a host has got one
)

// Events that agents are told of.
const (
	EventCreated     = "created"
	EventUpdated     = "updated"
	EventReaddressed = "readdressed" // updated, and what a DHCP agent says of the port is another
	EventDeleted     = "deleted"
)

// Announcement is something that agents shall be told.
type Announcement struct {
	ID      int64
	Network uuid.UUID
	Kind    string
	Event   string
	Object  uuid.UUID
	Data    json.RawMessage // of what is deleted, what it was, in the words of the Networking API
	Age     time.Duration
}

// Passage is the data of AboutPort, of what a port leaves behind when it changes.
type Passage struct {
	From   string      `json:"from,omitempty"`   // the host where it was, and is still tied to
	Groups []uuid.UUID `json:"groups,omitempty"` // whose members see another of them
}

// PassageOf is what a change of a port leaves behind.
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

// RouterMAC is the MAC under which distributed routers on a host send.
type RouterMAC struct {
	Host string `json:"host"`
	MAC  string `json:"mac_address"`
}

// Hosting is the data of AboutHosting and AboutAgent.
type Hosting struct {
	Host    string `json:"host"`
	AdminUp bool   `json:"admin_up"`
}
