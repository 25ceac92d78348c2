package network

import (
	"slices"
	"time"
)

// ReportsPerRequest is how many reports of a host's agents count as one request or message for the limit of
// the host. With the default limit, a host sends reports about 10,000 ports at once, and 500 per second after
// that: a host that restarts with all its ports hardly waits.
const ReportsPerRequest = 10

// FurtherRequests returns how many requests a request with reports counts as, in addition to itself.
func FurtherRequests(reports int) int { return max(0, reports-1) / ReportsPerRequest }

// ApplyReports applies reports in order. The first result is the changed port. The second result says, for
// each report, whether the report changed the port. ApplyReports ignores a report of an agent for which the
// port does not wait. ApplyReports also ignores a report about an earlier binding or a future revision of the
// port, and a report that repeats a known state. If a report has HostOnly set, its sender may act only for
// the report's host: ApplyReports then ignores the report if it would add or remove a block with an owner, or
// remove a block that does not wait for that host.
func (p Port) ApplyReports(pc PortContext, reports []Report, now time.Time) (Port, []bool) {
	accepted := make([]bool, len(reports))
	p.Blocks = slices.Clone(p.Blocks)
	for i, r := range reports {
		if r.Revision < 0 || r.Revision > p.Revision {
			continue // the agent names a revision that does not exist yet
		}
		if r.HostOnly && (r.Host == "" || r.Event == ReportBlock || r.Event == ReportUnblock) {
			continue // only a sender that may act for every host may add or remove a block with an owner
		}
		if r.Event == ReportBlock || r.Event == ReportUnblock {
			p, accepted[i] = p.applyOwnedBlock(r, now)
			continue
		}
		if p, accepted[i] = p.applyReport(pc, r, now); !accepted[i] {
			p, accepted[i] = p.applyInactiveBindingReport(r)
		}
	}
	return p, accepted
}

func (p Port) applyReport(pc PortContext, r Report, now time.Time) (Port, bool) {
	if p.Distributed() && r.Entity == L2 {
		return p.applyDistributedReport(r)
	}
	switch r.Event {
	case "", ReportComplete:
		return p.applyComplete(pc, r)
	case ReportBegun:
		return p.applyBegun(pc, r, now)
	case ReportLost:
		return p.applyLost(pc, r, now)
	default:
		return p, false
	}
}

func (p Port) blockIndex(entity string) int {
	return slices.IndexFunc(p.Blocks, func(b Block) bool { return b.Entity == entity })
}

func (p Port) applyComplete(pc PortContext, r Report) (Port, bool) {
	at := p.blockIndex(r.Entity)
	if at < 0 || !p.Blocks[at].accepts(r, pc) || p.NeedsDetailsAgain(r) {
		return p, false
	}
	p.Blocks = slices.Delete(p.Blocks, at, at+1)
	return p, true
}

// NeedsDetailsAgain reports whether a report over RPC is about an earlier binding of the port to the same
// host, or about no binding: the sender has not requested the port's details since the present binding began.
// An RPC report names no revision, so berth assumes that the report is about the binding whose details the
// sender has requested last. The request for details sets the state of the L2 block to ReportBegun. A new
// binding gets a new L2 block, whose state is not ReportBegun until the agent requests the details again.
// NeedsDetailsAgain returns false for ports that the Open vSwitch agent wires, because this agent never
// requests details: it reads the port from the versioned objects that berth pushes.
func (p Port) NeedsDetailsAgain(r Report) bool {
	at := p.blockIndex(L2)
	return r.RPC && r.Entity == L2 && (r.Event == "" || r.Event == ReportComplete) && at >= 0 &&
		p.Blocks[at].Host == r.Host &&
		p.Blocks[at].State != ReportBegun &&
		(p.VIF == VIFHardware || p.VIF == VIFMacvtap)
}

// accepts reports whether a report can remove the block. The block must wait for the agent that sent the
// report, and the report must not be about an earlier revision of the port than the block's MinRevision.
func (b Block) accepts(r Report, pc PortContext) bool {
	switch {
	case r.Revision != 0 && r.Revision < b.MinRevision:
		return false
	case b.Entity == DHCP:
		return r.Host == "" || slices.Contains(pc.DHCPHosts, r.Host)
	default:
		return b.Host == r.Host || b.Host == "" && !r.HostOnly
	}
}

// applyBegun applies the report that the L2 agent has started to wire the port. The port's status is then
// BUILD until the agent reports that the wiring is complete.
func (p Port) applyBegun(pc PortContext, r Report, now time.Time) (Port, bool) {
	if !p.AdminUp || !p.isFromWiringAgent(r, pc) {
		return p, false
	}
	p, changed := p.addBlock(pc, ReportBegun, now)
	changed = changed || p.Status != Build
	p.Status = Build
	return p, changed
}

// applyLost applies the report that the port is no longer wired or cannot be wired. The port then waits until
// the L2 agent has wired it again.
func (p Port) applyLost(pc PortContext, r Report, now time.Time) (Port, bool) {
	if !p.isFromWiringAgent(r, pc) {
		return p, false
	}
	p, changed := p.addBlock(pc, ReportLost, now)
	if p.Status == Build {
		p.Status = Down
	}
	return p, changed
}

// isFromWiringAgent reports whether the sender of the report is the L2 agent that wires the port on the host
// of the current binding. isFromWiringAgent returns false if a controller wires the port and never reports
// completion.
func (p Port) isFromWiringAgent(r Report, pc PortContext) bool {
	return r.Entity == L2 && p.Bound() && p.VIF != VIFPhysical &&
		!p.controllerReportsNothing(pc.HostAgents) &&
		r.Host == p.Host &&
		(r.Revision == 0 || r.Revision >= p.BindingRevision)
}

// addBlock adds the L2 block to the port. If the port already has an L2 block, addBlock updates the block's
// last report. The result `changed` is false if the port already had the L2 block with the same last report.
func (p Port) addBlock(pc PortContext, state string, now time.Time) (_ Port, changed bool) {
	at := p.blockIndex(L2)
	if at < 0 {
		p.Blocks = append(
			p.Blocks,
			pc.newBlock(Block{
				Entity:      L2,
				Host:        p.Host,
				MinRevision: p.BindingRevision,
				State:       state,
			}, now),
		)
		return p, true
	}
	changed = p.Blocks[at].State != state
	p.Blocks[at].State = state
	return p, changed
}
