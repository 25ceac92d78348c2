package network

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Reason says what keeps the port from being ACTIVE besides its blocks; empty if nothing does.
func (p Port) Reason() string {
	switch {
	case !p.AdminUp:
		return "it is administratively down"
	case p.VIF == VIFUnbound:
		return "it is not bound to a host"
	case p.VIF == VIFFailed:
		return p.unbindable()
	case p.Distributed() && p.Status != Active:
		return "it is wired on no host yet"
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

// maxHosts is how many hosts a sentence names.
const maxHosts = 3

// Located is the port with all from whom a report counts, where that is not one host's alone: for who looks at this moment. Who remembers
// what it was, as workflows do, would not hear of their coming and going.
func (p Port) Located() Port {
	p.Blocks = slices.Clone(p.Blocks)
	for i, b := range p.Blocks {
		switch {
		case b.Host != "" || len(b.Hosts) == 0:
		case len(b.Hosts) > maxHosts:
			p.Blocks[i].Host = fmt.Sprintf("one of %d hosts", len(b.Hosts))
		default:
			p.Blocks[i].Host = strings.Join(b.Hosts, " or ")
		}
	}
	return p
}

// Standing is what the port is at this moment, without what is recorded for Nova.
func (p Port) Standing() Standing {
	s := Standing{Name: p.Name, Project: p.Project, Host: p.Host, Status: p.Status, Reason: p.Reason(), Doubt: p.doubt(), Ignored: p.Ignored, Next: p.Next()}
	for _, b := range p.Blocks {
		s.Waiting = append(s.Waiting, Waiting{Entity: b.Entity, Host: b.Host, Since: b.Since, Deadline: b.Deadline, Fatal: b.Fatal, Sentence: b.Sentence()})
	}
	return s
}

// doubt says why an ACTIVE port may have been unplugged without anybody knowing; empty if its agent would tell.
func (p Port) doubt() string {
	switch {
	case p.Status != Active || !p.Watch.Orphan && p.Watch.Heard == nil:
		return ""
	case p.Watch.Orphan:
		return "no agent is registered on " + p.Host + " any more that would tell if it were unplugged"
	default:
		return "its agent on " + p.Host + ", which would tell if it were unplugged, was last heard of at " + moment(*p.Watch.Heard)
	}
}

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Sentence says for whom the block waits, since when and until when, and what is known of who should report.
func (b Block) Sentence() string {
	s := "it waits for " + b.Entity
	if b.Host != "" {
		s += " on " + b.Host
	}
	switch b.State {
	case Begun:
		s += ", which is at work on it,"
	case Lost:
		s += ", which reported it unplugged,"
	}
	s += " since " + moment(b.Since)
	if b.Deadline != nil {
		s += ", due at " + moment(*b.Deadline)
	}
	switch {
	case b.Orphan:
		s += " (no agent is registered that could report)"
	case b.Entity == DHCP && b.Disabled:
		s += " (whose agent is disabled)"
	case b.Heard != nil:
		s += " (whose agent was last heard of at " + moment(*b.Heard) + ")"
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
