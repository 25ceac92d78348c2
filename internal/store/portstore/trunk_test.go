package portstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/journalstore"
)

func TestTrunk_SubportsHaveParentsHost(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	parent, one, two := fx.createPort(""), fx.createUnownedPort(), fx.createUnownedPort()
	trunk := fx.createTrunk(parent, one)
	deviceOwnersAndHosts := func(ports ...network.Port) (hosts []string) {
		for _, p := range ports {
			p = fx.readPort(p.ID)
			hosts = append(hosts, p.DeviceOwner+"@"+p.Host)
		}
		return hosts
	}
	check := func(when, status string, hosts ...string) {
		t.Helper()
		if d := cmp.Diff(hosts, deviceOwnersAndHosts(one, two)); d != "" {
			t.Errorf("device owner and host of the subports at the step %q (-want +got): %s", when, d)
		}
		if got := fx.trunkStatus(trunk.ID); got != status {
			t.Errorf("trunk at the step %q: got status %s, want %s", when, got, status)
		}
	}
	check("unbound", network.Down, "trunk:subport@", "@")

	fx.updatePort(parent.ID, network.PortChange{Host: ptr(cmp1)})
	check("bound", network.Down, "trunk:subport@cmp-1", "@")
	for _, p := range []network.Port{parent, one} {
		for _, entity := range []network.Report{{Entity: network.L2, Host: cmp1}, {Entity: network.DHCP, Host: net1}} {
			fx.updateStatus(p.ID, entity)
		}
	}
	check("wired", network.Active, "trunk:subport@cmp-1", "@")

	if _, err := fx.Network.AddSubports(t.Context(), trunk.ID, []network.Subport{{Port: two.ID, Type: network.VLAN, Segment: 7}}); err != nil {
		t.Fatal(err)
	}
	check("after another subport was added", network.Down, "trunk:subport@cmp-1", "trunk:subport@cmp-1")
	fx.updateStatus(two.ID, network.Report{Entity: network.L2, Host: cmp1, Event: network.ReportBegun})
	check("while the agent wires", network.Build, "trunk:subport@cmp-1", "trunk:subport@cmp-1")

	fx.updatePort(parent.ID, network.PortChange{Profile: []byte(`{"migrating_to":"cmp-2"}`)})
	check("before the migration", network.Down, "trunk:subport@cmp-2", "trunk:subport@cmp-2")
	if _, err := fx.Network.CreateBinding(t.Context(), parent.ID, network.BindingChange{Host: ptr(cmp2)}); err != nil {
		t.Fatal(err)
	}
	if _, err := fx.Network.ActivateBinding(t.Context(), parent.ID, cmp2); err != nil {
		t.Fatal(err)
	}
	check("moved", network.Down, "trunk:subport@cmp-2", "trunk:subport@cmp-2")

	fx.updatePort(parent.ID, network.PortChange{Host: ptr("nowhere")})
	check("bound to a host without an agent", network.Down, "trunk:subport@nowhere", "trunk:subport@nowhere")
	fx.updatePort(parent.ID, network.PortChange{Host: ptr("")})
	check("unbound", network.Down, "trunk:subport@", "trunk:subport@")

	if _, err := fx.Network.RemoveSubports(t.Context(), trunk.ID, []uuid.UUID{one.ID}); err != nil {
		t.Fatal(err)
	}
	check("after a subport was removed", network.Down, "@", "trunk:subport@")
	if err := fx.Network.DeleteTrunk(t.Context(), trunk.ID, nil); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"@", "@"}, deviceOwnersAndHosts(one, two)); d != "" {
		t.Error(d)
	}
}

// The ports of a trunk are read in parts.
func TestTrunk_ManySubportsMoveWithTheirParentAndKeepTheirAttributes(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	parent := fx.createPort("")
	var subports []network.Port
	for i := range 45 {
		subports = append(subports, fx.createPort("", func(c *network.PortChange) {
			c.DeviceID, c.DeviceOwner, c.Name = nil, nil, ptr(fmt.Sprint("subport ", i))
		}))
	}
	trunk := fx.createTrunk(parent, subports...)
	check := func(when, owner, host string) {
		t.Helper()
		for i, p := range subports {
			p = fx.readPort(p.ID)
			if name := fmt.Sprint("subport ", i); p.Name != name || p.DeviceOwner != owner || p.Host != host {
				t.Errorf("%s: got the port %q with the owner %q on the host %q, want %q with %q on %q",
					when, p.Name, p.DeviceOwner, p.Host, name, owner, host)
			}
		}
	}
	check("new trunk", network.DeviceOwnerSubport, "")
	fx.updatePort(parent.ID, network.PortChange{Host: ptr(cmp1)})
	check("bound trunk", network.DeviceOwnerSubport, cmp1)
	var ids []uuid.UUID
	for _, p := range subports {
		ids = append(ids, p.ID)
	}
	if _, err := fx.Network.RemoveSubports(t.Context(), trunk.ID, ids); err != nil {
		t.Fatal(err)
	}
	check("trunk without subports", "", "")
}

func TestTrunk_ChangesAreJournaled(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	one, two := fx.createUnownedPort(), fx.createUnownedPort()
	trunk := fx.createTrunk(fx.createPort(""), one)
	if _, err := fx.Network.AddSubports(t.Context(), trunk.ID, []network.Subport{{Port: two.ID, Type: network.VLAN, Segment: 7}}); err != nil {
		t.Fatal(err)
	}
	if _, err := fx.Network.UpdateTrunk(t.Context(), trunk.ID, network.TrunkChange{Name: ptr("t"), Tags: &[]string{"a"}}, nil); err != nil {
		t.Fatal(err)
	}
	// changes nothing
	if _, err := fx.Network.UpdateTrunk(t.Context(), trunk.ID, network.TrunkChange{Name: ptr("t")}, nil); err != nil {
		t.Fatal(err)
	}
	if err := fx.Network.DeleteTrunk(t.Context(), trunk.ID, nil); err != nil {
		t.Fatal(err)
	}

	entries, err := fx.Journal.JournalEntries(t.Context(), journalstore.EntryFilter{Type: "trunk", Limit: 9})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		var o struct {
			Name     string            `json:"name"`
			Subports []network.Subport `json:"sub_ports"`
			Revision int64             `json:"revision_number"`
		}
		if err := json.Unmarshal(e.Data, &o); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s%d with %d", e.Operation, o.Name, o.Revision, len(o.Subports)))
	}
	slices.Sort(got)
	if d := cmp.Diff([]string{"create 1 with 1", "delete t3 with 2", "update 2 with 2", "update t3 with 2"}, got); d != "" {
		t.Error(d)
	}
}

func TestTrunk_MemberPortsCannotBeDeleted(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	parent, sub := fx.createPort(""), fx.createUnownedPort()
	trunk := fx.createTrunk(parent, sub)
	for id, want := range map[uuid.UUID]network.Kind{parent.ID: network.PortIsParent, sub.ID: network.PortIsSubport} {
		if err := fx.Network.DeletePort(t.Context(), id, nil); faultKind(err) != want {
			t.Errorf("delete a port of a trunk: want error %s, got %v", want, err)
		}
	}
	fx.updatePort(parent.ID, network.PortChange{Host: ptr(cmp1)})
	if err := fx.Network.DeleteTrunk(t.Context(), trunk.ID, nil); faultKind(err) != network.TrunkInUse {
		t.Errorf("delete a trunk whose parent is bound: got error %v, want TrunkInUse", err)
	}
}

func TestTrunk_PortIsOnOneTrunkOnly(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	sub := fx.createUnownedPort()
	var trunks []network.Trunk
	for range 4 {
		trunks = append(trunks, fx.createTrunk(fx.createPort("")))
	}

	errs := make([]error, len(trunks))
	var all sync.WaitGroup
	for i, trunk := range trunks {
		all.Go(func() { _, errs[i] = fx.Network.AddSubports(t.Context(), trunk.ID, vlans(sub)) })
	}
	all.Wait()

	won := 0
	for _, err := range errs {
		var f *network.Fault
		switch {
		case err == nil:
			won++
		case !errors.As(err, &f) || f.Kind != network.TrunkPortInUse:
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("add one port to several trunks at the same time: %d calls succeeded, want 1", won)
	}
}
