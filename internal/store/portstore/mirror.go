package portstore

import (
	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/networkstore"
)

func mirrorPort(p network.Port, op journal.Operation) journal.Change {
	return networkstore.MirrorChange("port", p.ID, op, attribute.PortController(p), p.Project, p.Name)
}

func mirrorTrunk(t network.Trunk, op journal.Operation) journal.Change {
	return networkstore.MirrorChange("trunk", t.ID, op, attribute.TrunkController(t), t.Project, t.Name)
}
