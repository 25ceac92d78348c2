package network

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Types of Neutron agents that package network knows.
const (
	OVSAgent       = "Open vSwitch agent"
	NICSwitchAgent = "NIC Switch agent"
	MacvtapAgent   = "Macvtap agent"
	DHCPAgent      = "DHCP agent"
)

// L3Agent is the type of the agents that serve routers. berth has no routers, but shows the availability
// zones of these agents.
const L3Agent = "L3 agent"

// AvailabilityZone is an availability zone of networks or routers. The agents that report the zone serve the
// networks or routers in the zone.
type AvailabilityZone struct {
	Name      string
	Resource  string // "network" or "router"
	Available bool   // an agent in the zone is enabled
}

// AgentDownTime is Neutron's agent_down_time: an agent counts as alive if its last heartbeat (report_state)
// is at most AgentDownTime old.
const AgentDownTime = 75 * time.Second

// Agent is a Neutron agent: a process on a host that configures ports or networks on this host.
type Agent struct {
	ID             uuid.UUID
	Type           string
	Host           string
	Binary         string
	Topic          string
	Description    string
	AdminUp        bool
	Alive          bool   // the last heartbeat is at most AgentDownTime old
	Zone           string // availability zone; empty: the agent's heartbeats contain none
	Configurations json.RawMessage
	CreatedAt      time.Time
	StartedAt      time.Time
	HeartbeatAt    time.Time
	ServedCount    int64 // networks that a DHCP agent hosts, or ports bound on the host of an L2 agent
	AwaitingPorts  int64 // ports that wait for a report of this agent
}

// AgentState contains the data that an agent reports about itself with every heartbeat (report_state).
type AgentState struct {
	Type           string
	Host           string
	Binary         string
	Topic          string
	Zone           string // availability zone; empty: the heartbeat contains none
	Configurations json.RawMessage
	// versions of the RPC objects that the agent accepts; nil: the heartbeat contains none
	ResourceVersions map[string]string
}

// Limits of what the agents of one host can store.
const (
	MaxAgentsOfHost   = 16       // agents of one host, each with its own type
	MaxConfigurations = 64 << 10 // bytes of the configurations of one agent, as JSON
	// bytes of the vif_details in the configurations of a pseudo agent, as JSON: each port on the host gets
	// them, and networking-odl uses a few hundred bytes
	maxVIFDetails = 4 << 10
)

// Check returns a fault if the configurations are too large, or the vif_details in them.
func (s AgentState) Check() error {
	if len(s.Configurations) > MaxConfigurations {
		return Faultf(
			InvalidInput, "The 'configurations' of the agent are %d bytes long, more than %d.",
			len(s.Configurations), MaxConfigurations,
		)
	}
	if s.Type != ODLAgent {
		return nil
	}
	c, _ := HostAgent{Configurations: s.Configurations}.parseHostConfiguration()
	for _, v := range c.VNICs {
		if details, err := json.Marshal(v.Details); err != nil || len(details) > maxVIFDetails {
			return Faultf(InvalidInput, "The 'vif_details' for the VNIC type '%.50s' are longer than %d bytes.",
				v.VNIC, maxVIFDetails)
		}
	}
	return nil
}

// TooManyAgents returns the fault for a new agent on a host that has MaxAgentsOfHost agents.
func TooManyAgents(host string) *Fault {
	return Faultf(QuotaExceeded,
		"The host '%s' has agents of %d types, the maximum. Delete an agent that the host no longer runs.",
		host, MaxAgentsOfHost)
}

// Results of an agent's heartbeat.
const (
	AgentNew     = "new"
	AgentAlive   = "alive"
	AgentRevived = "revived"
)

// AgentChange holds the attributes that a request to update an agent sets. If a field of AgentChange is nil,
// the request does not change the attribute.
type AgentChange struct {
	AdminUp     *bool
	Description *string
}
