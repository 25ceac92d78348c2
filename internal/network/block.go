package network

import (
	"slices"
	"time"
)

// The entities whose blocks the rules set and lift. Blocks of any other name stand until their entity reports.
const (
	DHCP = "DHCP"
	L2   = "L2"
)

// Block is an entity that has to report before a port may be ACTIVE.
type Block struct {
	Entity   string     `json:"entity"`
	Host     string     `json:"host"`  // whose report counts; empty if not one host's alone
	Epoch    int64      `json:"epoch"` // the revision of the port from which on its work counts
	State    string     `json:"state"` // Begun or Lost, if that is the last that its agent said
	Since    time.Time  `json:"since"`
	Deadline *time.Time `json:"deadline"`
	Fatal    bool       `json:"fatal"` // past the deadline the port is in ERROR
	// Hosts are those of the agents that could report; like what follows, what a reader is told and no rule depends on.
	Hosts []string `json:"hosts"`
	// Heard is when an agent that could report was last heard of, if it has been silent since for too long.
	Heard *time.Time `json:"heard"`
	// Orphan tells that no agent is registered that could report, Disabled that an operator has disabled all that are.
	Orphan   bool `json:"orphan"`
	Disabled bool `json:"disabled"`
}

// Patience is how long a block may stand, and what comes then.
type Patience struct {
	Limit time.Duration // 0 for as long as it takes
	Fatal bool          // the port is in ERROR; else it goes on waiting
}

// Policy is the patience with each entity; under the empty name, with all others.
type Policy map[string]Patience

// Limit is how long a block of the entity may stand, 0 for as long as it takes, and whether the object is in ERROR then.
func (p Policy) Limit(entity string) (limit time.Duration, fatal bool) {
	patience, ok := p[entity]
	if !ok {
		patience = p[""]
	}
	return patience.Limit, patience.Fatal && patience.Limit > 0
}

// Surroundings is what a port's blocks and status depend on besides the port itself.
type Surroundings struct {
	DHCPHosts []string    // of the DHCP agents that serve one of its addresses and report; none if no subnet of it has DHCP
	Agents    []HostAgent // on its host
	Policy    Policy
}

// Cause is what changed about a port, as far as an agent has to work for it anew.
type Cause struct {
	Bound     bool  // it was bound, to another host or in another way
	Addressed bool  // its MAC or its addresses are new
	Raised    bool  // it was administratively down, so that nobody could wire it
	Revision  int64 // of the port with the change
}

// DHCPOwner owns the ports of DHCP agents.
const DHCPOwner = "network:dhcp"

// Serving are the owners of ports that are there for the network's sake and for nobody else's: they go with it.
func Serving() []string {
	return []string{DHCPOwner, "network:distributed", "network:floatingip_agent_gateway"}
}

// exempt are the owners whose ports nobody has to report for: the network's own.
var exempt = []string{
	"network:router_interface", "network:router_interface_distributed", "network:ha_router_replicated_interface",
	"network:router_gateway", "network:router_centralized_snat", DHCPOwner,
	"network:floatingip_agent_gateway", "network:router_ha_interface", "network:floatingip",
}

// needs tells whether the entity has anything to do for the port as it is now. What its agent has begun or undone,
// it has to finish, whoever owns the port.
func (p Port) needs(entity, state string, around Surroundings) bool {
	spared := slices.Contains(exempt, p.DeviceOwner) || p.VIF == VIFPhysical
	switch entity {
	case L2:
		return p.Bound() && !p.Distributed() && (!spared || state != "") && !p.silentController(around.Agents)
	case DHCP:
		return len(around.DHCPHosts) > 0 && p.DeviceOwner != "" && !spared
	default:
		return true
	}
}

// Arm is the port with the blocks that it has after something changed: what nobody has to do any more blocks no
// longer, and what an agent has to do anew blocks from now on.
func (p Port) Arm(around Surroundings, c Cause, now time.Time) Port {
	blocks := make([]Block, 0, len(p.Blocks)+2)
	for _, b := range p.Blocks {
		again := b.Entity == L2 && c.Bound || b.Entity == DHCP && c.Addressed
		if b.Entity == L2 && c.Raised {
			b.Since = now
		}
		if !again && p.needs(b.Entity, b.State, around) {
			blocks = append(blocks, around.timed(b))
		}
	}
	if c.Addressed && p.needs(DHCP, "", around) {
		blocks = append(blocks, around.block(Block{Entity: DHCP, Epoch: c.Revision}, now))
	}
	if c.Bound {
		p.Epoch = c.Revision
		if p.Status == Build {
			p.Status = Down
		}
		if p.needs(L2, "", around) {
			blocks = append(blocks, around.block(Block{Entity: L2, Host: p.Host, Epoch: p.Epoch}, now))
		}
	}
	p.Blocks = blocks
	return p
}

// block is a new block, with the deadline that the policy gives it.
func (around Surroundings) block(b Block, now time.Time) Block {
	limit, fatal := around.Policy.Limit(b.Entity)
	b.Since, b.Fatal, b.Deadline = now, fatal, nil
	if limit > 0 {
		deadline := now.Add(limit)
		b.Deadline = &deadline
	}
	return b
}

// timed is a block that stands, with the deadline that the policy gives it now.
func (around Surroundings) timed(b Block) Block {
	now := around.block(b, b.Since)
	none := now.Deadline == nil || b.Deadline == nil
	if now.Fatal == b.Fatal && (none && now.Deadline == b.Deadline || !none && now.Deadline.Equal(*b.Deadline)) {
		return b
	}
	return now
}

// Rebind is the port after its binding was tried again, which may succeed once an agent is there. The revision is
// that of the port with the change.
func (p Port) Rebind(around Surroundings, revision int64, now time.Time) Port {
	if p.VIF != VIFFailed || p.Bind(around.Agents) == VIFFailed {
		return p
	}
	p = p.BoundBy(around.Agents)
	return p.Arm(around, Cause{Bound: true, Revision: revision}, now)
}

// Judge is the port with the status that it has: ACTIVE if and only if it is bound, administratively up and not
// blocked; if it is blocked, BUILD while an agent is at work on it, and ERROR when a fatal deadline has passed.
func (p Port) Judge(now time.Time) Port {
	was := p.Status
	p.Status = Down
	switch {
	case !p.Bound() || !p.AdminUp:
	case len(p.Blocks) == 0 && p.Distributed():
		p.Status = p.spread()
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

// Next is when the port's status will change by itself, because a fatal deadline passes; nil if it will not.
func (p Port) Next() *time.Time {
	var next *time.Time
	for _, b := range p.Blocks {
		if b.Fatal && p.Status != Errored && p.Bound() && p.AdminUp && (next == nil || b.Deadline.Before(*next)) {
			next = b.Deadline
		}
	}
	return next
}
