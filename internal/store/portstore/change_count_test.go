package portstore_test

import (
	"net/netip"
	"testing"

	"berth/internal/network"
	"berth/internal/store/db"
)

// Requests whose bodies name no port, or the parent of a trunk alone, write many ports.
func TestChangeCount_HasEachPortThatARequestWrites(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	drafts := make([]network.PortChange, 3)
	for i := range drafts {
		drafts[i] = network.PortChange{Network: &fx.network.ID, Project: ptr("p")}
	}
	ctx, changed := db.WithChangeCount(t.Context())
	ports, err := fx.Network.CreatePorts(ctx, drafts)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what string, want int) {
		t.Helper()
		if got := changed.Objects(); got != want {
			t.Errorf("%s: counted %d changes, want %d", what, got, want)
		}
		ctx, changed = db.WithChangeCount(t.Context())
	}
	expect("creation of three ports", 3)
	subnets, err := fx.Network.CreateSubnets(ctx, []network.SubnetChange{{
		Network:     &fx.network.ID,
		Project:     ptr("p"),
		CIDR:        ptr(netip.MustParsePrefix("2001:db8::/64")),
		AddressMode: ptr(network.SLAAC),
		RAMode:      ptr(network.SLAAC),
	}})
	if err != nil {
		t.Fatal(err)
	}
	expect("subnet that gives three ports an address", 3)
	if err := fx.Network.DeleteSubnet(ctx, subnets[0].ID, nil); err != nil {
		t.Fatal(err)
	}
	expect("deletion of a subnet with addresses of three ports", 3)
	subports := []network.Subport{
		{Port: ports[1].ID, Type: network.VLAN, Segment: 1},
		{Port: ports[2].ID, Type: network.VLAN, Segment: 2},
	}
	if _, err := fx.Network.CreateTrunks(ctx, []network.TrunkChange{
		{Project: ptr("p"), Port: &ports[0].ID, Subports: &subports},
	}); err != nil {
		t.Fatal(err)
	}
	expect("trunk with two subports", 2)
}
