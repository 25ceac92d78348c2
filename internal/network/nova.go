package network

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Names of Nova's external events.
const (
	Plugged   = "network-vif-plugged"
	Unplugged = "network-vif-unplugged"
	Deleted   = "network-vif-deleted"
	Changed   = "network-changed"
)

// NovaEventFor is the external event that a transition of the port's status means to Nova; ok is false if it
// means nothing, or if the port is not a server's.
func (p Port) NovaEventFor(from, to string) (e NovaEvent, ok bool) {
	switch {
	case from == Active && to == Down:
		return p.novaEvent(Unplugged, "completed")
	case from != Down && from != Build:
		return NovaEvent{}, false
	case to == Active:
		return p.novaEvent(Plugged, "completed")
	case to == Errored:
		return p.novaEvent(Plugged, "failed")
	default:
		return NovaEvent{}, false
	}
}

// NovaEventForChange is the external event of a change of the port by a client.
func (p Port) NovaEventForChange() (NovaEvent, bool) { return p.novaEvent(Changed, "") }

// NovaEventForDelete is the external event of the port's deletion.
func (p Port) NovaEventForDelete() (NovaEvent, bool) { return p.novaEvent(Deleted, "") }

func (p Port) novaEvent(name, status string) (NovaEvent, bool) {
	server, err := uuid.Parse(p.DeviceID)
	if err != nil || !strings.HasPrefix(p.DeviceOwner, "compute:") {
		return NovaEvent{}, false
	}
	return NovaEvent{Server: server.String(), Name: name, Status: status, Tag: p.ID.String()}, true
}

// novaKnows is how long Nova may not know a server that it made a port for.
const novaKnows = 10 * time.Minute

// Unheard are, of the events that Nova took with these codes, those that it has to be told again: somebody waits for a
// port to be plugged whose server Nova does not know yet, or has no host for, and nothing has happened to the port since.
func Unheard(events []NovaEvent, codes []int) []NovaEvent {
	var again []NovaEvent
	for i, e := range events {
		over := slices.ContainsFunc(events[i+1:], func(o NovaEvent) bool { return strings.HasPrefix(o.Name, "network-vif-") })
		if e.Name == Plugged && codes[i] >= 400 && e.Age < novaKnows && !over {
			again = append(again, e)
		}
	}
	return again
}
