package portstore_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/networkstore"
	"berth/internal/store/portstore"
	"berth/internal/store/storetest"
)

// ReportPorts writes journal entries for the ports that an agent's report binds again, but not for ports that
// were already bound.
func TestReportPorts_ReboundPortsAreJournaled(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	fx := fixture{Store: storetest.Open(t, url), t: t}
	fx.heartbeat(network.OVSAgent, cmp2)
	fx = fx.withNetwork("10.0.0.0/24")
	ports := []network.Port{
		fx.createPort(cmp1),
		fx.createPort(cmp1),
		fx.createPort(cmp2),
		fx.createPort(cmp1),
	}
	// so that the agent's registration binds no port
	fx.Network = portstore.New(fx.DB, portstore.Config{Network: networkstore.Config{DisableNewAgents: true}})
	fx.heartbeat(network.OVSAgent, cmp1)
	reports := map[uuid.UUID][]network.Report{}
	for _, p := range ports {
		reports[p.ID] = []network.Report{{Entity: network.L2, Host: cmp1, Event: network.ReportBegun}}
	}

	if _, err := fx.Network.ReportPorts(t.Context(), reports); err != nil {
		t.Fatal(err)
	}

	c := storetest.Connect(t, url)
	for i, p := range ports {
		var mirrored int
		if err := c.QueryRow(t.Context(), `select count(*) from journal_entry where operation = 'update' and object_id = $1`, p.ID.String()).Scan(&mirrored); err != nil {
			t.Fatal(err)
		}
		want := map[bool][]any{true: {network.Down, 0}, false: {network.Build, 1}}[i == 2]
		if d := cmp.Diff(want, []any{fx.readPort(p.ID).Status, mirrored}); d != "" {
			t.Errorf(
				"status and number of journal entries of port %d after its report (-want +got): %s",
				i,
				d,
			)
		}
	}
}
