package network

import (
	"encoding/json"
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

// Hosting is the data of AboutHosting and AboutAgent.
type Hosting struct {
	Host    string `json:"host"`
	AdminUp bool   `json:"admin_up"`
}
