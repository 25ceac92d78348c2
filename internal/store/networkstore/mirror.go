package networkstore

import (
	"fmt"

	"github.com/google/uuid"

	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/db"
)

func mirrorNetwork(n network.Network, op journal.Operation) journal.Change {
	return mirrored("network", n.ID, op, attribute.NetworkController(n), n.Project, n.Name)
}

func mirrorSubnet(s network.Subnet, op journal.Operation) journal.Change {
	return mirrored("subnet", s.ID, op, attribute.SubnetController(s), s.Project, s.Name)
}

func mirrorPort(p network.Port, op journal.Operation) journal.Change {
	return mirrored("port", p.ID, op, attribute.PortController(p), p.Project, p.Name)
}

func mirrorTrunk(t network.Trunk, op journal.Operation) journal.Change {
	return mirrored("trunk", t.ID, op, attribute.TrunkController(t), t.Project, t.Name)
}

func mirrorGroup(g network.SecurityGroup, op journal.Operation) journal.Change {
	return mirrored("security_group", g.ID, op, attribute.GroupController(g), g.Project, g.Name)
}

func mirrorRule(r network.SecurityRule, op journal.Operation) journal.Change {
	return mirrored("security_group_rule", r.ID, op, attribute.RuleController(r), r.Project, "")
}

// mirrored returns the journal change for an object of networkstore.
func mirrored(
	typ string,
	id uuid.UUID,
	op journal.Operation,
	mirror any,
	project, name string,
) journal.Change {
	return referring(journal.Change{
		Object:    journal.Ref{Type: typ, ID: id.String()},
		Operation: op,
		Data:      db.EncodeJSON(mirror),
		Project:   project,
		Name:      name,
	}, nil)
}

// referring adds to a journal change the objects to which the changed object refers or, according to
// `before`, referred. referring panics if these references cannot be decoded, which is a programming error.
func referring(c journal.Change, before *journal.Change) journal.Change {
	c, err := c.WithReferences(before)
	if err != nil {
		panic(fmt.Sprintf("store: %s", err))
	}
	return c
}
