package journal_test

import (
	"encoding/json"
	"testing"

	"berth/internal/journal"
)

func TestAssociation_ChangesTheListOfItsBGPVPN(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		typ, data, vpn, added, removed string
	}{
		{"bgpvpn_network_association", `{"bgpvpn_id":"V","network_id":"n"}`, `{"id":"V"}`, `{"id":"V","networks":["n"]}`, `{"id":"V","networks":[]}`},
		{"bgpvpn_network_association", `{"bgpvpn_id":"V","network_id":"n"}`, `{"networks":["m"],"routers":["r"]}`,
			`{"networks":["m","n"],"routers":["r"]}`, `{"networks":["m"],"routers":["r"]}`},
		{"bgpvpn_network_association", `{"bgpvpn_id":"V","network_id":"n"}`, `{"networks":["n","m"]}`, `{"networks":["m","n"]}`, `{"networks":["m"]}`},
		{"bgpvpn_router_association", `{"bgpvpn_id":"V","router_id":"r"}`, `{"networks":["m"],"routers":null}`,
			`{"networks":["m"],"routers":["r"]}`, `{"networks":["m"],"routers":[]}`},
	} {
		t.Run(tt.typ+" "+tt.vpn, func(t *testing.T) {
			t.Parallel()
			a, err := journal.ReadAssociation(tt.typ, json.RawMessage(tt.data))
			if err != nil || a.VPN != (journal.Ref{Type: "bgpvpn", ID: "V"}) {
				t.Fatalf("read the association %s: got the BGPVPN %v, error %v; want the BGPVPN V",
					tt.data, a.VPN, err)
			}
			added, err := a.AddTo(json.RawMessage(tt.vpn))
			if err != nil || string(added) != tt.added {
				t.Errorf("add the association to %s: got %s, error %v; want %s", tt.vpn, added, err, tt.added)
			}
			removed, err := a.RemoveFrom(json.RawMessage(tt.vpn))
			if err != nil || string(removed) != tt.removed {
				t.Errorf("remove the association from %s: got %s, error %v; want %s",
					tt.vpn, removed, err, tt.removed)
			}
		})
	}
}

func TestAssociation_WithoutItsObjectsIsRefused(t *testing.T) {
	t.Parallel()
	for _, data := range []string{``, `[]`, `{}`, `{"bgpvpn_id":"V"}`, `{"network_id":"n"}`, `{"bgpvpn_id":"V","network_id":7}`, `{"bgpvpn_id":"V","router_id":"r"}`} {
		if a, err := journal.ReadAssociation("bgpvpn_network_association", json.RawMessage(data)); err == nil {
			t.Errorf("read the network association %q: got %v, want an error", data, a)
		}
	}
}
