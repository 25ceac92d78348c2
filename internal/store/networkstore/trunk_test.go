package networkstore_test

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
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
)

func (g ground) trunk(parent network.Port, subports ...network.Port) network.Trunk {
	g.t.Helper()
	made, err := g.Network.CreateTrunks(g.t.Context(), []network.TrunkChange{{Project: ptr("p"), Port: &parent.ID, Subports: ptr(vlans(subports...))}})
	if err != nil {
		g.t.Fatal(err)
	}
	return made[0]
}

// vlans are subports with the VLAN IDs 1, 2, 3 …
func vlans(ports ...network.Port) []network.Subport {
	list := []network.Subport{}
	for i, p := range ports {
		list = append(list, network.Subport{Port: p.ID, Type: network.VLAN, Segment: i + 1})
	}
	return list
}

// bare makes a port that is nobody's.
func (g ground) bare() network.Port {
	g.t.Helper()
	return g.port("", func(c *network.PortChange) { c.DeviceID, c.DeviceOwner = nil, nil })
}

func (g ground) status(trunk uuid.UUID) string {
	g.t.Helper()
	all, err := g.Network.Trunks(g.t.Context(), db.Listing{Where: []db.Condition{{Field: "id", In: []string{trunk.String()}}}})
	if err != nil || len(all) != 1 {
		g.t.Fatalf("%v %v", all, err)
	}
	return all[0].Status
}

func TestTrunk_SubportsHaveParentsHost(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	parent, one, two := g.port(""), g.bare(), g.bare()
	trunk := g.trunk(parent, one)
	where := func(ports ...network.Port) (hosts []string) {
		for _, p := range ports {
			p = g.look(p.ID)
			hosts = append(hosts, p.DeviceOwner+"@"+p.Host)
		}
		return hosts
	}
	check := func(when, status string, hosts ...string) {
		t.Helper()
		if d := cmp.Diff(hosts, where(one, two)); d != "" {
			t.Errorf("%s: %s", when, d)
		}
		if got := g.status(trunk.ID); got != status {
			t.Errorf("%s the trunk is %s, want %s", when, got, status)
		}
	}
	check("unbound", network.Down, "trunk:subport@", "@")

	g.update(parent.ID, network.PortChange{Host: ptr(cmp1)})
	check("bound", network.Down, "trunk:subport@cmp-1", "@")
	for _, p := range []network.Port{parent, one} {
		for _, entity := range []network.Report{{Entity: network.L2, Host: cmp1}, {Entity: network.DHCP, Host: net1}} {
			g.settle(p.ID, entity)
		}
	}
	check("wired", network.Active, "trunk:subport@cmp-1", "@")

	if _, err := g.Network.AddSubports(t.Context(), trunk.ID, []network.Subport{{Port: two.ID, Type: network.VLAN, Segment: 7}}); err != nil {
		t.Fatal(err)
	}
	check("with another", network.Down, "trunk:subport@cmp-1", "trunk:subport@cmp-1")
	g.settle(two.ID, network.Report{Entity: network.L2, Host: cmp1, Event: network.ReportBegun})
	check("at work", network.Build, "trunk:subport@cmp-1", "trunk:subport@cmp-1")

	g.update(parent.ID, network.PortChange{Profile: []byte(`{"migrating_to":"cmp-2"}`)})
	check("about to move", network.Down, "trunk:subport@cmp-2", "trunk:subport@cmp-2")
	if _, err := g.Network.CreateBinding(t.Context(), parent.ID, network.BindingChange{Host: ptr(cmp2)}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Network.ActivateBinding(t.Context(), parent.ID, cmp2); err != nil {
		t.Fatal(err)
	}
	check("moved", network.Down, "trunk:subport@cmp-2", "trunk:subport@cmp-2")

	g.update(parent.ID, network.PortChange{Host: ptr("nowhere")})
	check("where nothing can wire it", network.Down, "trunk:subport@nowhere", "trunk:subport@nowhere")
	g.update(parent.ID, network.PortChange{Host: ptr("")})
	check("unbound", network.Down, "trunk:subport@", "trunk:subport@")

	if _, err := g.Network.RemoveSubports(t.Context(), trunk.ID, []uuid.UUID{one.ID}); err != nil {
		t.Fatal(err)
	}
	check("with one less", network.Down, "@", "trunk:subport@")
	if err := g.Network.DeleteTrunk(t.Context(), trunk.ID, nil); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"@", "@"}, where(one, two)); d != "" {
		t.Error(d)
	}
}

func TestTrunk_ChangesAreJournaled(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	one, two := g.bare(), g.bare()
	trunk := g.trunk(g.port(""), one)
	if _, err := g.Network.AddSubports(t.Context(), trunk.ID, []network.Subport{{Port: two.ID, Type: network.VLAN, Segment: 7}}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Network.UpdateTrunk(t.Context(), trunk.ID, network.TrunkChange{Name: ptr("t"), Tags: &[]string{"a"}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Network.UpdateTrunk(t.Context(), trunk.ID, network.TrunkChange{Name: ptr("t")}, nil); err != nil { // changes nothing
		t.Fatal(err)
	}
	if err := g.Network.DeleteTrunk(t.Context(), trunk.ID, nil); err != nil {
		t.Fatal(err)
	}

	entries, err := g.Journal.JournalEntries(t.Context(), journalstore.EntryFilter{Type: "trunk", Limit: 9})
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
	g := ready(t, "10.0.0.0/24")
	parent, sub := g.port(""), g.bare()
	trunk := g.trunk(parent, sub)
	for id, want := range map[uuid.UUID]network.Kind{parent.ID: network.PortIsParent, sub.ID: network.PortIsSubport} {
		if err := g.Network.DeletePort(t.Context(), id, nil); kind(err) != want {
			t.Errorf("want %s, got %v", want, err)
		}
	}
	g.update(parent.ID, network.PortChange{Host: ptr(cmp1)})
	if err := g.Network.DeleteTrunk(t.Context(), trunk.ID, nil); kind(err) != network.TrunkInUse {
		t.Errorf("a trunk in use: %v", err)
	}
}

func TestTrunk_PortIsOnOneTrunkOnly(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	sub := g.bare()
	var trunks []network.Trunk
	for range 4 {
		trunks = append(trunks, g.trunk(g.port("")))
	}

	errs := make([]error, len(trunks))
	var all sync.WaitGroup
	for i, trunk := range trunks {
		all.Go(func() { _, errs[i] = g.Network.AddSubports(t.Context(), trunk.ID, vlans(sub)) })
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
		t.Errorf("%d trunks have the port", won)
	}
}
