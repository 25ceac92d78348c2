package networkstore_test

import (
	"testing"

	"berth/internal/store/db"
	"berth/internal/store/networkstore"
)

// The owner of a shared network waits for its turn while a bulk request of another project has it, however
// many ports the request creates.
func TestForeignTurn_EndsBeforeTheOwnerOfTheNetworkGivesUp(t *testing.T) {
	t.Parallel()
	one, many := networkstore.ForeignTurnOf(1), networkstore.ForeignTurnOf(100)
	if one >= many {
		t.Errorf("turn of a request: got %s for one port and %s for 100, want more for 100", one, many)
	}
	for _, ports := range []int{1, 100, 500, 1000, 100_000} {
		if turn := networkstore.ForeignTurnOf(ports); turn >= db.LockTimeout {
			t.Errorf("turn of a request with %d ports: got %s, want less than the wait of the owner of the network, %s",
				ports, turn, db.LockTimeout)
		}
	}
}
