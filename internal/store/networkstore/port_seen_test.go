package networkstore_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/networkstore"
	"berth/internal/store/storetest"
)

// The first look of a port's workflow is spared, so it must not have been able to find anything else.
func TestPort_CreateNudgeCarriesStatus(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	ports := map[string]network.Port{"blocked": g.port(cmp1), "at once active": g.port(cmp1, func(c *network.PortChange) { c.VNIC = ptr("direct-physical") }), "unbound": g.port("")}
	seen := map[string]*contract.PortStatus{}
	for _, n := range storetest.ClaimNotes(t, g.Store) {
		seen[n.ID] = n.PortStatus
	}

	for name, p := range ports {
		var want *contract.PortStatus
		found, err := g.Network.UpdatePortStatus(t.Context(), p.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(networkstore.WorkflowPortStatus(p.ID.String(), found))
		if err == nil {
			err = json.Unmarshal(raw, &want)
		}
		if d := cmp.Diff(want, seen[contract.PortID(p.ID.String())]); d != "" || err != nil {
			t.Errorf("%s: %s %v", name, d, err)
		}
	}
}
