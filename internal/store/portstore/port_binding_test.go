package portstore_test

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
		t.Fatalf("create a port on a host without an agent: got %+v, want a failed binding with a reason", p)
	}

	if r := fx.heartbeat(network.OVSAgent, "cmp-9"); r != network.AgentNew {
		t.Errorf("first heartbeat of an agent: got result %s, want AgentNew", r)
	}

	if after := fx.readPort(p.ID); after.VIF != network.VIFOVS || len(after.Blocks) != 2 {
		t.Errorf(
			"port with a failed binding after an agent has registered: got VIF type %s and blocks %v, want ovs and two blocks",
			after.VIF,
			blockNames(after.Blocks),
		)
	}
	newest, err := fx.Journal.JournalEntries(t.Context(),
		journalstore.EntryFilter{Type: "port", Newest: true, Limit: 1})
	if err != nil || len(newest) != 1 || newest[0].Operation != "update" ||
		!strings.Contains(string(newest[0].Data), `"binding:vif_type": "ovs"`) {
		t.Errorf(
			"newest journal entry of a port: got %+v, error %v; want an update with the new VIF type",
			newest,
			err,
		)
	}
	if r := fx.heartbeat(network.OVSAgent, "cmp-9"); r != network.AgentAlive {
		t.Errorf("second heartbeat of an agent: got result %s, want AgentAlive", r)
	}
}

func TestBinding_LiveMigration(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort(cmp1)
	fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)

	leaving := fx.updatePort(p.ID, network.PortChange{Profile: []byte(`{"migrating_to":"cmp-2"}`)})
	if leaving.Status != network.Down || len(leaving.Blocks) != 1 {
		t.Fatalf("set migrating_to in the binding profile: got %+v, want DOWN with one block", leaving)
	}
	fx.updateStatus(p.ID, l2OnCmp1)
	both := fx.createBinding(p, cmp2)
	if d := cmp.Diff([]string{"cmp-1 ACTIVE ovs", "cmp-2 INACTIVE ovs"}, bindingSummaries(both)); d != "" ||
		both.Status != network.Active {
		t.Fatalf(
			"create an INACTIVE binding: got the port status %s, want ACTIVE; bindings (-want +got): %s",
			both.Status,
			d,
		)
	}

	events := fx.deliverEvents(p.ID)

	// Nova waits for one event about the wiring at the destination. The agent's report about the inactive
	// binding at the destination does not change the active binding.
	s := fx.updateStatus(p.ID, l2OnCmp2, l2OnCmp2)
	events = append(events, fx.deliverEvents(p.ID)...)
	if s.Status != network.Active || s.IgnoredReports != 1 {
		t.Errorf(
			"two equal reports of the destination before the move: got %+v, want ACTIVE and one ignored report",
			s,
		)
	}
	moved, err := fx.Network.ActivateBinding(t.Context(), p.ID, cmp2)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"cmp-2 ACTIVE ovs", "cmp-1 INACTIVE unbound"}, bindingSummaries(moved)); d != "" ||
		moved.Status != network.Down {
		t.Fatalf("activate the binding: got the port status %s, want DOWN; bindings (-want +got): %s",
			moved.Status, d)
	}
	if s := fx.updateStatus(p.ID, l2LostOn(cmp1), l2OnCmp1); s.IgnoredReports != 3 ||
		s.Status != network.Down {
		t.Errorf("late reports of the source after the move: got %+v, want DOWN and 3 ignored reports", s)
	}
	s = fx.updateStatus(p.ID, l2OnCmp2)
	events = append(events, fx.deliverEvents(p.ID)...)
	// events on the source host
	if d := cmp.Diff([]string{"network-vif-unplugged", "network-changed", "network-vif-plugged",
		// event when the agent on the destination host reports before the move
		"network-vif-plugged",
		"network-vif-unplugged", "network-vif-plugged"}, // events of the move to the destination host
		events); d != "" ||
		s.Status != network.Active {
		t.Errorf(
			"wire the port at the destination: got status %s, want ACTIVE; Nova events (-want +got): %s",
			s.Status,
			d,
		)
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
		_, err := fx.Network.UpdateBinding(t.Context(), p.ID, host,
			network.BindingChange{VNIC: ptr("baremetal")})
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
			t.Errorf("%s: got error %v, want %s", name, tc.err, tc.want)
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
			t.Fatalf(
				"round %d: four concurrent activations of one binding: %d succeeded and %d were refused, want 1 and 3",
				round, won.Load(), lost.Load(),
			)
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
		if err != nil || back.Host != host || back.VIF != network.VIFOVS || back.Status != network.Down ||
			back.BindingRevision != back.Revision {
			t.Fatalf(
				"activate binding %d: got %+v, error %v; want the port DOWN on the new host, with VIF type ovs and a new binding revision",
				i, back, err,
			)
		}
	}
	if s := fx.updateStatus(p.ID, reportFromCmp1(network.L2, "", p.Revision)); s.Status != network.Down {
		t.Errorf("report on a revision before the moves: got %+v, want DOWN", s)
	}
	if after := fx.updatePort(p.ID, network.PortChange{Host: ptr(cmp2)}); len(after.AllBindings()) != 1 ||
		after.Host != cmp2 {
		t.Errorf("change the host of a port with an INACTIVE binding there: got bindings %v, want one",
			bindingSummaries(after))
	}
	if err := fx.Network.DeleteBinding(t.Context(), p.ID, cmp2); err != nil {
		t.Fatal(err)
	}
	if after := fx.readPort(p.ID); after.VIF != network.VIFUnbound || after.Host != "" {
		t.Errorf("delete the active binding: got %+v, want the port unbound and without a host", after)
	}
}

// Nova activates a port's binding at the destination after the server has moved. The activation succeeds even
// if the agent on the destination host is down.
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
		t.Fatalf(
			"activate a binding whose agent is down: got %+v, error %v; want the port on cmp-2 with VIF type ovs",
			moved,
			err,
		)
	}
	fx.checkPort("after the move", p, network.Down, "L2@cmp-2")
	if says := fx.readPort(p.ID).StatusView().Sentence(); !strings.Contains(says, "L2 on cmp-2") ||
		!strings.Contains(says, "last heard of at") {
		t.Error(
			"sentence of a port that waits for a down agent: want L2 on cmp-2 and the last heartbeat, got",
			says,
		)
	}
	_, err = fx.Network.ActivateBinding(t.Context(), p.ID, cmp1)
	if faultKind(err) != network.BindingFailed {
		t.Errorf(
			"activate an unbound binding on a host without a live agent: got error %v, want BindingFailed",
			err,
		)
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
					if _, err := fx.Network.UpdateBinding(t.Context(), p.ID, cmp1, network.BindingChange{Profile: []byte(fmt.Sprintf(`{"n":%d}`, n))}); err != nil &&
						faultKind(err) != network.BindingNotFound {
						t.Errorf(
							"round %d: UpdateBinding during reports and a delete: got error %v, want none or BindingNotFound",
							round,
							err,
						)
					}
				}
			default:
				if err := fx.Network.DeleteBinding(t.Context(), p.ID, cmp1); err != nil {
					t.Errorf(
						"round %d: DeleteBinding during reports and updates: got error %v, want none",
						round,
						err,
					)
				}
			}
		})
		if after := fx.readPort(p.ID); after.Host != "" || after.VIF != network.VIFUnbound ||
			len(after.Blocks) != 0 {
			t.Errorf(
				"round %d: delete the binding during reports and updates: got %+v, want the port unbound and without blocks",
				round,
				after,
			)
		}
	}
}
