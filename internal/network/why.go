package network

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Reason explains why the port is not ACTIVE, without regard to its provisioning blocks. Reason returns an
// empty string if the port is ACTIVE or if only provisioning blocks keep the port from becoming ACTIVE.
func (p Port) Reason() string {
	switch {
	case !p.AdminUp:
		return "it is administratively down"
	case p.VIF == VIFUnbound:
		return "it is not bound to a host"
	case p.VIF == VIFFailed:
		return p.bindingFailureReason()
	case p.Distributed() && p.Status != Active:
		return "it is not wired on any host yet"
	default:
		return ""
	}
}

// Redacted returns the port without the name of its host, for clients that must not see the host.
func (p Port) Redacted() Port {
	if p.Host == "" {
		return p
	}
	p.Host, p.Blocks = hiddenHost, redactBlocks(p.Blocks)
	return p
}

// hiddenHost replaces the name of a host for clients that must not see the host.
const hiddenHost = "its host"

// redactBlocks returns the blocks without the names of hosts.
func redactBlocks(blocks []Block) []Block {
	blocks = slices.Clone(blocks)
	for i := range blocks {
		if blocks[i].Host != "" {
			blocks[i].Host = hiddenHost
		}
	}
	return blocks
}

// maxNamedHosts is the maximum number of hosts that a status sentence lists.
const maxNamedHosts = 3

// WithAgentHosts completes the blocks that an agent on any one of several hosts can remove, such as the DHCP
// block. The field Host of such a block becomes a text: the names of these hosts, or their number if there
// are many. Use WithAgentHosts only for an answer to an API request, because a workflow keeps its StatusView
// and would not notice that the agents have changed.
func (p Port) WithAgentHosts() Port {
	p.Blocks = slices.Clone(p.Blocks)
	for i, b := range p.Blocks {
		switch {
		case b.Host != "" || len(b.AgentHosts) == 0:
		case len(b.AgentHosts) > maxNamedHosts:
			p.Blocks[i].Host = fmt.Sprintf("one of %d hosts", len(b.AgentHosts))
		default:
			p.Blocks[i].Host = strings.Join(b.AgentHosts, " or ")
		}
	}
	return p
}

// StatusView returns a snapshot of the port for readers at any time: its sentences name deadlines and do not
// say whether they have passed. The returned StatusView does not contain the events for Nova.
func (p Port) StatusView() StatusView { return p.StatusViewAt(time.Time{}) }

// StatusViewAt returns a snapshot of the port for a reader at the time `now`: its sentences say for how long
// the port is overdue.
func (p Port) StatusViewAt(now time.Time) StatusView {
	s := StatusView{
		Name:              p.Name,
		Project:           p.Project,
		Host:              p.Host,
		Status:            p.Status,
		Reason:            p.Reason(),
		StaleAgentWarning: p.staleAgentWarning(),
		IgnoredReports:    p.IgnoredReports,
		NextDeadline:      p.NextDeadline(),
	}
	s.Waiting = waitingFor(p.Blocks, now)
	return s
}

// waitingFor describes the blocks for a reader at the time `now`.
func waitingFor(blocks []Block, now time.Time) (all []Waiting) {
	for _, b := range blocks {
		all = append(all, Waiting{
			Entity:   b.Entity,
			Host:     b.Host,
			Since:    b.Since,
			Deadline: b.Deadline,
			Fatal:    b.Fatal,
			Sentence: b.Sentence(now),
		})
	}
	return all
}

// staleAgentWarning explains why the status of an ACTIVE port may be out of date. staleAgentWarning returns
// an empty string if the port is not ACTIVE or if the agent that wired the port is alive.
func (p Port) staleAgentWarning() string {
	switch {
	case p.Status != Active || !p.AgentHealth.Unregistered && p.AgentHealth.SilentSince == nil:
		return ""
	case p.AgentHealth.Unregistered:
		return "the agent on " + p.Host + " is no longer registered, so the status may be out of date"
	default:
		since := formatTime(*p.AgentHealth.SilentSince)
		return "its agent on " + p.Host + " was last heard of at " + since + ", so the status may be out of date"
	}
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Sentence says in one line for which entity the block waits, since when and until when, and whether the
// agents of that entity are alive. If `now` is not zero and the deadline has passed, Sentence says for how
// long the port is overdue.
func (b Block) Sentence(now time.Time) string {
	s := "it waits for " + b.Entity
	if b.Host != "" {
		s += " on " + b.Host
	}
	if b.Owner != "" && b.Owner != b.Entity {
		s += " (added by " + b.Owner + ")"
	}
	switch b.State {
	case ReportBegun:
		s += ", which has begun,"
	case ReportLost:
		s += ", which reported it unplugged,"
	}
	s += " since " + formatTime(b.Since)
	switch {
	case b.Deadline == nil:
	case !now.IsZero() && b.overdue(now):
		s += ", overdue for " + now.Sub(*b.Deadline).Round(time.Second).String()
	default:
		s += ", with the deadline " + formatTime(*b.Deadline)
	}
	switch {
	case b.AgentUnregistered:
		s += " (no agent that can report is registered)"
	case b.Entity == DHCP && b.AgentDisabled:
		s += " (whose agent is disabled)"
	case b.SilentSince != nil:
		s += " (whose agent was last heard of at " + formatTime(*b.SilentSince) + ")"
	}
	return s
}

// Remaining returns the entities that block the port.
func (s StatusView) Remaining() []string {
	names := make([]string, len(s.Waiting))
	for i, w := range s.Waiting {
		names[i] = w.Entity
	}
	return names
}

// Sentence says in one line what the port's status is and for which entities the port waits.
func (s StatusView) Sentence() string {
	if s.Deleted {
		return "deleted"
	}
	var parts []string
	if s.Reason != "" {
		parts = append(parts, s.Reason)
	}
	for _, w := range s.Waiting {
		parts = append(parts, w.Sentence)
	}
	if s.StaleAgentWarning != "" {
		parts = append(parts, s.StaleAgentWarning)
	}
	if len(parts) == 0 {
		return s.Status
	}
	return s.Status + ": " + strings.Join(parts, "; ")
}
