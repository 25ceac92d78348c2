package network

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Names of Nova's external events (os-server-external-events).
const (
	NovaVIFPlugged     = "network-vif-plugged"
	NovaVIFUnplugged   = "network-vif-unplugged"
	NovaVIFDeleted     = "network-vif-deleted"
	NovaNetworkChanged = "network-changed"
)

// NovaEventForStatus returns the external event for a status transition of the port. The result `ok` is false
// if Nova has no event for the transition, or if the port does not belong to a server.
func (p Port) NovaEventForStatus(from, to string) (e NovaEvent, ok bool) {
	switch {
	case from == Active && to == Down:
		return p.newNovaEvent(NovaVIFUnplugged, "completed")
	case from != Down && from != Build:
		return NovaEvent{}, false
	case to == Active:
		return p.newNovaEvent(NovaVIFPlugged, "completed")
	case to == Errored:
		return p.newNovaEvent(NovaVIFPlugged, "failed")
	default:
		return NovaEvent{}, false
	}
}

// NovaEventForChange returns the external event for a client's update of the port.
func (p Port) NovaEventForChange() (NovaEvent, bool) { return p.newNovaEvent(NovaNetworkChanged, "") }

// NovaEventForDelete returns the external event for the deletion of the port.
func (p Port) NovaEventForDelete() (NovaEvent, bool) { return p.newNovaEvent(NovaVIFDeleted, "") }

func (p Port) newNovaEvent(name, status string) (NovaEvent, bool) {
	server, err := uuid.Parse(p.DeviceID)
	if err != nil || !strings.HasPrefix(p.DeviceOwner, "compute:") {
		return NovaEvent{}, false
	}
	return NovaEvent{
		Server:  server.String(),
		Name:    name,
		Status:  status,
		Tag:     p.ID.String(),
		Project: p.Project,
	}, true
}

// novaServerTimeout is the maximum time for which Nova answers 404 or 422 to an event about a new server
// although Nova has already created a port for that server.
const novaServerTimeout = 10 * time.Minute

// NovaEventsToResend returns the events that must be sent again. The parameter `codes` contains Nova's
// response code for each event. A plugged event must be sent again if Nova rejected the event because Nova
// does not know the server yet or because the server has no host yet. A plugged event is not sent again if
// `events`, which all belong to one port, contains a later network-vif-* event.
func NovaEventsToResend(events []NovaEvent, codes []int) []NovaEvent {
	var again []NovaEvent
	for i, e := range events {
		superseded := slices.ContainsFunc(events[i+1:],
			func(o NovaEvent) bool { return strings.HasPrefix(o.Name, "network-vif-") })
		if e.Name == NovaVIFPlugged && codes[i] >= 400 && e.Age < novaServerTimeout && !superseded {
			again = append(again, e)
		}
	}
	return again
}
