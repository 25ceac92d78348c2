package portstore_test

import (
	"net/netip"
	"testing"

	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/storetest"
)

func TestPortDelete_NoteOfAWorkflowThatNeverStartedIsDropped(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	networks, err := s.Network.CreateNetworks(t.Context(),
		[]network.NetworkChange{{Name: new("blue"), Project: new("p1")}})
	if err != nil {
		t.Fatal(err)
	}
	cidr := netip.MustParsePrefix("10.1.0.0/16")
	if _, err := s.Network.CreateSubnets(t.Context(), []network.SubnetChange{{Network: &networks[0].ID, CIDR: &cidr, Project: new("p1")}}); err != nil {
		t.Fatal(err)
	}
	server := network.PortChange{DeviceOwner: new("compute:nova"), DeviceID: new(uuid.NewString())}
	for name, c := range map[string]struct {
		draft   network.PortChange
		claimed bool
		kept    bool
	}{
		"no relay has tried it":          {kept: false},
		"a relay has tried it":           {claimed: true, kept: true},
		"Nova must get a deletion event": {draft: server, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.ClaimNotes(t, s) // the notes of earlier cases
			draft := c.draft
			draft.Network, draft.Project = &networks[0].ID, new("p1")
			ports, err := s.Network.CreatePorts(t.Context(), []network.PortChange{draft})
			if err != nil {
				t.Fatal(err)
			}
			if c.claimed {
				storetest.ClaimNotes(t, s)
			}
			if err := s.Network.DeletePort(t.Context(), ports[0].ID, nil); err != nil {
				t.Fatal(err)
			}
			notes, err := s.Outbox.Notes(t.Context(), nil, 1000)
			if err != nil {
				t.Fatal(err)
			}
			kept := false
			for _, n := range notes {
				kept = kept || n.WorkflowID == contract.PortID(ports[0].ID.String())
			}
			if kept != c.kept {
				t.Errorf("note of a deleted port: got a note %t, want %t", kept, c.kept)
			}
		})
	}
}
