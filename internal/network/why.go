package network

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Reason explains why the port is not ACTIVE, apart from its blocks; empty if nothing else prevents it.
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

// Veiled returns the port without the name of its host, for readers without the right to see it.
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

// maxNamedHosts is the maximum number of hosts that a sentence lists.
const maxNamedHosts = 3

// Located fills in the hosts from which a report is accepted, for blocks that wait for more than one host. Use it for
// an answer to an API request only: workflows keep their status view and would not notice when these agents change.
func (p Port) Located() Port {
	p.Blocks = slices.Clone(p.Blocks)
	for i, b := range p.Blocks {
		switch {
		case b.Host != "" || len(b.Hosts) == 0:
		case len(b.Hosts) > maxNamedHosts:
			p.Blocks[i].Host = fmt.Sprintf("one of %d hosts", len(b.Hosts))
		default:
			p.Blocks[i].Host = strings.Join(b.Hosts, " or ")
		}
	}
	return p
}

// Standing returns a snapshot of the port. It does not contain the events for Nova.
func (p Port) Standing() Standing {
	s := Standing{Name: p.Name, Project: p.Project, Host: p.Host, Status: p.Status, Reason: p.Reason(), Doubt: p.staleAgentWarning(), Ignored: p.Ignored, Next: p.Next()}
	for _, b := range p.Blocks {
		s.Waiting = append(s.Waiting, Waiting{Entity: b.Entity, Host: b.Host, Since: b.Since, Deadline: b.Deadline, Fatal: b.Fatal, Sentence: b.Sentence()})
	}
	return s
}

// staleAgentWarning explains why the status of an ACTIVE port may be out of date; empty if the agent that wired it is
// alive.
func (p Port) staleAgentWarning() string {
	switch {
	case p.Status != Active || !p.Watch.Orphan && p.Watch.Heard == nil:
		return ""
	case p.Watch.Orphan:
		return "no agent is registered on " + p.Host + " any more, so the status may be out of date"
	default:
		return "its agent on " + p.Host + ", which would tell if it were unplugged, was last heard of at " + formatTime(*p.Watch.Heard)
	}
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Sentence says in one line for which entity the block waits, since when and until when, and whether its agents are
// alive.
func (b Block) Sentence() string {
	s := "it waits for " + b.Entity
	if b.Host != "" {
		s += " on " + b.Host
	}
	switch b.State {
	case Begun:
		s += ", which has begun,"
	case Lost:
		s += ", which reported it unplugged,"
	}
	s += " since " + formatTime(b.Since)
	if b.Deadline != nil {
		s += ", due at " + formatTime(*b.Deadline)
	}
	switch {
	case b.Orphan:
		s += " (no agent is registered that can report)"
	case b.Entity == DHCP && b.Disabled:
		s += " (whose agent is disabled)"
	case b.Heard != nil:
		s += " (whose agent was last heard of at " + formatTime(*b.Heard) + ")"
	}
	return s
}

// Remaining returns the entities that block the port.
func (s Standing) Remaining() []string {
	names := make([]string, len(s.Waiting))
	for i, w := range s.Waiting {
		names[i] = w.Entity
	}
	return names
}

// Sentence says in one line what the port's status is and for what it waits.
func (s Standing) Sentence() string {
	if s.Gone {
		return "deleted"
	}
	var parts []string
	if s.Reason != "" {
		parts = append(parts, s.Reason)
	}
	for _, w := range s.Waiting {
		parts = append(parts, w.Sentence)
	}
	if s.Doubt != "" {
		parts = append(parts, s.Doubt)
	}
	if len(parts) == 0 {
		return s.Status
	}
	return s.Status + ": " + strings.Join(parts, "; ")
}
