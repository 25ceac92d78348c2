package activities_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"berth/internal/journal"
)

func TestBGPVPN_HasTheNetworksAndRoutersOfItsAssociations(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	net := m.createNetworks(1)[0]
	vpn, association := uuid.NewString(), uuid.NewString()
	m.recordChanges(
		newChange(journal.Create, "bgpvpn", vpn, map[string]any{"name": "v"}),
		newChange(
			journal.Create, "bgpvpn_network_association", association,
			map[string]any{"bgpvpn_id": vpn, "network_id": net.ID},
		),
	)
	m.drainJournal()
	if got, want := fmt.Sprint(m.odl.Record("bgpvpn", vpn).Object["networks"]), fmt.Sprint([]any{net.ID}); got != want {
		t.Errorf(
			"networks of the BGPVPN at the controller after the creation of an association: got %s, want %s",
			got,
			want,
		)
	}
	m.checkInSync()

	m.recordChanges(journal.Change{
		Operation: journal.Delete,
		Object:    journal.Ref{Type: "bgpvpn_network_association", ID: association},
	})
	m.drainJournal()
	if got := fmt.Sprint(m.odl.Record("bgpvpn", vpn).Object["networks"]); got != "[]" {
		t.Errorf(
			"networks of the BGPVPN at the controller after the deletion of the association: got %s, want none",
			got,
		)
	}
	m.checkInSync()
}
