package portstore_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/portstore"
	"berth/internal/store/storetest"
)

// rowCounts returns the number of rows of each table that a port request writes.
func rowCounts(t *testing.T, url string) string {
	t.Helper()
	var text string
	err := storetest.Connect(t, url).QueryRow(t.Context(), `
		select jsonb_build_object('network', (select count(*) from network), 'subnet', (select count(*) from subnet),
			'port', (select count(*) from port), 'address', (select count(*) from port_address),
			'block', (select count(*) from block), 'event', (select count(*) from nova_event),
			'binding', (select count(*) from dhcp_binding), 'journal', (select count(*) from journal_entry),
			'note', (select count(*) from note))::text`).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestPort_FailedCreateLeavesNoRows(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	fx := fixture{Store: s, t: t}
	fx.heartbeat(network.OVSAgent, cmp1)
	fx = fx.withNetwork("10.0.0.0/29")
	fx.heartbeat(network.DHCPAgent, net1)
	before := rowCounts(t, url)

	_, err := fx.Network.CreatePorts(t.Context(),
		[]network.PortChange{fx.portDraft(cmp1), fx.portDraft(cmp1, withFixedIP("10.0.0.7"))})

	if faultKind(err) != network.InvalidIPForNetwork {
		t.Errorf("create two ports, one with an invalid address: got error %v, want InvalidIPForNetwork", err)
	}
	if d := cmp.Diff(before, rowCounts(t, url)); d != "" {
		t.Error(d)
	}
}

// The note about a new port contains the port's status, so that the port's workflow does not have to read the
// row first. The status in the note about a new port must equal the status that UpdatePortStatus returns for
// the port.
func TestPort_CreateNudgeCarriesStatus(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	ports := map[string]network.Port{
		"blocked": fx.createPort(cmp1),
		"active at creation": fx.createPort(cmp1, func(c *network.PortChange) {
			c.VNIC = ptr("direct-physical")
		}),
		"unbound": fx.createPort(""),
	}
	seen := map[string]*contract.PortStatus{}
	for _, n := range storetest.ClaimNotes(t, fx.Store) {
		seen[n.ID] = n.PortStatus
	}

	for name, p := range ports {
		var want *contract.PortStatus
		found, err := fx.Network.UpdatePortStatus(t.Context(), p.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(portstore.WorkflowPortStatus(p.ID.String(), found))
		if err == nil {
			err = json.Unmarshal(raw, &want)
		}
		if d := cmp.Diff(want, seen[contract.PortID(p.ID.String())]); d != "" || err != nil {
			t.Errorf("status in the create nudge of port %s (-want +got): %s; error %v", name, d, err)
		}
	}
}
