package network

import (
	"slices"
	"strings"
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
	Host     string     `json:"host"` // whose report counts; empty if not one host's alone
	Since    time.Time  `json:"since"`
	Deadline *time.Time `json:"deadline"`
}

// Surroundings is what a port's blocks and status depend on besides the port itself.
type Surroundings struct {
	DHCPHosts []string // of the DHCP agents that serve one of its addresses; none if no subnet of it has DHCP
	Agent     bool     // an Open vSwitch agent is registered on its host
}

// Cause is what changed about a port, as far as an agent has to work for it anew.
type Cause struct {
	Bound     bool // it was bound, to another host or in another way
	Addressed bool // its MAC or its addresses are new
}

// exempt are the owners whose ports nobody has to report for: the network's own.
var exempt = []string{
	"network:router_interface", "network:router_interface_distributed", "network:ha_router_replicated_interface",
	"network:router_gateway", "network:router_centralized_snat", "network:dhcp",
	"network:floatingip_agent_gateway", "network:router_ha_interface", "network:floatingip",
}

// needs tells whether the entity has anything to do for the port as it is now.
func (p Port) needs(entity string, around Surroundings) bool {
	if slices.Contains(exempt, p.DeviceOwner) {
		return false
	}
	switch entity {
	case L2:
		return p.Bound()
	case DHCP:
		return len(around.DHCPHosts) > 0 && p.DeviceOwner != ""
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
		if p.needs(b.Entity, around) && !again {
			blocks = append(blocks, b)
		}
	}
	if c.Addressed && p.needs(DHCP, around) {
		blocks = append(blocks, Block{Entity: DHCP, Since: now})
	}
	if c.Bound && p.needs(L2, around) {
		blocks = append(blocks, Block{Entity: L2, Host: p.Host, Since: now})
	}
	p.Blocks = blocks
	return p
}

// Rebind is the port after its binding was tried again, which may succeed once an agent is there.
func (p Port) Rebind(around Surroundings, now time.Time) Port {
	if p.VIF != VIFFailed || p.Bind(around.Agent) == VIFFailed {
		return p
	}
	p.VIF = p.Bind(around.Agent)
	return p.Arm(around, Cause{Bound: true}, now)
}

// Complete is the port after the reports, and for each of them whether it completed a block. A report from a
// host that it does not count from, or for an entity that does not block the port, completes nothing.
func (p Port) Complete(around Surroundings, reports []Report) (Port, []bool) {
	accepted := make([]bool, len(reports))
	blocks := slices.Clone(p.Blocks)
	for i, r := range reports {
		at := slices.IndexFunc(blocks, func(b Block) bool { return b.countsFrom(r, around) })
		if at >= 0 {
			blocks = slices.Delete(blocks, at, at+1)
			accepted[i] = true
		}
	}
	p.Blocks = blocks
	return p, accepted
}

func (b Block) countsFrom(r Report, around Surroundings) bool {
	switch {
	case b.Entity != r.Entity:
		return false
	case b.Entity == DHCP:
		return r.Host == "" || slices.Contains(around.DHCPHosts, r.Host)
	default:
		return b.Host == "" || b.Host == r.Host
	}
}

// Judge is the port with the status that it has: ACTIVE if and only if it is bound, administratively up and not
// blocked.
func (p Port) Judge() Port {
	p.Status = Down
	if p.Bound() && p.AdminUp && len(p.Blocks) == 0 {
		p.Status = Active
	}
	return p
}

// Reason says what keeps the port from being ACTIVE besides its blocks; empty if nothing does.
func (p Port) Reason() string {
	switch {
	case !p.AdminUp:
		return "it is administratively down"
	case p.VIF == VIFUnbound:
		return "it is not bound to a host"
	case p.VIF == VIFFailed && !p.wireable():
		return "binding to " + p.Host + " failed: Open vSwitch cannot wire vnic_type " + p.VNIC
	case p.VIF == VIFFailed:
		return "binding to " + p.Host + " failed: no " + OVSAgent + " is registered there"
	default:
		return ""
	}
}

// Veiled is the port without the name of its host, for readers who may not know it.
func (p Port) Veiled() Port {
	if p.Host == "" {
		return p
	}
	p.Host, p.Blocks = "its host", slices.Clone(p.Blocks)
	for i := range p.Blocks {
		if p.Blocks[i].Host != "" {
			p.Blocks[i].Host = p.Host
		}
	}
	return p
}

// Standing is what the port is at this moment, without what is recorded for Nova.
func (p Port) Standing() Standing {
	s := Standing{Name: p.Name, Project: p.Project, Host: p.Host, Status: p.Status, Reason: p.Reason(), Ignored: p.Ignored}
	for _, b := range p.Blocks {
		s.Waiting = append(s.Waiting, Waiting(b))
	}
	return s
}

// Remaining names the entities that still block the port.
func (s Standing) Remaining() []string {
	names := make([]string, len(s.Waiting))
	for i, w := range s.Waiting {
		names[i] = w.Entity
	}
	return names
}

// Sentence says in one line what the port is and what it waits for.
func (s Standing) Sentence() string {
	if s.Gone {
		return "deleted"
	}
	var parts []string
	if s.Reason != "" {
		parts = append(parts, s.Reason)
	}
	for _, w := range s.Waiting {
		part := "it waits for " + w.Entity
		if w.Host != "" {
			part += " on " + w.Host
		}
		parts = append(parts, part+" since "+w.Since.UTC().Format(time.RFC3339))
	}
	if len(parts) == 0 {
		return s.Status
	}
	return s.Status + ": " + strings.Join(parts, "; ")
}
