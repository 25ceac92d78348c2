package store_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store"
)

// The first look of a port's workflow is spared, so it must not have been able to find anything else.
func TestNewPortTellsItsWorkflowWhatALookWouldFind(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	ports := map[string]network.Port{"blocked": g.port(cmp1), "at once active": g.port(cmp1, func(c *network.PortChange) { c.VNIC = ptr("direct-physical") }), "unbound": g.port("")}
	seen := map[string]string{}
	for _, n := range claim(t, g.Store) {
		seen[n.ID] = string(n.Found)
	}

	for name, p := range ports {
		var got, want contract.PortStanding
		if err := json.Unmarshal([]byte(seen[contract.PortID(p.ID.String())]), &got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		found, err := g.SettlePort(t.Context(), p.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(store.PortStanding(p.ID.String(), found))
		if err == nil {
			err = json.Unmarshal(raw, &want)
		}
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %s %v", name, d, err)
		}
	}
}
