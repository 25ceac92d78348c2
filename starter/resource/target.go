package resource

import (
	"context"
	"strings"

	"berth/internal/contract"
	"berth/starter/cli"
)

// ResolveTarget parses a word such as port/web-1. ResolveTarget returns the resource, for example the ports,
// and the ID of the object with the name or ID after the slash.
func ResolveTarget(ctx context.Context, s *cli.Session, word string) (r *cli.Resource, id string, err error) {
	kind, name, _ := strings.Cut(word, "/")
	for _, candidate := range []*cli.Resource{Ports, Trunks, Leases, JournalEntries} {
		if candidate == JournalEntries && kind == candidate.Name && !candidate.IsID(name) {
			return nil, "", cli.UsageError("%q is not the number of a journal entry", name)
		}
		if candidate.Name == kind && name != "" {
			id, err = candidate.Resolve(ctx, s, name)
			return candidate, id, err
		}
	}
	return nil, "", cli.UsageError("%q is none of port/NAME, trunk/NAME, lease/NAME, journal/SEQ", word)
}

// WorkflowID returns the ID of the workflow of a port, a lease or a journal entry.
func WorkflowID(r *cli.Resource, id string) string {
	switch r {
	case Ports:
		return contract.PortID(id)
	case Leases:
		return contract.LeaseID(id)
	default:
		return contract.JournalID(id)
	}
}
