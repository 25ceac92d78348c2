package rpc_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
)

func TestDHCPReadyOnPorts_CompletesAllPortsOfABatch(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	ports := st.createPorts(t, 64)
	ids := make([]string, len(ports))
	for i, p := range ports {
		ids[i] = p.ID.String()
	}
	st.call(t, nil, "dhcp_ready_on_ports", "1.5", map[string]any{"port_ids": ids})
	for _, p := range ports {
		p, err := st.Network.Port(t.Context(), p.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{network.L2}, p.StatusView().Remaining()); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestCreateDHCPPort_IsIdempotent(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	args := map[string]any{
		"host": "net1",
		"port": map[string]any{"port": map[string]any{
			"name":           "",
			"admin_state_up": true,
			"device_id":      "dhcp-x-" + st.network.ID.String(),
			"network_id":     st.network.ID,
			"project_id":     "p1",
			"tenant_id":      "p1",
			"fixed_ips":      []any{map[string]any{"subnet_id": st.subnet.ID}},
		}},
	}
	var first, second map[string]any
	st.call(t, &first, "create_dhcp_port", "1.1", args)
	st.call(t, &second, "create_dhcp_port", "1.1", args) // a repeated call, as after a lost reply
	if first["id"] != second["id"] || !cmp.Equal(first["fixed_ips"], second["fixed_ips"]) {
		t.Errorf(
			"repeat create_dhcp_port: the first call returned port %v, the second %v; want the same port",
			first,
			second,
		)
	}
	if first["device_owner"] != "network:dhcp" || first["binding:host_id"] != "net1" {
		t.Errorf("create_dhcp_port: got port %v, want device_owner network:dhcp and host net1", first)
	}
	args["port_id"] = first["id"]
	var updated map[string]any
	st.call(t, &updated, "update_dhcp_port", "1.1", args)
	args["host"] = "elsewhere"
	o := st.request(t, map[string]any{
		"topic":   "q-plugin",
		"method":  "update_dhcp_port",
		"version": "1.1",
		"args":    args,
	})
	if o.Failure != "NetworkNotFound" {
		t.Errorf(
			"update_dhcp_port from a host that does not serve the network: got result %s, exception %q; want NetworkNotFound",
			o.Result,
			o.Failure,
		)
	}

	var infos []map[string]any
	st.call(t, &infos, "get_active_networks_info", "1.1",
		map[string]any{"host": "net1", "enable_dhcp_filter": false})
	if len(infos) != 1 || infos[0]["id"] != st.network.ID.String() || len(infos[0]["ports"].([]any)) != 1 ||
		len(infos[0]["subnets"].([]any)) != 1 {
		t.Errorf("get_active_networks_info: got %v, want the network with one port and one subnet", infos)
	}
	st.call(t, &infos, "get_active_networks_info", "1.1", map[string]any{"host": "unknown"})
	if len(infos) != 0 {
		t.Errorf("get_active_networks_info for an unknown agent: got %v, want no network", infos)
	}

	st.call(t, nil, "release_dhcp_port", "1.0", map[string]any{
		"network_id": st.network.ID,
		"device_id":  "dhcp-x-" + st.network.ID.String(),
		"host":       "net1",
	})
	st.call(t, nil, "release_dhcp_port", "1.0", map[string]any{
		"network_id": st.network.ID,
		"device_id":  "dhcp-x-" + st.network.ID.String(),
		"host":       "net1",
	})
	var ports []any
	st.call(t, &ports, "get_ports", "1.0",
		map[string]any{"filters": map[string]any{"network_id": []any{st.network.ID}}})
	if len(ports) != 0 {
		t.Errorf("list the network's ports after release_dhcp_port: got %v, want none", ports)
	}
	st.call(t, nil, "get_network_info", "1.0", map[string]any{"network_id": uuid.NewString(), "host": "net1"})
	port := map[string]any{"device_id": "d", "network_id": uuid.NewString(), "fixed_ips": []any{}}
	st.call(t, nil, "create_dhcp_port", "1.1",
		map[string]any{"host": "net1", "port": map[string]any{"port": port}})
}

func TestCreateDHCPPort_FailsWhenSubnetIsFull(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	project, cidr := "p1", netip.MustParsePrefix("10.9.0.0/30")
	subnets, err := st.Network.CreateSubnets(t.Context(),
		[]network.SubnetChange{{Network: &st.network.ID, CIDR: &cidr, Project: &project}})
	if err != nil {
		t.Fatal(err)
	}
	create := func(device string, subnet uuid.UUID) callResult {
		return st.request(t, map[string]any{
			"topic":   "q-plugin",
			"method":  "create_dhcp_port",
			"version": "1.1",
			"args": map[string]any{"host": "net1",
				"port": map[string]any{
					"port": map[string]any{
						"network_id": st.network.ID,
						"device_id":  device,
						"project_id": "p1",
						"fixed_ips":  []any{map[string]any{"subnet_id": subnet}},
					},
				}},
		})
	}
	if o := create("d1", subnets[0].ID); o.Failure != "" {
		t.Fatal(o.Failure, o.Message)
	}
	if o := create("d2", subnets[0].ID); o.Failure != "IpAddressGenerationFailure" {
		t.Errorf(
			"create a DHCP port on a full subnet: got result %s, exception %q %q; want IpAddressGenerationFailure",
			o.Result, o.Failure, o.Message,
		)
	}
	if o := create("d3", uuid.New()); string(o.Result) != "null" {
		t.Errorf(
			"create a DHCP port on a deleted subnet: got result %s, exception %q %q; want the result null",
			o.Result, o.Failure, o.Message,
		)
	}
}
