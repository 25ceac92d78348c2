package rpc_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/storetest"
)

// One network that a DHCP agent cannot serve makes the agent synchronize all its networks without end.
func TestSender_SynchronizesAgainAndAgainOnlySlowly(t *testing.T) {
	t.Parallel()
	f := newSenderFixture(t)
	f.serveDHCPFrom(t, "cmp2")
	delayed := func() float64 { return counters(t, f.registry, "berth_rpc_synchronizations_delayed_total")[""] }
	const enough = 100 // a slow machine makes fewer calls than the limit allows
	for i := 0; i < enough && delayed() == 0; i++ {
		result, exception := f.call(t, "get_active_networks_info", `{"host":"cmp2"}`)
		var networks []struct{ ID uuid.UUID }
		if err := json.Unmarshal([]byte(result), &networks); err != nil || len(networks) != 1 || networks[0].ID != f.network.ID {
			t.Fatalf("synchronization %d: got %.300s, exception %q; want the network %s", i, result, exception, f.network.ID)
		}
	}
	if delayed() == 0 {
		t.Errorf("after %d synchronizations without a pause, none was delayed", enough)
	}
}

// The owner of a network chooses the gateways of its subnets.
func TestSender_GetsNoGatewayThatItsKernelRefuses(t *testing.T) {
	t.Parallel()
	f := newSenderFixture(t)
	f.serveDHCPFrom(t, "cmp2")
	create := func(version int, cidr, gateway string) network.Subnet {
		t.Helper()
		prefix, address := netip.MustParsePrefix(cidr), netip.MustParseAddr(gateway)
		created, err := f.Network.CreateSubnets(t.Context(), []network.SubnetChange{{
			Network:   &f.network.ID,
			IPVersion: &version,
			CIDR:      &prefix,
			Gateway:   &address,
		}})
		if err != nil {
			t.Fatal(err)
		}
		return created[0]
	}
	own := create(6, "fd00:1::/64", "fd00:2::5")
	broadcast := create(4, "10.7.0.0/24", "10.8.0.255")
	lowest := create(4, "10.6.0.0/24", "10.8.0.0")
	fine := []network.Subnet{create(4, "10.8.0.0/24", "10.8.0.1"), create(6, "fd00:2::/64", "fe80::1")}

	created := fmt.Sprintf(
		`{"port":{"port":{"network_id":%q,"device_id":%q,"fixed_ips":[{"subnet_id":%q},{"subnet_id":%q,"ip_address":"fd00:2::5"}]}}}`,
		f.network.ID, network.DHCPDeviceID("cmp2", f.network.ID), fine[0].ID, fine[1].ID)
	if result, exception := f.call(t, "create_dhcp_port", created); exception != "" {
		t.Fatalf("create the port of the agent: got %s, exception %q", result, exception)
	}
	result, exception := f.call(t, "get_network_info", fmt.Sprintf(`{"network_id":%q}`, f.network.ID))
	var info struct {
		Subnets []struct {
			ID      uuid.UUID
			Gateway *string `json:"gateway_ip"`
		}
	}
	if err := json.Unmarshal([]byte(result), &info); err != nil {
		t.Fatalf("read the network: got %s, exception %q", result, exception)
	}
	got := map[uuid.UUID]string{}
	for _, s := range info.Subnets {
		if s.Gateway != nil {
			got[s.ID] = *s.Gateway
		}
	}
	for _, s := range []network.Subnet{own, broadcast, lowest} {
		if got[s.ID] != "" {
			t.Errorf("gateway of the subnet %s: got %s, want none", s.CIDR, got[s.ID])
		}
	}
	for _, s := range fine {
		if got[s.ID] != s.Gateway.String() {
			t.Errorf("gateway of the subnet %s: got %q, want %s", s.CIDR, got[s.ID], s.Gateway)
		}
	}
}

// berth reads many subnets in parts. The subnet with the broadcast address is in the last part.
func TestSender_GetsNoGatewayThatIsABroadcastAddressOfOneOfManySubnets(t *testing.T) {
	t.Parallel()
	f := newSenderFixture(t)
	f.serveDHCPFrom(t, "cmp2")
	version, broadcast := 4, netip.MustParseAddr("10.8.0.255")
	drafts := make([]network.SubnetChange, 45)
	for i := range drafts {
		prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, byte(i), 0}), 24)
		drafts[i] = network.SubnetChange{
			Network:   &f.network.ID,
			IPVersion: &version,
			CIDR:      &prefix,
			Gateway:   &broadcast,
		}
	}
	last := netip.MustParsePrefix("10.8.0.0/24")
	drafts = append(drafts, network.SubnetChange{Network: &f.network.ID, IPVersion: &version, CIDR: &last})
	if _, err := f.Network.CreateSubnets(t.Context(), drafts); err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, f.database,
		`update subnet set id = 'ffffffff-ffff-4fff-bfff-ffffffffffff' where cidr = '10.8.0.0/24'`)
	result, exception := f.call(t, "get_network_info", fmt.Sprintf(`{"network_id":%q}`, f.network.ID))
	var info struct{ Subnets []map[string]any }
	if err := json.Unmarshal([]byte(result), &info); err != nil {
		t.Fatalf("read the network: got %s, exception %q", result, exception)
	}
	if want := 1 + len(drafts); len(info.Subnets) != want { // one is that of the fixture
		t.Errorf("subnets of the network: got %d, want %d", len(info.Subnets), want)
	}
	for _, s := range info.Subnets {
		if s["gateway_ip"] == broadcast.String() {
			t.Errorf("subnet %s: got the gateway %s, want none", s["cidr"], broadcast)
		}
	}
}

// By default, a project has at most 100 subnets, but an operator can allow more.
func TestSender_ADHCPPortHasAnAddressInEachOfManySubnets(t *testing.T) {
	t.Parallel()
	f := newSenderFixture(t)
	f.serveDHCPFrom(t, "cmp2")
	const many = 101
	drafts := make([]network.SubnetChange, many)
	for i := range drafts {
		prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, byte(i), 0}), 24)
		drafts[i] = network.SubnetChange{Network: &f.network.ID, CIDR: &prefix}
	}
	subnets, err := f.Network.CreateSubnets(t.Context(), drafts)
	if err != nil {
		t.Fatal(err)
	}
	fixed := make([]map[string]any, many)
	for i, s := range subnets {
		fixed[i] = map[string]any{"subnet_id": s.ID}
	}
	body, err := json.Marshal(fixed)
	if err != nil {
		t.Fatal(err)
	}
	result, exception := f.call(t, "create_dhcp_port", fmt.Sprintf(
		`{"port":{"port":{"network_id":%q,"device_id":%q,"fixed_ips":%s}}}`,
		f.network.ID, network.DHCPDeviceID("cmp2", f.network.ID), body))
	var port struct {
		FixedIPs []any `json:"fixed_ips"`
	}
	if err := json.Unmarshal([]byte(result), &port); err != nil || len(port.FixedIPs) != many {
		t.Errorf("create a DHCP port in %d subnets: got %.300s, exception %q; want %d addresses",
			many, result, exception, many)
	}
}
