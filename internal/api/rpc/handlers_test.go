package rpc_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/network"
)

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
		{"tunnel_sync", "1.4", "", map[string]any{"tunnel_ip": "192.0.2.7", "tunnel_type": "vxlan", "host": "cmp\n1"}, "TypeError"},
		{"report_state", "1.2", "", map[string]any{"agent_state": map[string]any{"agent_state": map[string]any{"agent_type": "x", "host": "h\r"}}}, "TypeError"},
		{"report_state", "1.2", "", map[string]any{"agent_state": map[string]any{"agent_state": map[string]any{"agent_type": "x", "host": "h", "availability_zone": "a\u2028"}}}, "TypeError"},
		{"create_dhcp_port", "1.10", "", map[string]any{"host": "net1", "port": map[string]any{"port": map[string]any{"network_id": st.network.ID, "device_id": "dhcp\x1b"}}}, "TypeError"},
		{"update_dhcp_port", "1.10", "", map[string]any{"host": "net\n1", "port_id": uuid.NewString(), "port": map[string]any{"port": map[string]any{}}}, "TypeError"},
		{"get_dvr_mac_address_by_host", "1.0", "", map[string]any{"host": "cmp1\n"}, "TypeError"},
	} {
		t.Run(c.method+" "+c.version+" "+c.want, func(t *testing.T) {
			request := map[string]any{
				"topic":   "q-plugin",
				"method":  c.method,
				"version": c.version,
				"args":    c.args,
			}
			if c.namespace != "" {
				request["namespace"] = c.namespace
			}
			if o := st.request(t, request); o.Failure != c.want {
				t.Errorf(
					"call with an invalid method, version or argument: got result %s, exception %q %q; want the exception %s",
					o.Result, o.Failure, o.Message, c.want,
				)
			}
		})
	}
}

// berth must answer a call with unexpected arguments, because an agent of another version may send such
// arguments. TestCall_UnexpectedArgumentsAreAnswered calls every RPC method with unexpected arguments.
func TestCall_UnexpectedArgumentsAreAnswered(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	port := st.createPorts(t, 1)[0]
	long, nested := strings.Repeat("x", 70000), strings.Repeat("[", 5000)+strings.Repeat("]", 5000)
	id := port.ID.String()
	values := []string{
		`null`,
		`7`,
		`-1.5e300`,
		`true`,
		`""`,
		`"x"`,
		`"` + id + `"`,
		`[]`,
		`{}`,
		`[null]`,
		`[[]]`,
		`["` + id + `",7]`,
		`[["` + id + `"]]`,
		`{"a":{"a":"a"}}`,
		`"` + long + `"`,
		nested,
		`"\ud800"`,
		`["fa:16:3e:00:00:00",null]`,
		`"10.0.0.1"`,
		`"::1%eth0"`,
		`{"port":{"network_id":"` + st.network.ID.String() + `","device_id":"` + long + `"}}`,
		`{"port":{"network_id":"` + st.network.ID.String() + `","device_id":"d","fixed_ips":[{"subnet_id":"x","ip_address":"y"}]}}`,
		`{"id":[` + strings.Repeat(`"x",`, 3000) + `"x"]}`,
		`{"agent_state":{"agent_type":"Open vSwitch agent",` +
			`"host":"` + strings.Repeat("h", 250) + `","resource_versions":{"Port":"` + long + `"}}}`,
		`{"agent_state":{"agent_type":"Unknown agent","host":"nowhere",` +
			`"configurations":` + strings.Repeat(`{"a":`, 50) + `1` + strings.Repeat(`}`, 50) + `}}`,
	}
	names := []string{
		"host",
		"devices",
		"device",
		"devices_up",
		"devices_down",
		"port_ids",
		"port_id",
		"port",
		"network",
		"network_id",
		"device_id",
		"filters",
		"fields",
		"agent_state",
		"tunnel_ip",
		"tunnel_type",
		"resource_type",
		"resource_id",
		"version",
		"filter_kwargs",
		"call_version",
		"enable_dhcp_filter",
	}
	methods := []string{
		"has_alive_neutron_server",
		"report_state",
		"get_active_networks_info",
		"get_network_info",
		"create_dhcp_port",
		"update_dhcp_port",
		"release_dhcp_port",
		"get_dhcp_port",
		"get_ports",
		"get_networks",
		"dhcp_ready_on_ports",
		"get_device_details",
		"get_devices_details_list",
		"get_devices_details_list_and_failed_devices",
		"update_device_up",
		"update_device_down",
		"update_device_list",
		"tunnel_sync",
		"get_network_details",
		"pull",
		"bulk_pull",
		"security_group_info_for_devices",
		"security_group_rules_for_devices",
		"get_dvr_mac_address_by_host",
		"get_dvr_mac_address_list",
	}
	client := newRawClient(t, st.url)
	sent := map[string]string{}
	send := func(method, args string) {
		n := strconv.Itoa(len(sent))
		sent[n] = method + " " + args[:min(len(args), 200)]
		client.send(t, envelope(fmt.Sprintf(
			`{"method":%q,"args":%s,"version":"1.0","_msg_id":%q,"_reply_q":%q,"_unique_id":%q}`,
			method, args, n, client.queue, hexID(),
		)))
	}
	for i, method := range methods {
		for j, v := range values {
			of := names
			if len(v) > 5000 { // a long value costs much time, so each method gets it only for some arguments
				of = slices.Concat(names[(i+j)%len(names):], names)[:2]
			}
			var all []string
			for _, name := range of {
				all = append(all, `"`+name+`":`+v)
			}
			send(method, v)
			send(method, "{"+strings.Join(all, ",")+"}")
		}
		for _, kind := range []string{"Port", "Network", "Subnet", "SecurityGroup", "SecurityGroupRule"} {
			send(
				method,
				`{"resource_type":"`+kind+`","resource_id":"x","version":"9.9.9","filter_kwargs":{"id":["x",""],"project_id":["`+long+`"],"name":[null]}}`,
			)
		}
	}
	for deadline := time.After(maxWait); len(sent) > 0; {
		select {
		case reply := <-client.replies:
			m := openEnvelope(t, reply.Body)
			n := m["_msg_id"].(string)
			if failure, _ := m["failure"].(string); strings.Contains(failure, `"ServiceUnavailable"`) ||
				strings.Contains(failure, "internal error") {
				t.Errorf(
					"call %s with unexpected arguments: got the internal error %s, want success or an exception about the arguments",
					sent[n],
					failure,
				)
			}
			delete(sent, n)
		case <-deadline:
			t.Fatalf("wait for the replies to all calls: want a reply to each call, got none to %v",
				slices.Collect(maps.Values(sent))[:min(len(sent), 10)])
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
		"bulk_pull":                        {"resource_type": "Port", "version": "1.7", "filter_kwargs": map[string]any{"id": many}},
		"get_ports":                        {"filters": map[string]any{"network_id": many[:600], "device_id": many[600:]}},
		"get_networks":                     {"filters": map[string]any{"name": many}},
	} {
		t.Run(method, func(t *testing.T) {
			if o := st.request(t, map[string]any{
				"topic":   "q-plugin",
				"method":  method,
				"version": "1.0",
				"args":    args,
			}); o.Failure != "TypeError" {
				t.Errorf(
					"call with %d ports, more than allowed: got result %s, exception %q %q; want TypeError",
					len(many), o.Result, o.Failure, o.Message,
				)
			}
		})
	}
	var up, details any
	st.call(t, &up, "update_device_list", "1.9", map[string]any{
		"devices_up":   []string{port.ID.String()},
		"devices_down": []string{port.ID.String()},
		"host":         "ghost",
		"agent_id":     "x",
	})
	st.call(t, &details, "get_device_details", "1.9",
		map[string]any{"device": port.ID, "host": "ghost", "agent_id": "x"})
	now, err := st.Network.Port(t.Context(), port.ID)
	if err != nil {
		t.Fatal(err)
	}
	if now.Status != network.Down || now.Revision != port.Revision || now.IgnoredReports == 0 {
		t.Errorf(
			"read the port after reports from an unknown host: got status %s, revision %d, %d ignored reports; want DOWN, the same revision, at least one",
			now.Status, now.Revision, now.IgnoredReports,
		)
	}
}

// A call to an RPC method succeeds with the newest version of the method that
// berth supports. A call with a later version fails with UnsupportedVersion.
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
		t.Run(c.method, func(t *testing.T) {
			args := map[string]any{
				"resource_type": "Port",
				"version":       "1.7",
				"filter_kwargs": map[string]any{"id": []any{}},
			}
			if o := st.request(t, map[string]any{
				"topic":   "q-plugin",
				"method":  c.method,
				"version": c.newest,
				"args":    args,
			}); o.Failure != "" {
				t.Errorf("call the newest version %s: got exception %s %s, want success",
					c.newest, o.Failure, o.Message)
			}
			for _, version := range []string{c.unknown, "2.0", "0.9", "x", "1.1.1.1"} {
				if o := st.request(t, map[string]any{
					"topic":   "q-plugin",
					"method":  c.method,
					"version": version,
					"args":    args,
				}); o.Failure != "UnsupportedVersion" {
					t.Errorf(
						"call the unsupported version %s: got result %s, exception %q; want UnsupportedVersion",
						version, o.Result, o.Failure,
					)
				}
			}
		})
	}
}
