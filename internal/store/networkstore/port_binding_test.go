package networkstore_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
	"berth/internal/store/journalstore"
)

func TestPort_FailedBindingIsRetriedWhenAgentRegisters(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort("cmp-9")
	if p.VIF != network.VIFFailed || p.StatusView().Reason == "" {
		t.Fatalf("created on a host without an agent: %+v", p)
	}

	if r := fx.heartbeat(network.OVSAgent, "cmp-9"); r != network.AgentNew {
		t.Errorf("heartbeat result %s", r)
	}

	if after := fx.readPort(p.ID); after.VIF != network.VIFOVS || len(after.Blocks) != 2 {
		t.Errorf("after the agent registered: %s, blocks %v", after.VIF, blockNames(after.Blocks))
	}
	newest, err := fx.Journal.JournalEntries(t.Context(), journalstore.EntryFilter{Type: "port", Newest: true, Limit: 1})
	if err != nil || len(newest) != 1 || newest[0].Operation != "update" || !strings.Contains(string(newest[0].Data), `"binding:vif_type": "ovs"`) {
		t.Errorf("the binding is not journaled: %+v, error %v", newest, err)
	}
	if r := fx.heartbeat(network.OVSAgent, "cmp-9"); r != network.AgentAlive {
		t.Errorf("heartbeat result %s", r)
	}
}

func TestBinding_LiveMigration(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort(cmp1)
	fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)

	leaving := fx.updatePort(p.ID, network.PortChange{Profile: []byte(`{"migrating_to":"cmp-2"}`)})
	if leaving.Status != network.Down || len(leaving.Blocks) != 1 {
		t.Fatalf("before the migration: %+v", leaving)
	}
	fx.updateStatus(p.ID, l2OnCmp1)
	both := fx.createBinding(p, cmp2)
	if d := cmp.Diff([]string{"cmp-1 ACTIVE ovs", "cmp-2 INACTIVE ovs"}, bindingSummaries(both)); d != "" || both.Status != network.Active {
		t.Fatalf("%s %s", both.Status, d)
	}

	// Nova waits for one event about the wiring at the destination. The active binding does not change.
	s := fx.updateStatus(p.ID, l2OnCmp2, l2OnCmp2)
	if s.Status != network.Active || s.IgnoredReports != 1 {
		t.Errorf("wired at the destination: %+v", s)
	}
	moved, err := fx.Network.ActivateBinding(t.Context(), p.ID, cmp2)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"cmp-2 ACTIVE ovs", "cmp-1 INACTIVE unbound"}, bindingSummaries(moved)); d != "" || moved.Status != network.Down {
		t.Fatalf("%s %s", moved.Status, d)
	}
	if s := fx.updateStatus(p.ID, l2LostOn(cmp1), l2OnCmp1); s.IgnoredReports != 3 || s.Status != network.Down {
		t.Errorf("late reports of the source: %+v", s)
	}
	s = fx.updateStatus(p.ID, l2OnCmp2)
	if d := cmp.Diff([]string{"network-vif-plugged", "network-vif-unplugged", "network-changed", "network-vif-plugged", // the source, wired again
		"network-vif-plugged",                           // the destination, before the move
		"network-vif-unplugged", "network-vif-plugged"}, // the move
		eventNames(s)); d != "" || s.Status != network.Active {
		t.Errorf("%s %s", s.Status, d)
	}
	if err := fx.Network.DeleteBinding(t.Context(), p.ID, cmp1); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"cmp-2 ACTIVE ovs"}, bindingSummaries(fx.readPort(p.ID))); d != "" {
		t.Error(d)
	}
}

func TestBinding_InvalidBindingsAreRefused(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p, other := fx.createPort(cmp1), fx.createPort(cmp1, withDeviceOwner("baremetal:x"))
	fx.createBinding(p, cmp2)
	gone := fx.createPort(cmp1)
	if err := fx.Network.DeletePort(t.Context(), gone.ID, nil); err != nil {
		t.Fatal(err)
	}
	create := func(p network.Port, host string, vnic *string) error {
		_, err := fx.Network.CreateBinding(t.Context(), p.ID, network.BindingChange{Host: &host, VNIC: vnic})
		return err
	}
	activate := func(p network.Port, host string) error {
		_, err := fx.Network.ActivateBinding(t.Context(), p.ID, host)
		return err
	}
	update := func(p network.Port, host string) error {
		_, err := fx.Network.UpdateBinding(t.Context(), p.ID, host, network.BindingChange{VNIC: ptr("baremetal")})
		return err
	}
	for name, tc := range map[string]struct {
		err  error
		want network.Kind
	}{
		"create for a port of another device owner":   {create(other, cmp2, nil), network.BadRequest},
		"create on the current host":                  {create(p, cmp1, nil), network.BindingExists},
		"create twice":                                {create(p, cmp2, nil), network.BindingExists},
		"create on a host without an agent":           {create(p, "cmp-9", nil), network.BindingFailed},
		"create with a VNIC type that no agent wires": {create(fx.createPort(cmp1), cmp2, ptr("baremetal")), network.BindingFailed},
		"create for a deleted port":                   {create(gone, cmp2, nil), network.PortNotFound},
		"activate the active binding":                 {activate(p, cmp1), network.BindingActive},
		"activate a missing binding":                  {activate(p, "cmp-9"), network.BindingNotFound},
		"activate for another device owner":           {activate(other, cmp1), network.BadRequest},
		"update to a VNIC type that no agent wires":   {update(p, cmp2), network.BindingFailed},
		"update a missing binding":                    {update(p, "cmp-9"), network.BindingNotFound},
		"delete a missing binding":                    {fx.Network.DeleteBinding(t.Context(), p.ID, "cmp-9"), network.BindingNotFound},
		"delete for another device owner":             {fx.Network.DeleteBinding(t.Context(), other.ID, cmp1), network.BadRequest},
	} {
		if faultKind(tc.err) != tc.want {
			t.Errorf("%s: %v", name, tc.err)
		}
	}
	if d := cmp.Diff([]string{"cmp-1 ACTIVE ovs", "cmp-2 INACTIVE ovs"}, bindingSummaries(fx.readPort(p.ID))); d != "" {
		t.Error(d)
	}
}

func TestBinding_ConcurrentActivationsMoveOnce(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/16")
	for round := range 20 {
		p := fx.createPort(cmp1)
		fx.createBinding(p, cmp2)
		var won, lost atomic.Int32
		runConcurrently(4, func(int) {
			switch _, err := fx.Network.ActivateBinding(t.Context(), p.ID, cmp2); {
			case err == nil:
				won.Add(1)
			case faultKind(err) == network.BindingActive:
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
		if won.Load() != 1 || lost.Load() != 3 {
			t.Fatalf("round %d: %d activations succeeded, %d were refused", round, won.Load(), lost.Load())
		}
	}
}

func TestBinding_MoveCanBeReverted(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort(cmp1)
	fx.updateStatus(p.ID, dhcpReady, l2OnCmp1)
	fx.createBinding(p, cmp2)
	for i, host := range []string{cmp2, cmp1} {
		back, err := fx.Network.ActivateBinding(t.Context(), p.ID, host)
		if err != nil || back.Host != host || back.VIF != network.VIFOVS || back.Status != network.Down || back.BindingRevision != back.Revision {
			t.Fatalf("move %d: %+v %v", i, back, err)
		}
	}
	if s := fx.updateStatus(p.ID, reportFromCmp1(network.L2, "", p.Revision)); s.Status != network.Down {
		t.Errorf("a report from before the move was accepted: %+v", s)
	}
	if after := fx.updatePort(p.ID, network.PortChange{Host: ptr(cmp2)}); len(after.AllBindings()) != 1 || after.Host != cmp2 {
		t.Errorf("after an update of the host: %v", bindingSummaries(after))
	}
	if err := fx.Network.DeleteBinding(t.Context(), p.ID, cmp2); err != nil {
		t.Fatal(err)
	}
	if after := fx.readPort(p.ID); after.VIF != network.VIFUnbound || after.Host != "" {
		t.Errorf("after the active binding was deleted: %+v", after)
	}
}

// Nova activates the binding after the server has moved. It succeeds even if the destination's agent is down.
func TestBinding_MoveToHostWithDownAgent(t *testing.T) {
	t.Parallel()
	fx, expireHeartbeats := newAgingFixture(t)
	fx.heartbeat(network.OVSAgent, cmp1)
	fx.heartbeat(network.OVSAgent, cmp2)
	fx = fx.withNetwork("10.0.0.0/24")
	p := fx.createPort(cmp1)
	fx.updateStatus(p.ID, l2OnCmp1)
	fx.createBinding(p, cmp2)
	expireHeartbeats()

	moved, err := fx.Network.ActivateBinding(t.Context(), p.ID, cmp2)

	if err != nil || moved.Host != cmp2 || moved.VIF != network.VIFOVS {
		t.Fatalf("%+v %v", moved, err)
	}
	fx.checkPort("moved", p, network.Down, "L2@cmp-2")
	if says := fx.readPort(p.ID).StatusView().Sentence(); !strings.Contains(says, "L2 on cmp-2") || !strings.Contains(says, "last heard of at") {
		t.Error(says)
	}
	if _, err := fx.Network.ActivateBinding(t.Context(), p.ID, cmp1); faultKind(err) != network.BindingFailed {
		t.Errorf("activation on a host without a binding and without a live agent: %v", err)
	}
	fx.heartbeat(network.OVSAgent, cmp2)
	fx.updateStatus(p.ID, l2OnCmp2)
	fx.checkPort("wired", p, network.Active)
}

// Concurrent agent reports do not make an update or delete of a binding fail.
func TestBinding_ChangesDuringReports(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/16")
	for round := range 8 {
		p := fx.createPort(cmp1)
		fx.updateStatus(p.ID, dhcpReady)
		runConcurrently(3, func(i int) {
			switch i {
			case 0:
				for _, r := range []network.Report{l2OnCmp1, l2LostOn(cmp1), l2OnCmp1, l2LostOn(cmp1), l2OnCmp1} {
					if _, err := fx.Network.ReportPort(t.Context(), p.ID, []network.Report{r}); err != nil {
						t.Error(err)
					}
				}
			case 1:
				for n := range 3 {
					if _, err := fx.Network.UpdateBinding(t.Context(), p.ID, cmp1, network.BindingChange{Profile: []byte(fmt.Sprintf(`{"n":%d}`, n))}); err != nil && faultKind(err) != network.BindingNotFound {
						t.Errorf("round %d, change: %v", round, err)
					}
				}
			default:
				if err := fx.Network.DeleteBinding(t.Context(), p.ID, cmp1); err != nil {
					t.Errorf("round %d, delete: %v", round, err)
				}
			}
		})
		if after := fx.readPort(p.ID); after.Host != "" || after.VIF != network.VIFUnbound || len(after.Blocks) != 0 {
			t.Errorf("round %d: %+v", round, after)
		}
	}
}
