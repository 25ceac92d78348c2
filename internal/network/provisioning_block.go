package network

import (
	"slices"
	"time"
)

// Entities whose blocks the rules add and remove. A block of any other entity stays until this entity reports.
const (
	DHCP = "DHCP"
	L2   = "L2"
)

// Block is a provisioning block: an entity has to report before the port may become ACTIVE.
type Block struct {
	Entity   string     `json:"entity"`
	Host     string     `json:"host"`  // only reports from this host count; empty: see Hosts
	Epoch    int64      `json:"epoch"` // reports on an earlier revision of the port do not count
	State    string     `json:"state"` // Begun or Lost if that was the last report, else empty
	Since    time.Time  `json:"since"`
	Deadline *time.Time `json:"deadline"`
	Fatal    bool       `json:"fatal"` // the port's status becomes ERROR after the deadline
	// Hosts are the hosts of the agents that can report. This field and those below are informative; no rule depends on
	// them.
	Hosts []string `json:"hosts"`
	// Heard is the time of the last heartbeat of the agents that can report, if all of them have been silent for longer
	// than AgentDownTime.
	Heard *time.Time `json:"heard"`
	// Orphan is true if no agent is registered that can report; Disabled if an operator disabled all of them.
	Orphan   bool `json:"orphan"`
	Disabled bool `json:"disabled"`
}

// Patience is how long a block may exist, and what happens then.
type Patience struct {
	Limit time.Duration // 0: no limit
	Fatal bool          // the port's status becomes ERROR; otherwise the port keeps waiting
}

// Policy maps an entity to its block timeout. The empty key applies to all other entities.
type Policy map[string]Patience

// Limit returns the block timeout of an entity (0: none), and whether the port's status becomes ERROR afterwards.
func (p Policy) Limit(entity string) (limit time.Duration, fatal bool) {
	patience, ok := p[entity]
	if !ok {
		patience = p[""]
	}
	return patience.Limit, patience.Fatal && patience.Limit > 0
}

// Surroundings is the state outside of the port on which its blocks and status depend.
type Surroundings struct {
	DHCPHosts []string    // hosts of the DHCP agents that serve the port's network and report; empty if none of its subnets has DHCP
	Agents    []HostAgent // agents on the port's host
	Policy    Policy
}

// Cause says what changed about a port and therefore requires new work of an agent.
type Cause struct {
	Bound     bool  // the host, the profile or another part of the binding changed
	Addressed bool  // the MAC or an address changed
	Raised    bool  // admin_state_up changed to true; no agent could wire the port before
	Revision  int64 // revision of the port after the change
}

// DHCPOwner is the device owner of the ports of DHCP agents.
const DHCPOwner = "network:dhcp"

// Serving returns the device owners of ports that are deleted with their network (Neutron's AUTO_DELETE_PORT_OWNERS).
func Serving() []string {
	return []string{DHCPOwner, "network:distributed", "network:floatingip_agent_gateway"}
}

// ownersWithoutAgents are the device owners of ports for which no agent reports.
var ownersWithoutAgents = []string{
	"network:router_interface", "network:router_interface_distributed", "network:ha_router_replicated_interface",
	"network:router_gateway", "network:router_centralized_snat", DHCPOwner,
	"network:floatingip_agent_gateway", "network:router_ha_interface", "network:floatingip",
}

// needsBlock reports whether the entity still has work to do for the port. state is the last report of its agent: work
// that an agent has begun or lost must be completed for every device owner.
func (p Port) needsBlock(entity, state string, pc Surroundings) bool {
	exempt := slices.Contains(ownersWithoutAgents, p.DeviceOwner) || p.VIF == VIFPhysical
	switch entity {
	case L2:
		return p.Bound() && !p.Distributed() && (!exempt || state != "") && !p.controllerReportsNothing(pc.Agents)
	case DHCP:
		return len(pc.DHCPHosts) > 0 && p.DeviceOwner != "" && !exempt
	default:
		return true
	}
}

// Arm returns the port with the blocks that follow from a change. It removes blocks without remaining work and adds a
// block for new work.
func (p Port) Arm(pc Surroundings, c Cause, now time.Time) Port {
	blocks := make([]Block, 0, len(p.Blocks)+2)
	for _, b := range p.Blocks {
		again := b.Entity == L2 && c.Bound || b.Entity == DHCP && c.Addressed
		if b.Entity == L2 && c.Raised {
			b.Since = now
		}
		if !again && p.needsBlock(b.Entity, b.State, pc) {
			blocks = append(blocks, pc.withCurrentDeadline(b))
		}
	}
	if c.Addressed && p.needsBlock(DHCP, "", pc) {
		blocks = append(blocks, pc.newBlock(Block{Entity: DHCP, Epoch: c.Revision}, now))
	}
	if c.Bound {
		p.Epoch = c.Revision
		if p.Status == Build {
			p.Status = Down
		}
		if p.needsBlock(L2, "", pc) {
			blocks = append(blocks, pc.newBlock(Block{Entity: L2, Host: p.Host, Epoch: p.Epoch}, now))
		}
	}
	p.Blocks = blocks
	return p
}

// newBlock returns a block that starts now, with the deadline of the policy.
func (pc Surroundings) newBlock(b Block, now time.Time) Block {
	limit, fatal := pc.Policy.Limit(b.Entity)
	b.Since, b.Fatal, b.Deadline = now, fatal, nil
	if limit > 0 {
		deadline := now.Add(limit)
		b.Deadline = &deadline
	}
	return b
}

// withCurrentDeadline returns an existing block with the deadline of the current policy.
func (pc Surroundings) withCurrentDeadline(b Block) Block {
	now := pc.newBlock(b, b.Since)
	none := now.Deadline == nil || b.Deadline == nil
	if now.Fatal == b.Fatal && (none && now.Deadline == b.Deadline || !none && now.Deadline.Equal(*b.Deadline)) {
		return b
	}
	return now
}

// Rebind returns the port after another attempt to bind it, if its last binding failed. The attempt succeeds once a
// suitable agent is alive. revision is the revision of the port after the change.
func (p Port) Rebind(pc Surroundings, revision int64, now time.Time) Port {
	if p.VIF != VIFFailed || p.Bind(pc.Agents) == VIFFailed {
		return p
	}
	p = p.BoundBy(pc.Agents)
	return p.Arm(pc, Cause{Bound: true, Revision: revision}, now)
}

// Judge returns the port with its current status: ACTIVE if and only if it is bound, administratively up and has no
// block. With a block it is DOWN, BUILD while an agent is working on it, or ERROR after the deadline of a fatal block.
func (p Port) Judge(now time.Time) Port {
	was := p.Status
	p.Status = Down
	switch {
	case !p.Bound() || !p.AdminUp:
	case len(p.Blocks) == 0 && p.Distributed():
		p.Status = p.distributedStatus()
	case len(p.Blocks) == 0:
		p.Status = Active
	case slices.ContainsFunc(p.Blocks, func(b Block) bool { return b.Fatal && b.overdue(now) }):
		p.Status = Errored
	case was == Build:
		p.Status = Build
	}
	return p
}

func (b Block) overdue(now time.Time) bool { return b.Deadline != nil && !now.Before(*b.Deadline) }

// Next returns the time at which the status changes without further input, because a fatal deadline passes; nil if none
// is set.
func (p Port) Next() *time.Time {
	var next *time.Time
	for _, b := range p.Blocks {
		if b.Fatal && p.Status != Errored && p.Bound() && p.AdminUp && (next == nil || b.Deadline.Before(*next)) {
			next = b.Deadline
		}
	}
	return next
}
