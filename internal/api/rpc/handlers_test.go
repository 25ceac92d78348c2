package rpc_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

// fixture is a network with a DHCP subnet and two agents that report over RabbitMQ: DHCP on net1, Open vSwitch on cmp1.
type fixture struct {
	*store.Store
	*agent
	url      string // of the broker
	database string // URL of the database
	network  network.Network
	subnet   network.Subnet
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	rows, url := storetest.URL(t), newVirtualHost(t)
	s, err := store.Open(t.Context(), rows)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	startServer(t, s, url)
	st := &fixture{Store: s, agent: newAgent(t, url), url: url, database: rows}
	st.reportState(t, "DHCP agent", "net1", "new")
	st.reportState(t, "Open vSwitch agent", "cmp1", "new")
	st.createNetwork(t)
	return st
}

// createNetwork creates the network and its subnet.
func (st *fixture) createNetwork(t *testing.T) {
	t.Helper()
	name, cidr := "blue", netip.MustParsePrefix("10.1.0.0/16")
	project := "p1"
	networks, err := st.CreateNetworks(t.Context(), []network.NetworkChange{{Name: &name, Project: &project}})
	if err != nil {
		t.Fatal(err)
	}
	st.network = networks[0]
	subnets, err := st.CreateSubnets(t.Context(), []network.SubnetChange{{Network: &st.network.ID, CIDR: &cidr, Project: &project}})
	if err != nil {
		t.Fatal(err)
	}
	st.subnet = subnets[0]
}

func (st *fixture) reportState(t *testing.T, kind, host, want string) {
	t.Helper()
	var got string
	o := st.request(t, map[string]any{"topic": "q-reports-plugin", "method": "report_state", "version": "1.2", "args": map[string]any{
		"agent_state": map[string]any{"agent_state": map[string]any{"agent_type": kind, "host": host, "binary": "neutron-agent", "topic": "N/A",
			"configurations": map[string]any{"tunneling_ip": "10.9.9.1"}, "start_flag": true, "uuid": uuid.NewString(),
			"resource_versions": map[string]any{"Port": "1.7", "Network": "1.1"}}},
		"time": "2026-11-20T16:56:24.405715"}})
	if err := json.Unmarshal(o.Result, &got); err != nil || got != want {
		t.Fatalf("%s on %s: got %s %s %s, want %q", kind, host, o.Result, o.Failure, o.Message, want)
	}
}

// makeStale moves the heartbeats of a host's agents into the past, beyond AgentDownTime.
func (st *fixture) makeStale(t *testing.T, host string) {
	t.Helper()
	storetest.Exec(t, st.database, `update agent set heartbeat_at = heartbeat_at - interval '80 seconds' where host = $1`, host)
}

// createPorts creates ports of servers on cmp1.
func (st *fixture) createPorts(t *testing.T, n int) []network.Port {
	t.Helper()
	host, owner, device, project := "cmp1", "compute:nova", uuid.NewString(), "p1"
	drafts := make([]network.PortChange, n)
	for i := range drafts {
		drafts[i] = network.PortChange{Network: &st.network.ID, Host: &host, DeviceOwner: &owner, DeviceID: &device, Project: &project}
	}
	ports, err := st.CreatePorts(t.Context(), drafts)
	if err != nil {
		t.Fatal(err)
	}
	return ports
}

func (st *fixture) portStatus(t *testing.T, id uuid.UUID) string {
	t.Helper()
	p, err := st.Port(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return p.Status
}

func TestPort_ActiveAfterDHCPAndL2Reports(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	var alive bool
	st.call(t, &alive, "has_alive_neutron_server", "1.4", map[string]any{})
	if !alive {
		t.Error("has_alive_neutron_server returned false")
	}
	port := st.createPorts(t, 1)[0]
	id := port.ID.String()

	st.call(t, nil, "dhcp_ready_on_ports", "1.5", map[string]any{"port_ids": []string{id, uuid.NewString(), "nonsense"}})
	if got := st.portStatus(t, port.ID); got != network.Down {
		t.Errorf("after the DHCP report alone the port is %s", got)
	}
	var up map[string]any
	st.call(t, &up, "update_device_list", "1.9", map[string]any{"devices_up": []string{id, "no-such"}, "devices_down": []string{},
		"agent_id": "ovs-agent-cmp1", "host": "cmp1", "refresh_tunnels": false})
	want := map[string]any{"devices_up": []any{id, "no-such"}, "failed_devices_up": []any{}, "devices_down": []any{}, "failed_devices_down": []any{}}
	if diff := cmp.Diff(want, up); diff != "" {
		t.Error(diff)
	}
	if got := st.portStatus(t, port.ID); got != network.Active {
		t.Errorf("after both reports the port is %s", got)
	}

	var down map[string]any
	st.call(t, &down, "update_device_down", "1.9", map[string]any{"device": "tap" + id[:11], "agent_id": "ovs-agent-cmp1", "host": "cmp1"})
	if diff := cmp.Diff(map[string]any{"device": "tap" + id[:11], "exists": true}, down); diff != "" {
		t.Error(diff)
	}
	if got := st.portStatus(t, port.ID); got != network.Down {
		t.Errorf("after update_device_down the port is %s", got)
	}
	st.call(t, nil, "update_device_up", "1.9", map[string]any{"device": []any{port.MAC, "0000:04:00.1"}, "agent_id": "x", "host": nil})
	if got := st.portStatus(t, port.ID); got != network.Active {
		t.Errorf("after update_device_up the port is %s", got)
	}
}

func TestUpdateDeviceUp_FromAnotherHostIsIgnored(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	port := st.createPorts(t, 1)[0]
	st.call(t, nil, "dhcp_ready_on_ports", "1.5", map[string]any{"port_ids": []string{port.ID.String()}})
	st.call(t, nil, "update_device_up", "1.9", map[string]any{"device": port.ID, "agent_id": "x", "host": "cmp2"})
	p, err := st.Port(t.Context(), port.ID)
	if err != nil {
		t.Fatal(err)
	}
	if p.Status != network.Down || p.Ignored != 1 {
		t.Errorf("after a report of another host the port is %s with %d ignored reports", p.Status, p.Ignored)
	}
}

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
		p, err := st.Port(t.Context(), p.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{network.L2}, p.Standing().Remaining()); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestDevicesDetailsList_SetsPortToBuild(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	port := st.createPorts(t, 1)[0]
	var found struct {
		Devices []map[string]any `json:"devices"`
		Failed  []any            `json:"failed_devices"`
	}
	st.call(t, &found, "get_devices_details_list_and_failed_devices", "1.5", map[string]any{
		"devices": []string{port.ID.String(), "unknown"}, "agent_id": "x", "host": "cmp1"})
	want := []map[string]any{{"device": port.ID.String(), "network_id": port.Network.String(), "port_id": port.ID.String(), "mac_address": port.MAC,
		"admin_state_up": true, "network_type": "vxlan", "segmentation_id": float64(*st.network.Segment), "physical_network": nil, "mtu": 1450.0,
		"fixed_ips":    []any{map[string]any{"subnet_id": st.subnet.ID.String(), "ip_address": port.Addresses[0].IP.String()}},
		"device_owner": "compute:nova", "allowed_address_pairs": []any{}, "port_security_enabled": true, "qos_policy_id": nil,
		"qos_network_policy_id": nil, "profile": map[string]any{}, "propagate_uplink_status": false, "vif_type": "ovs", "vnic_type": "normal",
		"security_groups": []any{port.SecurityGroups[0].String()}}, {"device": "unknown"}}
	if diff := cmp.Diff(want, found.Devices); diff != "" || len(found.Failed) != 0 {
		t.Error(diff, found.Failed)
	}
	if got := st.portStatus(t, port.ID); got != network.Build {
		t.Errorf("after get_devices_details_list the port is %s", got)
	}
}

func TestCreateDHCPPort_IsIdempotent(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	args := map[string]any{"host": "net1", "port": map[string]any{"port": map[string]any{"name": "", "admin_state_up": true,
		"device_id": "dhcp-x-" + st.network.ID.String(), "network_id": st.network.ID, "project_id": "p1", "tenant_id": "p1",
		"fixed_ips": []any{map[string]any{"subnet_id": st.subnet.ID}}}}}
	var first, second map[string]any
	st.call(t, &first, "create_dhcp_port", "1.1", args)
	st.call(t, &second, "create_dhcp_port", "1.1", args) // a repeated call, as after a lost reply
	if first["id"] != second["id"] || !cmp.Equal(first["fixed_ips"], second["fixed_ips"]) {
		t.Errorf("two calls created two ports: %v and %v", first, second)
	}
	if first["device_owner"] != "network:dhcp" || first["binding:host_id"] != "net1" {
		t.Errorf("the port is %v", first)
	}
	args["port_id"] = first["id"]
	var updated map[string]any
	st.call(t, &updated, "update_dhcp_port", "1.1", args)
	args["host"] = "elsewhere"
	o := st.request(t, map[string]any{"topic": "q-plugin", "method": "update_dhcp_port", "version": "1.1", "args": args})
	if o.Failure != "NetworkNotFound" {
		t.Errorf("an agent that does not host the network got %s %q", o.Result, o.Failure)
	}

	var infos []map[string]any
	st.call(t, &infos, "get_active_networks_info", "1.1", map[string]any{"host": "net1", "enable_dhcp_filter": false})
	if len(infos) != 1 || infos[0]["id"] != st.network.ID.String() || len(infos[0]["ports"].([]any)) != 1 || len(infos[0]["subnets"].([]any)) != 1 {
		t.Errorf("the agent serves %v", infos)
	}
	st.call(t, &infos, "get_active_networks_info", "1.1", map[string]any{"host": "unknown"})
	if len(infos) != 0 {
		t.Errorf("an unknown agent serves %v", infos)
	}

	st.call(t, nil, "release_dhcp_port", "1.0", map[string]any{"network_id": st.network.ID, "device_id": "dhcp-x-" + st.network.ID.String(), "host": "net1"})
	st.call(t, nil, "release_dhcp_port", "1.0", map[string]any{"network_id": st.network.ID, "device_id": "dhcp-x-" + st.network.ID.String(), "host": "net1"})
	var ports []any
	st.call(t, &ports, "get_ports", "1.0", map[string]any{"filters": map[string]any{"network_id": []any{st.network.ID}}})
	if len(ports) != 0 {
		t.Errorf("after release_dhcp_port there is %v", ports)
	}
	st.call(t, nil, "get_network_info", "1.0", map[string]any{"network_id": uuid.NewString(), "host": "net1"})
	st.call(t, nil, "create_dhcp_port", "1.1", map[string]any{"host": "net1", "port": map[string]any{"port": map[string]any{
		"device_id": "d", "network_id": uuid.NewString(), "fixed_ips": []any{}}}})
}

func TestBulkPull_ReturnsVersionedObjects(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	port := st.createPorts(t, 1)[0]
	type object struct {
		Name    string         `json:"versioned_object.name"`
		Version string         `json:"versioned_object.version"`
		Data    map[string]any `json:"versioned_object.data"`
	}
	var ports, networks, rules []object
	st.call(t, &ports, "bulk_pull", "1.1", map[string]any{"resource_type": "Port", "version": "1.7", "filter_kwargs": map[string]any{"id": []any{port.ID}}})
	if len(ports) != 1 || ports[0].Name != "Port" || ports[0].Version != "1.7" || ports[0].Data["hints"] != nil {
		t.Fatalf("got %v", ports)
	}
	binding := ports[0].Data["bindings"].([]any)[0].(map[string]any)["versioned_object.data"].(map[string]any)
	if binding["host"] != "cmp1" || binding["vif_type"] != "ovs" || binding["profile"] != "{}" {
		t.Errorf("bound as %v", binding)
	}
	if levels := ports[0].Data["binding_levels"].([]any); len(levels) != 1 {
		t.Errorf("levels: %v", levels)
	}
	st.call(t, &networks, "bulk_pull", "1.1", map[string]any{"resource_type": "Network", "version": "1.1", "filter_kwargs": map[string]any{"id": []any{st.network.ID}}})
	if len(networks) != 1 || len(networks[0].Data["segments"].([]any)) != 1 {
		t.Errorf("got %v", networks)
	}
	st.call(t, &rules, "bulk_pull", "1.1", map[string]any{"resource_type": "SecurityGroupRule", "version": "1.2", "filter_kwargs": map[string]any{"security_group_id": []any{port.SecurityGroups[0]}}})
	if len(rules) != 4 {
		t.Errorf("got %v", rules)
	}
	var one object
	st.call(t, &one, "pull", "1.0", map[string]any{"resource_type": "Subnet", "version": "1.1", "resource_id": st.subnet.ID})
	if one.Data["cidr"] != "10.1.0.0/16" {
		t.Errorf("got %v", one)
	}
	st.call(t, nil, "pull", "1.0", map[string]any{"resource_type": "Port", "version": "1.7", "resource_id": uuid.NewString()})
}

func TestTunnelSync_ReturnsAllEndpoints(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	sync := func(host, ip string) []any {
		var got map[string][]any
		st.call(t, &got, "tunnel_sync", "1.4", map[string]any{"tunnel_ip": ip, "tunnel_type": "vxlan", "host": host})
		return got["tunnels"]
	}
	sync("cmp1", "10.9.9.1")
	sync("cmp2", "10.9.9.2")
	got := sync("cmp2", "10.9.9.3") // the endpoint of cmp2 changes
	want := []any{map[string]any{"ip_address": "10.9.9.1", "udp_port": 4789.0, "host": "cmp1"}, map[string]any{"ip_address": "10.9.9.3", "udp_port": 4789.0, "host": "cmp2"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCall_FailuresHaveNeutronsExceptionClasses(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	for _, c := range []struct {
		method, version, namespace string
		args                       map[string]any
		want                       string
	}{
		{"get_network_details", "1.6", "", map[string]any{"network": uuid.NewString(), "agent_id": "a", "host": "cmp1"}, "NetworkNotFound"},
		{"get_dhcp_port", "1.8", "", map[string]any{"port_id": uuid.NewString()}, "PortNotFound"},
		{"nosuch", "1.0", "", map[string]any{}, "NoSuchMethod"},
		{"dhcp_ready_on_ports", "1.99", "", map[string]any{}, "UnsupportedVersion"},
		{"dhcp_ready_on_ports", "2.0", "", map[string]any{}, "UnsupportedVersion"},
		{"dhcp_ready_on_ports", "1.5", "trunk", map[string]any{}, "UnsupportedVersion"},
		{"dhcp_ready_on_ports", "1.5", "", map[string]any{"port_ids": "all"}, "TypeError"},
		{"report_state", "1.2", "", map[string]any{"agent_state": map[string]any{"agent_state": map[string]any{"host": "h"}}}, "TypeError"},
		{"get_ports", "1.0", "", map[string]any{"filters": map[string]any{"admin_state_up": []any{"perhaps"}}}, "TypeError"},
		{"bulk_pull", "1.1", "", map[string]any{"resource_type": "Nonsense", "version": "1.0"}, "CallbackNotFound"},
		{"tunnel_sync", "1.4", "", map[string]any{"tunnel_ip": "nowhere", "tunnel_type": "vxlan"}, "TypeError"},
	} {
		request := map[string]any{"topic": "q-plugin", "method": c.method, "version": c.version, "args": c.args}
		if c.namespace != "" {
			request["namespace"] = c.namespace
		}
		if o := st.request(t, request); o.Failure != c.want {
			t.Errorf("%s %s: got %s %q %q, want %s", c.method, c.version, o.Result, o.Failure, o.Message, c.want)
		}
	}
}

// Every method is called with unexpected arguments, as an agent of another version may do.
func TestCall_UnexpectedArgumentsAreAnswered(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	port := st.createPorts(t, 1)[0]
	long, nested := strings.Repeat("x", 70000), strings.Repeat("[", 5000)+strings.Repeat("]", 5000)
	id := port.ID.String()
	values := []string{`null`, `7`, `-1.5e300`, `true`, `""`, `"x"`, `"` + id + `"`, `[]`, `{}`, `[null]`, `[[]]`, `["` + id + `",7]`, `[["` + id + `"]]`, `{"a":{"a":"a"}}`,
		`"` + long + `"`, nested, `"\ud800"`, `["fa:16:3e:00:00:00",null]`, `"10.0.0.1"`, `"::1%eth0"`, `{"port":{"network_id":"` + st.network.ID.String() + `","device_id":"` + long + `"}}`,
		`{"port":{"network_id":"` + st.network.ID.String() + `","device_id":"d","fixed_ips":[{"subnet_id":"x","ip_address":"y"}]}}`, `{"id":[` + strings.Repeat(`"x",`, 3000) + `"x"]}`,
		`{"agent_state":{"agent_type":"Open vSwitch agent","host":"` + strings.Repeat("h", 250) + `","resource_versions":{"Port":"` + long + `"}}}`,
		`{"agent_state":{"agent_type":"Unknown agent","host":"nowhere","configurations":` + strings.Repeat(`{"a":`, 50) + `1` + strings.Repeat(`}`, 50) + `}}`}
	names := []string{"host", "devices", "device", "devices_up", "devices_down", "port_ids", "port_id", "port", "network", "network_id", "device_id", "filters", "fields",
		"agent_state", "tunnel_ip", "tunnel_type", "resource_type", "resource_id", "version", "filter_kwargs", "call_version", "enable_dhcp_filter"}
	methods := []string{"has_alive_neutron_server", "report_state", "get_active_networks_info", "get_network_info", "create_dhcp_port", "update_dhcp_port",
		"release_dhcp_port", "get_dhcp_port", "get_ports", "get_networks", "dhcp_ready_on_ports", "get_device_details", "get_devices_details_list",
		"get_devices_details_list_and_failed_devices", "update_device_up", "update_device_down", "update_device_list", "tunnel_sync", "get_network_details",
		"pull", "bulk_pull", "security_group_info_for_devices", "security_group_rules_for_devices", "get_dvr_mac_address_by_host", "get_dvr_mac_address_list"}
	client := newRawClient(t, st.url)
	sent := map[string]string{}
	send := func(method, args string) {
		n := strconv.Itoa(len(sent))
		sent[n] = method + " " + args[:min(len(args), 200)]
		client.send(t, envelope(fmt.Sprintf(`{"method":%q,"args":%s,"version":"1.0","_msg_id":%q,"_reply_q":%q,"_unique_id":%q}`, method, args, n, client.queue, hexID())))
	}
	for _, method := range methods {
		for _, v := range values {
			var all []string
			for _, name := range names {
				all = append(all, `"`+name+`":`+v)
			}
			send(method, v)
			send(method, "{"+strings.Join(all, ",")+"}")
		}
		for _, kind := range []string{"Port", "Network", "Subnet", "SecurityGroup", "SecurityGroupRule"} {
			send(method, `{"resource_type":"`+kind+`","resource_id":"x","version":"9.9.9","filter_kwargs":{"id":["x",""],"project_id":["`+long+`"],"name":[null]}}`)
		}
	}
	for deadline := time.After(maxWait); len(sent) > 0; {
		select {
		case reply := <-client.replies:
			m := openEnvelope(t, reply.Body)
			n := m["_msg_id"].(string)
			if failure, _ := m["failure"].(string); strings.Contains(failure, `"ServiceUnavailable"`) || strings.Contains(failure, "internal error") {
				t.Errorf("%s: %s", sent[n], failure)
			}
			delete(sent, n)
		case <-deadline:
			t.Fatalf("not answered: %v", slices.Collect(maps.Values(sent))[:min(len(sent), 10)])
		}
	}
	st.call(t, nil, "dhcp_ready_on_ports", "1.5", map[string]any{"port_ids": []string{id}})
}

func TestCall_RefusesHugeBatchesAndIgnoresUnknownHosts(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	port := st.createPorts(t, 1)[0]
	many := make([]string, 1001)
	for i := range many {
		many[i] = uuid.NewString()
	}
	for method, args := range map[string]map[string]any{
		"dhcp_ready_on_ports":              {"port_ids": many},
		"update_device_list":               {"devices_up": many, "host": "cmp1"},
		"get_devices_details_list":         {"devices": many, "host": "cmp1"},
		"security_group_info_for_devices":  {"devices": many},
		"security_group_rules_for_devices": {"devices": many},
	} {
		if o := st.request(t, map[string]any{"topic": "q-plugin", "method": method, "version": "1.0", "args": args}); o.Failure != "TypeError" {
			t.Errorf("%s of %d: %s %q %q", method, len(many), o.Result, o.Failure, o.Message)
		}
	}
	var up, details any
	st.call(t, &up, "update_device_list", "1.9", map[string]any{"devices_up": []string{port.ID.String()}, "devices_down": []string{port.ID.String()}, "host": "ghost", "agent_id": "x"})
	st.call(t, &details, "get_device_details", "1.9", map[string]any{"device": port.ID, "host": "ghost", "agent_id": "x"})
	now, err := st.Port(t.Context(), port.ID)
	if err != nil {
		t.Fatal(err)
	}
	if now.Status != network.Down || now.Revision != port.Revision || now.Ignored == 0 {
		t.Errorf("after reports of an unknown host the port is %s at revision %d with %d ignored reports", now.Status, now.Revision, now.Ignored)
	}
}
