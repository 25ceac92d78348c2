package portstore

import (
	"berth/internal/store/journalstore"
	"berth/internal/store/networkstore"
)

// MirrorSource returns the query for the networks, subnets or ports that the controller must have. For any
// other object type, the result `ok` is false.
func MirrorSource(typ string) (source journalstore.Source, ok bool) {
	if typ == "port" {
		return networkstore.OwnSource("port", portSelect+portFrom, scanPort, mirrorPort), true
	}
	return networkstore.MirrorSource(typ)
}
