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
	return MirrorChange("network", n.ID, op, attribute.NetworkController(n), n.Project, n.Name)
}

func mirrorSubnet(s network.Subnet, op journal.Operation) journal.Change {
	return MirrorChange("subnet", s.ID, op, attribute.SubnetController(s), s.Project, s.Name)
}

func mirrorGroup(g network.SecurityGroup, op journal.Operation) journal.Change {
	return MirrorChange("security_group", g.ID, op, attribute.GroupController(g), g.Project, g.Name)
}

func mirrorRule(r network.SecurityRule, op journal.Operation) journal.Change {
	return MirrorChange("security_group_rule", r.ID, op, attribute.RuleController(r), r.Project, "")
}

// MirrorChange returns the journal change for an object of this package or of portstore.
func MirrorChange(
	typ string,
	id uuid.UUID,
	op journal.Operation,
	mirror any,
	project, name string,
) journal.Change {
	return WithReferences(journal.Change{
		Object:    journal.Ref{Type: typ, ID: id.String()},
		Operation: op,
		Data:      db.EncodeJSON(mirror),
		Project:   project,
		Name:      name,
	}, nil)
}

// WithReferences adds to a journal change the objects to which the changed object refers or, according to
// `before`, referred. WithReferences panics if these references cannot be decoded, which is a programming
// error.
func WithReferences(c journal.Change, before *journal.Change) journal.Change {
	c, err := c.WithReferences(before)
	if err != nil {
		panic(fmt.Sprintf("store: %s", err))
	}
	return c
}
