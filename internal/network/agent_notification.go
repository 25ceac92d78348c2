package network

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Types of resources about which berth notifies Neutron agents.
const (
	ResourceNetwork           = "network"
	ResourceSubnet            = "subnet"
	ResourcePort              = "port"
	ResourceSecurityGroup     = "security_group"
	ResourceSecurityGroupRule = "security_group_rule"
	// the DHCP agent on the host in the data starts or stops hosting the network
	ResourceDHCPHosting = "hosting"
	ResourceTunnel      = "tunnel" // the data is a tunnel endpoint
	// an operator enabled or disabled the DHCP agent on the host in the data
	ResourceDHCPAgent = "agent"

	ResourceDVRMAC = "router_mac" // a host got a MAC for distributed routers
)

// Events about which berth notifies Neutron agents.
const (
	EventCreated     = "created"
	EventUpdated     = "updated"
	EventDHCPUpdated = "readdressed" // the port was updated, and its DHCP configuration has changed
	EventDeleted     = "deleted"
)

// AgentNotification is one notification to Neutron agents about an event of a resource.
type AgentNotification struct {
	ID int64
	// the network that the notification is about; the result of NotificationQueue if it is about no network.
	// The notifications with the same value are sent in order
	Network    uuid.UUID
	Project    string // of a security group or rule that is recorded; empty in a notification that was read
	Resource   string
	Event      string
	ResourceID uuid.UUID
	Data       json.RawMessage // for a deletion the last state, in the format of the Networking API
	Age        time.Duration
	Claimed    bool // a process sends the notification now, without Temporal
}

// NotificationQueue returns the AgentNotification.Network of the notifications about a resource that belongs
// to no network. The security groups of a project and their rules have one queue, so that their notifications
// keep their order, but wait for those of no other project. Every other resource has a queue of its own, and
// its project is empty.
func NotificationQueue(resource, project string) uuid.UUID {
	if resource == ResourceSecurityGroupRule {
		resource = ResourceSecurityGroup
	}
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("berth:agent-notifications:"+resource+":"+project))
}

// IsNotificationQueue reports whether an AgentNotification.Network is a result of NotificationQueue. The IDs
// of networks are random.
func IsNotificationQueue(id uuid.UUID) bool { return id.Version() == 5 }

// NotificationSubject says what the notifications with the given value of AgentNotification.Network are
// about. The parameter `project` is the project of their security groups, if it is known.
func NotificationSubject(queue, project string) string {
	id, err := uuid.Parse(queue)
	switch {
	case err != nil, !IsNotificationQueue(id):
		return "network " + queue
	case id == NotificationQueue(ResourceTunnel, ""):
		return "tunnel endpoints"
	case id == NotificationQueue(ResourceDVRMAC, ""):
		return "MACs of distributed routers"
	case id == NotificationQueue(ResourceDHCPAgent, ""):
		return "states of DHCP agents"
	case project == "":
		return "the security groups of a project"
	}
	return "the security groups of project " + project
}

// PortSideEffects says which other host and which security groups the update of a port affects. The
// notification about the update contains the PortSideEffects.
type PortSideEffects struct {
	// the port's previous host; set only if the port still has a binding to that host
	PreviousHost   string      `json:"from,omitempty"`
	AffectedGroups []uuid.UUID `json:"groups,omitempty"` // security groups whose members changed
}

// SideEffectsOf compares a port before and after an update.
func SideEffectsOf(before, after Port) PortSideEffects {
	var p PortSideEffects
	if before.Host != after.Host &&
		slices.ContainsFunc(after.Bindings, func(b Binding) bool { return b.Host == before.Host }) {
		p.PreviousHost = before.Host
	}
	switch same := slices.Equal(before.SecurityGroups, after.SecurityGroups); {
	case !same:
		p.AffectedGroups = slices.Concat(before.SecurityGroups, after.SecurityGroups)
	case !slices.Equal(before.Addresses, after.Addresses),
		!slices.Equal(before.AddressPairs, after.AddressPairs):
		p.AffectedGroups = after.SecurityGroups
	}
	return p
}

// DVRMAC is the source MAC of distributed routers on a host (Neutron's dvr_host_macs).
type DVRMAC struct {
	Host string `json:"host"`
	MAC  string `json:"mac_address"`
}

// DHCPAgentHost is the data of a notification for the DHCP agent on one host.
type DHCPAgentHost struct {
	Host    string `json:"host"`
	AdminUp bool   `json:"admin_up"`
}
