package network

import (
	"slices"
	"time"
)

// Hear is the port after the reports, and for each of them whether it counted. A report of an agent that the port
// is not waiting for, on an earlier binding, or of what is known already counts for nothing.
func (p Port) Hear(around Surroundings, reports []Report, now time.Time) (Port, []bool) {
	accepted := make([]bool, len(reports))
	p.Blocks = slices.Clone(p.Blocks)
	for i, r := range reports {
		if r.Revision < 0 || r.Revision > p.Revision {
			continue // of what nobody has seen
		}
		if p, accepted[i] = p.hear(around, r, now); !accepted[i] {
			p, accepted[i] = p.elsewhere(r)
		}
	}
	return p, accepted
}

func (p Port) hear(around Surroundings, r Report, now time.Time) (Port, bool) {
	if p.Distributed() && r.Entity == L2 {
		return p.everywhere(r)
	}
	switch r.Event {
	case "", Complete:
		return p.complete(around, r)
	case Begun:
		return p.begun(around, r, now)
	case Lost:
		return p.lost(around, r, now)
	default:
		return p, false
	}
}

func (p Port) at(entity string) int {
	return slices.IndexFunc(p.Blocks, func(b Block) bool { return b.Entity == entity })
}

func (p Port) complete(around Surroundings, r Report) (Port, bool) {
	at := p.at(r.Entity)
	if at < 0 || !p.Blocks[at].countsFrom(r, around) {
		return p, false
	}
	p.Blocks = slices.Delete(p.Blocks, at, at+1)
	return p, true
}

// countsFrom tells whether the report is of whom the block waits for, and not on earlier work.
func (b Block) countsFrom(r Report, around Surroundings) bool {
	switch {
	case r.Revision != 0 && r.Revision < b.Epoch:
		return false
	case b.Entity == DHCP:
		return r.Host == "" || slices.Contains(around.DHCPHosts, r.Host)
	default:
		return b.Host == "" || b.Host == r.Host
	}
}

// begun: who wires the port has taken it up. It is BUILD until that is done.
func (p Port) begun(around Surroundings, r Report, now time.Time) (Port, bool) {
	if !p.AdminUp || !p.wiredBy(r, around) {
		return p, false
	}
	p, changed := p.owe(around, Begun, now)
	changed = changed || p.Status != Build
	p.Status = Build
	return p, changed
}

// lost: what was wired is no longer, or cannot be. The port waits for it to be wired anew.
func (p Port) lost(around Surroundings, r Report, now time.Time) (Port, bool) {
	if !p.wiredBy(r, around) {
		return p, false
	}
	p, changed := p.owe(around, Lost, now)
	if p.Status == Build {
		p.Status = Down
	}
	return p, changed
}

// wiredBy tells whether the report is by the agent that wires the port, on its present binding. A controller that never says
// when it has wired a port is not believed that it has not.
func (p Port) wiredBy(r Report, around Surroundings) bool {
	return r.Entity == L2 && p.Bound() && p.VIF != VIFPhysical && !p.silentController(around.Agents) && r.Host == p.Host &&
		(r.Revision == 0 || r.Revision >= p.Epoch)
}

// owe has the port wait for its wiring, with that as the last that its agent said; changed tells whether that is new.
func (p Port) owe(around Surroundings, state string, now time.Time) (_ Port, changed bool) {
	at := p.at(L2)
	if at < 0 {
		p.Blocks = append(p.Blocks, around.block(Block{Entity: L2, Host: p.Host, Epoch: p.Epoch, State: state}, now))
		return p, true
	}
	changed = p.Blocks[at].State != state
	p.Blocks[at].State = state
	return p, changed
}
