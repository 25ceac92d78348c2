package neutron_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
)

func TestBinding_ActivateMovesThePort(t *testing.T) {
	t.Parallel()
	c := open(t)
	c.heartbeat(network.OVSAgent, "cmp-2")
	net, _ := c.createNetwork("10.0.0.0/24")
	p := c.port(net, `,"binding:host_id":"cmp-1","device_owner":"compute:nova"`)
	path := "/v2.0/ports/" + p["id"].(string) + "/bindings"
	details := object{
		"connectivity":    "l2",
		"port_filter":     true,
		"ovs_hybrid_plug": false,
		"datapath_type":   "system",
		"bridge_name":     "br-int",
		"bound_drivers":   object{"0": "openvswitch"},
	}
	want := func(host, status, vif string, details, profile object) object {
		return object{
			"host":        host,
			"status":      status,
			"vif_type":    vif,
			"vif_details": details,
			"vnic_type":   "normal",
			"profile":     profile,
			"project_id":  "admin",
			"tenant_id":   "admin",
		}
	}

	created := c.must(201, "POST", path, `{"binding":{"host":"cmp-2","profile":{"a":1},"project_id":"admin"}}`)["binding"]
	if d := cmp.Diff(any(want("cmp-2", "INACTIVE", "ovs", details, object{"a": 1.0})), created); d != "" {
		t.Error(d)
	}
	changed := c.must(200, "PUT", path+"/cmp-2", `{"binding":{"profile":{}}}`)["binding"]
	if d := cmp.Diff(any(want("cmp-2", "INACTIVE", "ovs", details, object{})), changed); d != "" {
		t.Error(d)
	}
	active := c.must(200, "PUT", path+"/cmp-2/activate", "")
	if d := cmp.Diff(want("cmp-2", "ACTIVE", "ovs", details, object{}), active); d != "" {
		t.Error(d)
	}
	all := c.must(200, "GET", path, "")["bindings"]
	if d := cmp.Diff(any([]any{want("cmp-2", "ACTIVE", "ovs", details, object{}), want("cmp-1", "INACTIVE", "unbound", object{}, object{})}), all); d != "" {
		t.Error(d)
	}
	for query, host := range map[string]string{"?status=INACTIVE&fields=host": "cmp-1", "?host=cmp-2&limit=1&fields=host": "cmp-2"} {
		t.Run(query, func(t *testing.T) {
			c := c.in(t)
			if d := cmp.Diff(object{"bindings": []any{object{"host": host}}}, c.must(200, "GET", path+query, "")); d != "" {
				t.Errorf("list the bindings with the query %s (-want +got):\n%s", query, d)
			}
		})
	}
	one := c.must(200, "GET", path+"/cmp-1?fields=host&fields=status", "")["binding"]
	if d := cmp.Diff(any(object{"host": "cmp-1", "status": "INACTIVE"}), one); d != "" {
		t.Error(d)
	}
	c.must(204, "DELETE", path+"/cmp-1", "")
	if shown := c.must(200, "GET", "/v2.0/ports/"+p["id"].(string), "")["port"].(object); shown["binding:host_id"] != "cmp-2" ||
		shown["status"] != "DOWN" {
		t.Errorf("the port after its binding moved: got host %v and status %v, want cmp-2 and DOWN",
			shown["binding:host_id"], shown["status"])
	}
}

func TestBinding_ErrorTypes(t *testing.T) {
	t.Parallel()
	c := open(t)
	c.heartbeat(network.OVSAgent, "cmp-2")
	net, _ := c.createNetwork("10.0.0.0/24")
	bound := `,"binding:host_id":"cmp-1","device_owner":"compute:nova"`
	p, other := c.port(net, bound), c.port(net, `,"binding:host_id":"cmp-1"`)
	path, others := "/v2.0/ports/"+p["id"].(string)+"/bindings", "/v2.0/ports/"+other["id"].(string)+"/bindings"
	c.must(201, "POST", path, `{"binding":{"host":"cmp-2"}}`)
	for _, tc := range []struct{ method, path, body, want string }{
		{"POST", path, `{"binding":{"host":"cmp-2"}}`, "409 PortBindingAlreadyExists"},
		{"POST", path, `{"binding":{"host":"cmp-1"}}`, "409 PortBindingAlreadyExists"},
		{"POST", path, `{"binding":{"host":"cmp-9"}}`, "409 PortBindingError"},
		{"POST", path, `{"binding":{"host":""}}`, "400 HTTPBadRequest"},
		{"POST", path, `{"binding":{}}`, "400 HTTPBadRequest"},
		{"POST", path, `{"binding":{"host":"cmp-3","vnic_type":"moon"}}`, "400 HTTPBadRequest"},
		{"POST", path, `{"binding":{"host":"cmp-3","status":"ACTIVE"}}`, "400 HTTPBadRequest"},
		{"POST", path, `{"bindings":[{"host":"cmp-3"}]}`, "400 HTTPBadRequest"},
		{"POST", others, `{"binding":{"host":"cmp-2"}}`, "400 BadRequest"},
		{"PUT", path + "/cmp-2", `{"binding":{"host":"cmp-3"}}`, "400 HTTPBadRequest"},
		{"PUT", path + "/cmp-9", `{"binding":{"profile":{}}}`, "404 PortBindingNotFound"},
		{"PUT", path + "/cmp-1/activate", "", "409 PortBindingAlreadyActive"},
		{"PUT", path + "/cmp-9/activate", "{}", "404 PortBindingNotFound"},
		{"PUT", others + "/cmp-1/activate", "", "400 BadRequest"},
		{"GET", path + "/cmp-9", "", "404 PortBindingNotFound"},
		{"GET", path + "?moon=full", "", "400 HTTPBadRequest"},
		{"DELETE", path + "/cmp-9", "", "404 PortBindingNotFound"},
		{"GET", strings.Replace(path, p["id"].(string), "00000000-0000-4000-8000-000000000000", 1), "", "404 PortNotFound"},
	} {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			c := c.in(t)
			if got := c.fault(tc.method, tc.path, tc.body); got != tc.want {
				t.Errorf("%s %s with the body %s: got %s, want %s", tc.method, tc.path, tc.body, got, tc.want)
			}
		})
	}
	if got := c.as("u:admin").fault("GET", path+"/cmp-1", ""); got != "403 PolicyNotAuthorized" {
		t.Errorf("a member shows a binding: got %s, want 403 PolicyNotAuthorized", got)
	}
}

func TestBinding_VIFDetailsDescribeTheAgentsSwitch(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	const usual = `{"datapath_type":"system","integration_bridge":"br-int","ovs_hybrid_plug":false}`
	configure := func(host, configurations string) {
		t.Helper()
		if _, err := c.store.Network.ReportState(t.Context(), network.AgentState{Type: network.OVSAgent, Host: host, Configurations: json.RawMessage(configurations)}); err != nil {
			t.Fatal(err)
		}
	}
	ovs := func(datapath, bridge string, hybrid bool) object {
		return object{
			"connectivity":    "l2",
			"port_filter":     true,
			"ovs_hybrid_plug": hybrid,
			"datapath_type":   datapath,
			"bridge_name":     bridge,
			"bound_drivers":   object{"0": "openvswitch"},
		}
	}
	shared := func(mode, socket string) object {
		return object{
			"connectivity":       "l2",
			"port_filter":        false,
			"ovs_hybrid_plug":    false,
			"datapath_type":      "netdev",
			"bridge_name":        "br-int",
			"vhostuser_mode":     mode,
			"vhostuser_ovs_plug": true,
			"vhostuser_socket":   socket,
			"bound_drivers":      object{"0": "openvswitch"},
		}
	}

	for host, tc := range map[string]struct {
		says, more, vif string
		want            func(id string) object
	}{
		"cmp-2": {usual, "", "ovs", func(string) object { return ovs("system", "br-int", false) }},
		"cmp-3": {`{"datapath_type":"netdev","integration_bridge":"br-x","ovs_hybrid_plug":true,"ovs_capabilities":{"iface_types":["tap"]}}`, "", "ovs",
			func(string) object { return ovs("netdev", "br-x", true) }},
		"cmp-4": {`{"datapath_type":"netdev","ovs_capabilities":{"iface_types":["dpdkvhostuser"]},"vhostuser_socket_dir":"/run/vhu"}`, "", "vhostuser",
			func(id string) object { return shared("client", "/run/vhu/vhu"+id[:11]) }},
		"cmp-5": {`{"datapath_type":"netdev","ovs_capabilities":{"iface_types":["dpdkvhostuserclient"]}}`, "", "vhostuser",
			func(id string) object { return shared("server", "/var/run/openvswitch/vhu"+id[:11]) }},
		"cmp-6": {`{"datapath_type":"netdev","ovs_capabilities":{"iface_types":["dpdkvhostuser"]}}`, `,"binding:vnic_type":"direct","binding:profile":{"capabilities":["switchdev"]}`, "ovs",
			func(string) object { return ovs("netdev", "br-int", false) }},
		"cmp-7": {`{"datapath_type":7,"integration_bridge":["x"]}`, "", "ovs", func(string) object { return ovs("system", "br-int", false) }},
		"cmp-8": {`{"datapath_type":"` + strings.Repeat("x", 300) + `"}`, "", "ovs", func(string) object { return ovs("system", "br-int", false) }},
	} {
		t.Run(host, func(t *testing.T) {
			c := c.in(t)
			configure(host, tc.says)
			p := c.port(net, `,"binding:host_id":"`+host+`","device_owner":"compute:nova"`+tc.more)
			for _, p := range []object{p, c.must(200, "GET", "/v2.0/ports/"+p["id"].(string), "")["port"].(object)} {
				if d := cmp.Diff(any(tc.want(p["id"].(string))), p["binding:vif_details"]); d != "" ||
					p["binding:vif_type"] != tc.vif {
					t.Errorf(
						"port on %s: got binding:vif_type %v; binding:vif_details (-want +got):\n%s",
						host, p["binding:vif_type"], d,
					)
				}
			}
		})
	}

	// A bound port keeps the VIF details of its host from the time of the binding, even if the host's details
	// change later. An inactive binding for a live migration has the VIF details of the destination host.
	p := c.port(net, `,"binding:host_id":"cmp-3","device_owner":"compute:nova"`)
	configure("cmp-3", usual)
	path := "/v2.0/ports/" + p["id"].(string)
	created := c.must(201, "POST", path+"/bindings", `{"binding":{"host":"cmp-4"}}`)["binding"].(object)
	if d := cmp.Diff(any(shared("client", "/run/vhu/vhu"+p["id"].(string)[:11])), created["vif_details"]); d != "" ||
		created["vif_type"] != "vhostuser" {
		t.Errorf("VIF details of the new inactive binding (-want +got):\n%s", d)
	}
	p = c.must(200, "PUT", path, `{"port":{"name":"x"}}`)["port"].(object)
	if d := cmp.Diff(any(ovs("netdev", "br-x", true)), p["binding:vif_details"]); d != "" {
		t.Errorf("VIF details of the port on its current host (-want +got):\n%s", d)
	}
	active := c.must(200, "PUT", path+"/bindings/cmp-4/activate", "")
	if d := cmp.Diff(created["vif_details"], active["vif_details"]); d != "" {
		t.Errorf("VIF details of the activated binding (-want +got):\n%s", d)
	}
	p = c.must(200, "PUT", path, `{"port":{"binding:host_id":""}}`)["port"].(object)
	if d := cmp.Diff(any(object{}), p["binding:vif_details"]); d != "" {
		t.Errorf("VIF details of the unbound port (-want +got):\n%s", d)
	}
}

// The mechanism driver of a VNIC type binds ports only on the types of networks that it supports. Only the
// VNIC type direct-physical needs no agent on the host.
func TestBinding_VNICTypeNeedsADriverForTheNetwork(t *testing.T) {
	t.Parallel()
	c := open(t)
	vxlan := c.must(201, "POST", "/v2.0/networks", `{"network":{}}`)["network"].(object)["id"].(string)
	flat := c.must(201, "POST", "/v2.0/networks", `{"network":{"provider:network_type":"flat","provider:physical_network":"p"}}`)["network"].(object)["id"].(string)
	for _, tc := range []struct{ net, vnic, vif, status string }{
		{vxlan, "direct-physical", "binding_failed", "DOWN"},
		{vxlan, "accelerator-direct", "binding_failed", "DOWN"},
		{vxlan, "accelerator-direct-physical", "binding_failed", "DOWN"},
		{flat, "direct-physical", "hostdev_physical", "ACTIVE"},
		{flat, "accelerator-direct", "binding_failed", "DOWN"},
		{flat, "accelerator-direct-physical", "binding_failed", "DOWN"},
	} {
		t.Run(tc.vnic+" "+tc.vif, func(t *testing.T) {
			p := c.in(t).
				port(tc.net, `,"binding:host_id":"bare","device_owner":"compute:nova","binding:vnic_type":"`+tc.vnic+`"`)
			if p["binding:vif_type"] != tc.vif || p["status"] != tc.status {
				t.Errorf(
					"create a port on a host without agents: got VIF type %v and status %v, want %s and %s",
					p["binding:vif_type"], p["status"], tc.vif, tc.status,
				)
			}
		})
	}
}
