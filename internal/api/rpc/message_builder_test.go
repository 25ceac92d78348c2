package rpc_test

import (
	"net/netip"
	"testing"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store"
)

// newDHCPFixture returns a fixture whose DHCP agent listens, and a function that publishes and returns the payload of the next
// message after checking its method and priority.
func newDHCPFixture(t *testing.T) (*fixture, func(method string, priority float64) map[string]any) {
	t.Helper()
	st := newFixture(t)
	st.listenTo(t, "dhcp_agent", "net1", "1.0")
	publisher := st.newPublisher(t)
	return st, func(method string, priority float64) map[string]any {
		t.Helper()
		st.publishAll(t, publisher)
		p := st.receiveMethod(t, method)["payload"].(map[string]any)
		if p["priority"] != priority {
			t.Errorf("%s has priority %v, want %v", method, p["priority"], priority)
		}
		return p
	}
}

func TestPublish_DHCPAgentGetsSubnetAndAgentNotifications(t *testing.T) {
	t.Parallel()
	st, next := newDHCPFixture(t)
	project, cidr, off, name := "p1", netip.MustParsePrefix("10.9.0.0/24"), false, "green"
	subnets, err := st.CreateSubnets(t.Context(), []network.SubnetChange{{Network: &st.network.ID, CIDR: &cidr, Project: &project}})
	if err != nil {
		t.Fatal(err)
	}
	if p := next("subnet_create_end", 3); p["subnet"].(map[string]any)["cidr"] != "10.9.0.0/24" {
		t.Errorf("got %v", p)
	}
	if _, err := st.UpdateSubnet(t.Context(), subnets[0].ID, network.SubnetChange{DHCP: &off}, nil); err != nil {
		t.Fatal(err)
	}
	if p := next("subnet_update_end", 3); p["subnet"].(map[string]any)["enable_dhcp"] != false {
		t.Errorf("got %v", p)
	}
	if err := st.DeleteSubnet(t.Context(), subnets[0].ID, nil); err != nil {
		t.Fatal(err)
	}
	if p := next("subnet_delete_end", 4); p["subnet_id"] != subnets[0].ID.String() || p["network_id"] != st.network.ID.String() {
		t.Errorf("got %v", p)
	}
	if _, err := st.UpdateNetwork(t.Context(), st.network.ID, network.NetworkChange{Name: &name}, nil); err != nil {
		t.Fatal(err)
	}
	if p := next("network_update_end", 1); p["network"].(map[string]any)["name"] != "green" {
		t.Errorf("got %v", p)
	}
	agents, err := st.Agents(t.Context(), store.Listing{Where: []store.Condition{{Field: "host", In: []string{"net1"}}}})
	if err != nil || len(agents) != 1 {
		t.Fatal(agents, err)
	}
	if _, err := st.UpdateAgent(t.Context(), agents[0].ID, network.AgentChange{AdminUp: &off}); err != nil {
		t.Fatal(err)
	}
	if p := next("agent_updated", 0); p["admin_state_up"] != false {
		t.Errorf("got %v", p)
	}
	if err := st.UnscheduleNetwork(t.Context(), agents[0].ID, st.network.ID); err != nil {
		t.Fatal(err)
	}
	if p := next("network_delete_end", 2); p["network_id"] != st.network.ID.String() {
		t.Errorf("got %v", p)
	}
}

// A DHCP agent gets no message about a new name.
func TestPublish_DHCPAgentGetsPortUpdateOnlyForAddressesAndOptions(t *testing.T) {
	t.Parallel()
	st, next := newDHCPFixture(t)
	port := st.createPorts(t, 1)[0]
	next("port_create_end", 5)
	name := "web"
	if _, err := st.UpdatePort(t.Context(), port.ID, network.PortChange{Name: &name}, nil); err != nil {
		t.Fatal(err)
	}
	value := "10.1.0.9"
	options := []network.DHCPOption{{Name: "server-ip-address", Value: &value, IPVersion: 4}}
	if _, err := st.UpdatePort(t.Context(), port.ID, network.PortChange{DHCPOptions: &options}, nil); err != nil {
		t.Fatal(err)
	}
	if p := next("port_update_end", 6)["port"].(map[string]any); p["name"] != "web" || len(p["extra_dhcp_opts"].([]any)) != 1 {
		t.Errorf("got %v", p)
	}
	addresses := port.Addresses
	if err := st.DeletePort(t.Context(), port.ID, nil); err != nil {
		t.Fatal(err)
	}
	p := next("port_delete_end", 6)
	if fixed := p["fixed_ips"].([]any); len(fixed) != 1 || fixed[0].(map[string]any)["ip_address"] != addresses[0].IP.String() {
		t.Errorf("got %v", p)
	}
}

// A port moves to a host to which it had an inactive binding.
func TestPublish_BindingActivateAndDeactivateOnMigration(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	st.reportState(t, "Open vSwitch agent", "cmp2", "new")
	for _, topic := range []string{"activate", "deactivate"} {
		st.listenTo(t, "q-agent-notifier-binding-"+topic, "cmp1", "1.5")
	}
	st.listenTo(t, "dhcp_agent", "net1", "1.0")
	port := st.createPorts(t, 1)[0]
	publisher := st.newPublisher(t)
	host := "cmp2"
	if _, err := st.ProposeBinding(t.Context(), port.ID, network.BindingChange{Host: &host}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.ActivateBinding(t.Context(), port.ID, "cmp2"); err != nil {
		t.Fatal(err)
	}
	st.publishAll(t, publisher)
	got := st.receiveMethods(t, "binding_deactivate", "binding_activate")
	if d := got["binding_deactivate"]; d["host"] != "cmp1" || d["port_id"] != port.ID.String() || d["network_id"] != port.Network.String() {
		t.Errorf("got %v", d)
	}
	if a := got["binding_activate"]; a["host"] != "cmp2" || a["port_id"] != port.ID.String() {
		t.Errorf("got %v", a)
	}
}

func TestCreateDHCPPort_FailsWhenSubnetIsFull(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	project, cidr := "p1", netip.MustParsePrefix("10.9.0.0/30")
	subnets, err := st.CreateSubnets(t.Context(), []network.SubnetChange{{Network: &st.network.ID, CIDR: &cidr, Project: &project}})
	if err != nil {
		t.Fatal(err)
	}
	create := func(device string, subnet uuid.UUID) callResult {
		return st.request(t, map[string]any{"topic": "q-plugin", "method": "create_dhcp_port", "version": "1.1", "args": map[string]any{"host": "net1",
			"port": map[string]any{"port": map[string]any{"network_id": st.network.ID, "device_id": device, "project_id": "p1",
				"fixed_ips": []any{map[string]any{"subnet_id": subnet}}}}}})
	}
	if o := create("d1", subnets[0].ID); o.Failure != "" {
		t.Fatal(o.Failure, o.Message)
	}
	if o := create("d2", subnets[0].ID); o.Failure != "IpAddressGenerationFailure" {
		t.Errorf("got %s %q %q", o.Result, o.Failure, o.Message)
	}
	if o := create("d3", uuid.New()); string(o.Result) != "null" {
		t.Errorf("of a deleted subnet: got %s %q %q", o.Result, o.Failure, o.Message)
	}
}

// Each method works in its newest version, and fails with UnsupportedVersion in a later one.
func TestCall_SupportedVersions(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	for _, c := range []struct{ method, newest, unknown string }{
		{"has_alive_neutron_server", "1.4", "1.11"},
		{"get_active_networks_info", "1.10", "1.11"},
		{"update_device_list", "1.9", "1.10"},
		{"bulk_pull", "1.1", "1.2"},
		{"security_group_info_for_devices", "1.3", "1.4"},
		{"get_dvr_mac_address_list", "1.1", "1.2"},
	} {
		args := map[string]any{"resource_type": "Port", "version": "1.7", "filter_kwargs": map[string]any{"id": []any{}}}
		if o := st.request(t, map[string]any{"topic": "q-plugin", "method": c.method, "version": c.newest, "args": args}); o.Failure != "" {
			t.Errorf("%s %s: %s %s", c.method, c.newest, o.Failure, o.Message)
		}
		for _, version := range []string{c.unknown, "2.0", "0.9", "x", "1.1.1.1"} {
			if o := st.request(t, map[string]any{"topic": "q-plugin", "method": c.method, "version": version, "args": args}); o.Failure != "UnsupportedVersion" {
				t.Errorf("%s %s: got %s %q", c.method, version, o.Result, o.Failure)
			}
		}
	}
}
