package networkstore_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
)

func tied(p network.Port) []string {
	all := []string{}
	for _, b := range p.AllBindings() {
		all = append(all, b.Host+" "+b.Status+" "+b.VIF)
	}
	return all
}

func (g ground) propose(p network.Port, host string) network.Port {
	g.t.Helper()
	after, err := g.Network.CreateBinding(g.t.Context(), p.ID, network.BindingChange{Host: &host})
	if err != nil {
		g.t.Fatal(err)
	}
	return after
}

func TestBinding_LiveMigration(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	p := g.port(cmp1)
	g.settle(p.ID, l2on1, dhcpOK)

	leaving := g.update(p.ID, network.PortChange{Profile: []byte(`{"migrating_to":"cmp-2"}`)})
	if leaving.Status != network.Down || len(leaving.Blocks) != 1 {
		t.Fatalf("about to leave: %+v", leaving)
	}
	g.settle(p.ID, l2on1)
	both := g.propose(p, cmp2)
	if d := cmp.Diff([]string{"cmp-1 ACTIVE ovs", "cmp-2 INACTIVE ovs"}, tied(both)); d != "" || both.Status != network.Active {
		t.Fatalf("%s %s", both.Status, d)
	}

	// Nova waits for the wiring at the destination, and hears of it once; the port stays where it is.
	s := g.settle(p.ID, l2on2, l2on2)
	if s.Status != network.Active || s.IgnoredReports != 1 {
		t.Errorf("wired at the destination: %+v", s)
	}
	moved, err := g.Network.ActivateBinding(t.Context(), p.ID, cmp2)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"cmp-2 ACTIVE ovs", "cmp-1 INACTIVE unbound"}, tied(moved)); d != "" || moved.Status != network.Down {
		t.Fatalf("%s %s", moved.Status, d)
	}
	if s := g.settle(p.ID, at1(network.L2, network.ReportLost, 0), l2on1); s.IgnoredReports != 3 || s.Status != network.Down {
		t.Errorf("late words of the source: %+v", s)
	}
	s = g.settle(p.ID, l2on2)
	if d := cmp.Diff([]string{"network-vif-plugged", "network-vif-unplugged", "network-changed", "network-vif-plugged", // the source, wired again
		"network-vif-plugged",                           // the destination, before the move
		"network-vif-unplugged", "network-vif-plugged"}, // the move
		events(s)); d != "" || s.Status != network.Active {
		t.Errorf("%s %s", s.Status, d)
	}
	if err := g.Network.DeleteBinding(t.Context(), p.ID, cmp1); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"cmp-2 ACTIVE ovs"}, tied(g.look(p.ID))); d != "" {
		t.Error(d)
	}
}

func TestBinding_InvalidBindingsAreRefused(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	p, other := g.port(cmp1), g.port(cmp1, owner("baremetal:x"))
	g.propose(p, cmp2)
	gone := g.port(cmp1)
	if err := g.Network.DeletePort(t.Context(), gone.ID, nil); err != nil {
		t.Fatal(err)
	}
	propose := func(p network.Port, host string, vnic *string) error {
		_, err := g.Network.CreateBinding(t.Context(), p.ID, network.BindingChange{Host: &host, VNIC: vnic})
		return err
	}
	activate := func(p network.Port, host string) error {
		_, err := g.Network.ActivateBinding(t.Context(), p.ID, host)
		return err
	}
	update := func(p network.Port, host string) error {
		_, err := g.Network.UpdateBinding(t.Context(), p.ID, host, network.BindingChange{VNIC: ptr("baremetal")})
		return err
	}
	for name, tc := range map[string]struct {
		err  error
		want network.Kind
	}{
		"of another's owner":         {propose(other, cmp2, nil), network.BadRequest},
		"to its own host":            {propose(p, cmp1, nil), network.BindingExists},
		"twice":                      {propose(p, cmp2, nil), network.BindingExists},
		"to a host without an agent": {propose(p, "cmp-9", nil), network.BindingFailed},
		"that nobody can wire":       {propose(g.port(cmp1), cmp2, ptr("baremetal")), network.BindingFailed},
		"of a port that is gone":     {propose(gone, cmp2, nil), network.PortNotFound},
		"activated already":          {activate(p, cmp1), network.BindingActive},
		"activated, missing":         {activate(p, "cmp-9"), network.BindingNotFound},
		"activated, of others":       {activate(other, cmp1), network.BadRequest},
		"changed into nothing":       {update(p, cmp2), network.BindingFailed},
		"changed, missing":           {update(p, "cmp-9"), network.BindingNotFound},
		"deleted, missing":           {g.Network.DeleteBinding(t.Context(), p.ID, "cmp-9"), network.BindingNotFound},
		"deleted, of others":         {g.Network.DeleteBinding(t.Context(), other.ID, cmp1), network.BadRequest},
	} {
		if kind(tc.err) != tc.want {
			t.Errorf("%s: %v", name, tc.err)
		}
	}
	if d := cmp.Diff([]string{"cmp-1 ACTIVE ovs", "cmp-2 INACTIVE ovs"}, tied(g.look(p.ID))); d != "" {
		t.Error(d)
	}
}

func TestBinding_ConcurrentActivationsMoveOnce(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/16")
	for round := range 20 {
		p := g.port(cmp1)
		g.propose(p, cmp2)
		var won, lost atomic.Int32
		together(4, func(int) {
			switch _, err := g.Network.ActivateBinding(t.Context(), p.ID, cmp2); {
			case err == nil:
				won.Add(1)
			case kind(err) == network.BindingActive:
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
		if won.Load() != 1 || lost.Load() != 3 {
			t.Fatalf("round %d: %d moved it, %d were refused", round, won.Load(), lost.Load())
		}
	}
}

func TestBinding_MoveCanBeReverted(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	p := g.port(cmp1)
	g.settle(p.ID, dhcpOK, l2on1)
	g.propose(p, cmp2)
	for i, host := range []string{cmp2, cmp1} {
		back, err := g.Network.ActivateBinding(t.Context(), p.ID, host)
		if err != nil || back.Host != host || back.VIF != network.VIFOVS || back.Status != network.Down || back.BindingRevision != back.Revision {
			t.Fatalf("move %d: %+v %v", i, back, err)
		}
	}
	if s := g.settle(p.ID, at1(network.L2, "", p.Revision)); s.Status != network.Down {
		t.Errorf("what was done before it moved counts: %+v", s)
	}
	if after := g.update(p.ID, network.PortChange{Host: ptr(cmp2)}); len(after.AllBindings()) != 1 || after.Host != cmp2 {
		t.Errorf("moved by its host: %v", tied(after))
	}
	if err := g.Network.DeleteBinding(t.Context(), p.ID, cmp2); err != nil {
		t.Fatal(err)
	}
	if after := g.look(p.ID); after.VIF != network.VIFUnbound || after.Host != "" {
		t.Errorf("untied from its own host: %+v", after)
	}
}

// Nova moves the port after the server: that the agent there has died meanwhile changes nothing about where they are.
func TestBinding_MoveToHostWithDownAgent(t *testing.T) {
	t.Parallel()
	g, age := aged(t)
	g.heartbeat(network.OVSAgent, cmp1)
	g.heartbeat(network.OVSAgent, cmp2)
	g = g.laid("10.0.0.0/24")
	p := g.port(cmp1)
	g.settle(p.ID, l2on1)
	g.propose(p, cmp2)
	age()

	moved, err := g.Network.ActivateBinding(t.Context(), p.ID, cmp2)

	if err != nil || moved.Host != cmp2 || moved.VIF != network.VIFOVS {
		t.Fatalf("%+v %v", moved, err)
	}
	g.is("moved", p, network.Down, "L2@cmp-2")
	if says := g.look(p.ID).StatusView().Sentence(); !strings.Contains(says, "L2 on cmp-2") || !strings.Contains(says, "last heard of at") {
		t.Error(says)
	}
	if _, err := g.Network.ActivateBinding(t.Context(), p.ID, cmp1); kind(err) != network.BindingFailed {
		t.Errorf("back to where nothing is bound any more and nobody can: %v", err)
	}
	g.heartbeat(network.OVSAgent, cmp2)
	g.settle(p.ID, l2on2)
	g.is("wired", p, network.Active)
}

// What an agent reports while a client unties a port or changes its tie is no reason to refuse that.
func TestBinding_ChangesDuringReports(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/16")
	for round := range 8 {
		p := g.port(cmp1)
		g.settle(p.ID, dhcpOK)
		together(3, func(i int) {
			switch i {
			case 0:
				for _, r := range []network.Report{l2on1, lost(cmp1), l2on1, lost(cmp1), l2on1} {
					if _, err := g.Network.ReportPort(t.Context(), p.ID, []network.Report{r}); err != nil {
						t.Error(err)
					}
				}
			case 1:
				for n := range 3 {
					if _, err := g.Network.UpdateBinding(t.Context(), p.ID, cmp1, network.BindingChange{Profile: []byte(fmt.Sprintf(`{"n":%d}`, n))}); err != nil && kind(err) != network.BindingNotFound {
						t.Errorf("round %d, change: %v", round, err)
					}
				}
			default:
				if err := g.Network.DeleteBinding(t.Context(), p.ID, cmp1); err != nil {
					t.Errorf("round %d, delete: %v", round, err)
				}
			}
		})
		if after := g.look(p.ID); after.Host != "" || after.VIF != network.VIFUnbound || len(after.Blocks) != 0 {
			t.Errorf("round %d: %+v", round, after)
		}
	}
}
