package network

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Agent types that mean something to the rules.
const (
	OVSAgent       = "Open vSwitch agent"
	NICSwitchAgent = "NIC Switch agent"
	MacvtapAgent   = "Macvtap agent"
	DHCPAgent      = "DHCP agent"
)

// AgentDownTime is how old an agent's last report may be while it counts as alive.
const AgentDownTime = 75 * time.Second

// Agent is a process on a host that does a part of the work.
type Agent struct {
	ID             uuid.UUID
	Type           string
	Host           string
	Binary         string
	Topic          string
	Description    string
	AdminUp        bool
	Alive          bool // its last report is younger than AgentDownTime
	Configurations json.RawMessage
	CreatedAt      time.Time
	StartedAt      time.Time
	HeartbeatAt    time.Time
	Held           int64 // networks that it hosts, or ports bound where it wires them
	Awaited        int64 // ports that wait for its word
}

// State is what an agent tells about itself with every heartbeat.
type State struct {
	Type           string
	Host           string
	Binary         string
	Topic          string
	Configurations json.RawMessage
	Versions       map[string]string // of the objects that it is sent; nil if it does not say, as when it has said before
}

// What a heartbeat made of an agent.
const (
	AgentNew     = "new"
	AgentAlive   = "alive"
	AgentRevived = "revived"
)

// AgentChange is what a request says about an agent; nil means nothing.
type AgentChange struct {
	AdminUp     *bool
	Description *string
}
