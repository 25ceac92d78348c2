package network

import (
	"slices"
	"time"
)

// Entities whose provisioning blocks the rules add and remove. If a block belongs to an entity other than
// DHCP and L2, the rules remove the block only when the entity reports that its work is complete.
const (
	DHCP = "DHCP"
	L2   = "L2"
)

// Block is a provisioning block: an entity has to report before the port may become ACTIVE.
type Block struct {
	Entity      string `json:"entity"`
	Host        string `json:"host"`         // only reports from this host count; empty: see AgentHosts
	MinRevision int64  `json:"min_revision"` // reports on an earlier revision of the port do not count
	// ReportBegun or ReportLost if that was the last report, else empty
	State string `json:"state"`
	// who has added the block through the API or a signal; empty: the rules of this package
	Owner    string     `json:"owner"`
	Since    time.Time  `json:"since"`
	Deadline *time.Time `json:"deadline"`
	Fatal    bool       `json:"fatal"` // the port's status becomes ERROR after the deadline
	// AgentHosts are the hosts of the agents whose report can remove the block. AgentHosts, SilentSince,
	// AgentUnregistered and AgentDisabled are informative; no rule depends on them.
	AgentHosts []string `json:"hosts"`
	// SilentSince is the time of the last heartbeat of the agents whose report can remove the block.
	// SilentSince is set only if all agents whose report can remove the block have been silent for longer
	// than AgentDownTime.
	SilentSince *time.Time `json:"heard"`
	// AgentUnregistered is true if no agent is registered whose report can remove the block; AgentDisabled is
	// true if an operator has disabled all agents whose report can remove the block.
	AgentUnregistered bool `json:"orphan"`
	AgentDisabled     bool `json:"disabled"`
}

// BlockTimeout says how long a block of a port may exist, and what happens to the port after this time.
type BlockTimeout struct {
	Limit time.Duration // 0: no limit
	Fatal bool          // the port's status becomes ERROR; otherwise the port keeps waiting
}

// BlockPolicy maps an entity to its block timeout. The entry of a BlockPolicy with the empty key applies to
// each entity that has no entry of its own.
type BlockPolicy map[string]BlockTimeout

// Limit returns the block timeout of an entity, and whether the port's status becomes ERROR after this time;
// 0 means that the entity has no block timeout.
func (p BlockPolicy) Limit(entity string) (limit time.Duration, fatal bool) {
	patience, ok := p[entity]
	if !ok {
		patience = p[""]
	}
	return patience.Limit, patience.Fatal && patience.Limit > 0
}

// PortContext is the state outside a port on which the port's blocks and status depend.
type PortContext struct {
	// hosts of the DHCP agents that serve the port's network and report; empty if no subnet of the network
	// has DHCP
	DHCPHosts   []string
	HostAgents  []HostAgent // agents on the port's host
	BlockPolicy BlockPolicy
}

// BlockTrigger says what changed about a port and therefore requires new work of an agent.
type BlockTrigger struct {
	BindingChanged   bool  // the host, the profile or another part of the binding changed
	AddressesChanged bool  // the MAC or an address changed
	BroughtUp        bool  // admin_state_up changed to true; no agent could wire the port before
	Revision         int64 // revision of the port after the change
}

// DeviceOwnerDHCP is the device owner of the ports of DHCP agents.
const DeviceOwnerDHCP = "network:dhcp"

// AutoDeletedPortOwners returns the device owners of ports that are deleted with their network (Neutron's
// AUTO_DELETE_PORT_OWNERS).
func AutoDeletedPortOwners() []string {
	return []string{DeviceOwnerDHCP, "network:distributed", "network:floatingip_agent_gateway"}
}

// ownersWithoutBlocks are the device owners of ports that do not wait for agents. Such a port gets no DHCP
// block, and gets an L2 block only after an L2 agent has reported the event `begun` or `lost` for the port.
var ownersWithoutBlocks = []string{
	"network:router_interface", "network:router_interface_distributed", "network:ha_router_replicated_interface",
	"network:router_gateway", "network:router_centralized_snat", DeviceOwnerDHCP,
	"network:floatingip_agent_gateway", "network:router_ha_interface", "network:floatingip",
}

// needsBlock reports whether the entity still has work to do for the port. The parameter `state` is the last
// report of the entity's agent. If an agent has begun its work for a port or has lost the finished work, the
// agent must complete the work, whatever the device owner of the port is.
func (p Port) needsBlock(entity, state string, pc PortContext) bool {
	exempt := slices.Contains(ownersWithoutBlocks, p.DeviceOwner) || p.VIF == VIFPhysical
	switch entity {
	case L2:
		return p.Bound() && !p.Distributed() && (!exempt || state != "") &&
			!p.controllerReportsNothing(pc.HostAgents)
	case DHCP:
		return len(pc.DHCPHosts) > 0 && p.DeviceOwner != "" && !exempt
	default:
		return true
	}
}

// UpdateBlocks returns the port with the provisioning blocks that follow from a change. UpdateBlocks removes
// each block whose entity has no work left to do for the port, and adds a block for each entity that has new
// work.
func (p Port) UpdateBlocks(pc PortContext, c BlockTrigger, now time.Time) Port {
	blocks := make([]Block, 0, len(p.Blocks)+2)
	for _, b := range p.Blocks {
		again := b.Entity == L2 && c.BindingChanged || b.Entity == DHCP && c.AddressesChanged
		if b.Entity == L2 && c.BroughtUp {
			b.Since = now
		}
		if !again && p.needsBlock(b.Entity, b.State, pc) {
			blocks = append(blocks, pc.withCurrentDeadline(b))
		}
	}
	if c.AddressesChanged && p.needsBlock(DHCP, "", pc) {
		blocks = append(blocks, pc.newBlock(Block{Entity: DHCP, MinRevision: c.Revision}, now))
	}
	if c.BindingChanged {
		p.BindingRevision = c.Revision
		if p.Status == Build {
			p.Status = Down
		}
		if p.needsBlock(L2, "", pc) {
			blocks = append(blocks,
				pc.newBlock(Block{Entity: L2, Host: p.Host, MinRevision: p.BindingRevision}, now))
		}
	}
	p.Blocks = blocks
	return p
}

// newBlock returns a block that begins at the time `now` and has the deadline that follows from the
// BlockPolicy.
func (pc PortContext) newBlock(b Block, now time.Time) Block {
	limit, fatal := pc.BlockPolicy.Limit(b.Entity)
	b.Since, b.Fatal, b.Deadline = now, fatal, nil
	if limit > 0 {
		deadline := now.Add(limit)
		b.Deadline = &deadline
	}
	return b
}

// withCurrentDeadline returns an existing block with the deadline that follows from the current BlockPolicy.
// A block with an owner keeps its deadline.
func (pc PortContext) withCurrentDeadline(b Block) Block {
	if b.Owner != "" {
		return b
	}
	now := pc.newBlock(b, b.Since)
	none := now.Deadline == nil || b.Deadline == nil
	if now.Fatal == b.Fatal &&
		(none && now.Deadline == b.Deadline || !none && now.Deadline.Equal(*b.Deadline)) {
		return b
	}
	return now
}

// RetryBinding tries to bind the port again if the port's last binding failed. RetryBinding can bind the port
// only if a suitable agent is alive. The parameter `revision` is the revision number of the port after the
// change.
func (p Port) RetryBinding(pc PortContext, revision int64, now time.Time) Port {
	if p.VIF != VIFFailed || p.VIFTypeWith(pc.HostAgents) == VIFFailed {
		return p
	}
	p = p.BindWith(pc.HostAgents)
	return p.UpdateBlocks(pc, BlockTrigger{BindingChanged: true, Revision: revision}, now)
}

// UpdateStatus returns the port with its current status: ACTIVE if and only if the port is bound, is
// administratively up and has no block. A distributed port must also be wired on at least one host (see
// distributedStatus). A port with a block is ERROR after the deadline of a fatal block, otherwise BUILD while
// an agent is working on the port, otherwise DOWN.
func (p Port) UpdateStatus(now time.Time) Port {
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

// NextDeadline returns the time at which the status of the port becomes ERROR because the deadline of a fatal
// block passes, or nil if no fatal block has a deadline.
func (p Port) NextDeadline() *time.Time {
	var next *time.Time
	for _, b := range p.Blocks {
		if b.Fatal && p.Status != Errored && p.Bound() && p.AdminUp &&
			(next == nil || b.Deadline.Before(*next)) {
			next = b.Deadline
		}
	}
	return next
}
