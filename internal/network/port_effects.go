package network

import (
	"reflect"
	"slices"
)

// PortCause is why a port changes, as far as the effects of the change depend on it. The zero value is a
// change that follows from agents or deadlines.
type PortCause struct {
	Event string // EventCreated or EventDeleted; empty: the port is updated
	// a client's request is the cause, directly or, for example, because the client has deleted a subnet
	Request bool
	Entity  string // the entity that has just completed its part for the port, or empty
	// blocks of the port were added or removed before the state before the change was read
	BlocksChanged bool
	DetailsAgain  bool // an agent must request the details of the port again
	OwnWorkflow   bool // the workflow of the port makes the change
}

// PortEffects is everything that follows from a change of a port besides the changed fields, blocks and
// bindings themselves.
type PortEffects struct {
	// the port gets a new revision, because fields that clients can see have changed
	Revised        bool
	IgnoredReports bool        // the number of ignored reports has changed
	NovaEvents     []NovaEvent // events for Nova, in the order in which Nova must get them
	// for the webhook: nothing blocks the port any more; otherwise nil
	Provisioning *ProvisioningNotification
	// the event about which agents are notified; empty: agents hear nothing
	AgentEvent string
	Controller bool // the journal gets an entry for the controller
	// the subports of the port's trunk must be bound to the port's host
	Subports bool
	// The workflow of the port must read the port again. The number of ignored reports alone is no reason: an
	// agent can send reports for all ports whose IDs it knows.
	Nudge bool
}

// EffectsOf returns what follows from a change of a port, on whichever way the change has reached the port.
// For a new port, `before` is the port before it got its blocks; for a deleted port, `after` has no meaning.
func EffectsOf(before, after Port, c PortCause) PortEffects {
	switch c.Event {
	case EventCreated:
		return PortEffects{
			NovaEvents: after.NovaEvents(before, ""),
			AgentEvent: EventCreated,
			Controller: true,
			Nudge:      true,
		}
	case EventDeleted:
		e := PortEffects{AgentEvent: EventDeleted, Controller: true, Nudge: true}
		if deleted, ok := before.NovaEventForDelete(); ok {
			e.NovaEvents = []NovaEvent{deleted}
		}
		return e
	}
	if reflect.DeepEqual(before, after) && !c.BlocksChanged {
		return PortEffects{}
	}
	e := PortEffects{
		Revised:        !reflect.DeepEqual(before.clientView(), after.clientView()),
		IgnoredReports: before.IgnoredReports != after.IgnoredReports,
		NovaEvents:     after.NovaEvents(before, c.Entity),
		Controller:     c.Request || before.Host != after.Host || before.VIF != after.VIF,
		Subports:       before.SubportHost() != after.SubportHost(),
		Nudge:          !c.OwnWorkflow && (c.BlocksChanged || c.DetailsAgain || !OnlyIgnoredReports(before, after)),
	}
	if changed, ok := after.NovaEventForChange(); ok && c.Request {
		e.NovaEvents = append(e.NovaEvents, changed)
	}
	if n, ok := after.ProvisioningNotification(c.Entity); ok && (len(before.Blocks) > 0 || c.BlocksChanged) {
		e.Provisioning = &n
	}
	if e.Revised || c.DetailsAgain {
		e.AgentEvent = after.updateEvent(before)
	}
	return e
}

// OnlyIgnoredReports reports whether nothing but the number of ignored reports has changed.
func OnlyIgnoredReports(before, after Port) bool {
	if before.IgnoredReports == after.IgnoredReports {
		return false
	}
	after.IgnoredReports = before.IgnoredReports
	return reflect.DeepEqual(before, after)
}

// InOwnRows reports whether everything that follows from the change is stored in rows of the port itself, so
// that no other object, no journal entry and no workflow takes part.
func (e PortEffects) InOwnRows() bool {
	return e.Provisioning == nil && e.AgentEvent == "" && !e.Controller && !e.Subports && !e.Nudge
}

// clientView returns the port without the fields whose changes do not increase the port's revision.
func (p Port) clientView() Port {
	p.Blocks, p.IgnoredReports = nil, 0
	return p
}

// updateEvent returns the event of the update of a port.
func (p Port) updateEvent(before Port) string {
	if before.MAC != p.MAC || !slices.Equal(before.Addresses, p.Addresses) ||
		!reflect.DeepEqual(before.DHCPOptions, p.DHCPOptions) {
		return EventDHCPUpdated
	}
	return EventUpdated
}
