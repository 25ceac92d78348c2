package rpc_test

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/api/rpc"
	"berth/internal/network"
)

// publishAll publishes the notifications of the network and those without a network.
func (st *fixture) publishAll(t *testing.T, c *rpc.Publisher) {
	t.Helper()
	for _, id := range []uuid.UUID{{}, st.network.ID} {
		due, err := st.Announcements(t.Context(), id, 1000)
		if err != nil {
			t.Fatal(err)
		}
		published, err := c.Publish(t.Context(), due)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.SettleAnnouncements(t.Context(), published); err != nil {
			t.Fatal(err)
		}
	}
}

// newPublisher returns a publisher and lets the store record notifications from now on.
func (st *fixture) newPublisher(t *testing.T) *rpc.Publisher {
	t.Helper()
	st.Announce()
	c := rpc.NewPublisher(rpc.Options{Store: st.Store, Brokers: []string{st.url}})
	t.Cleanup(c.Close)
	return c
}

// receiveMethods returns the arguments of the next messages by method. They may come in any order.
func (a *agent) receiveMethods(t *testing.T, methods ...string) map[string]map[string]any {
	t.Helper()
	got := map[string]map[string]any{}
	for range methods {
		h := a.receive(t)
		if !slices.Contains(methods, h.Method) || got[h.Method] != nil {
			t.Fatalf("got %s %s, want one each of %v", h.Method, h.Args, methods)
		}
		var args map[string]any
		if err := json.Unmarshal(h.Args, &args); err != nil {
			t.Fatal(err)
		}
		got[h.Method] = args
	}
	return got
}

// A security group rule is created while agents with two versions of the object listen.
func TestPublish_PushesRuleInEveryVersionOfTheAgents(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	port := st.createPorts(t, 1)[0]
	for host, version := range map[string]string{"cmp7": "1.2", "cmp8": "1.3"} {
		o := st.request(t, map[string]any{"topic": "q-reports-plugin", "method": "report_state", "version": "1.2", "args": map[string]any{"time": "2026-11-20T16:56:24.405715",
			"agent_state": map[string]any{"agent_state": map[string]any{"agent_type": "Open vSwitch agent", "host": host, "binary": "x", "topic": "N/A",
				"start_flag": true, "resource_versions": map[string]any{"SecurityGroupRule": version}}}}})
		if string(o.Result) != `"new"` {
			t.Fatalf("got %s %s %s", o.Result, o.Failure, o.Message)
		}
		st.listenTo(t, "neutron-vo-SecurityGroupRule-"+version, host, "1.1")
	}
	st.listenTo(t, "q-agent-notifier-security_group-update", "cmp9", "1.1")
	publisher := st.newPublisher(t)

	direction, protocol := network.Ingress, "tcp"
	group := port.SecurityGroups[0]
	rules, err := st.CreateSecurityRules(t.Context(), []network.SecurityRuleChange{{Group: &group, Direction: &direction, Protocol: &protocol}})
	if err != nil {
		t.Fatal(err)
	}
	st.publishAll(t, publisher)

	versions, updated := []string{}, 0
	for range 3 {
		h := st.receive(t)
		if h.Method == "security_groups_rule_updated" && strings.Contains(string(h.Args), group.String()) {
			updated++
			continue
		}
		var push struct {
			Event     string `json:"event_type"`
			Resources []struct {
				Version string         `json:"versioned_object.version"`
				Data    map[string]any `json:"versioned_object.data"`
			} `json:"resource_list"`
		}
		if err := json.Unmarshal(h.Args, &push); err != nil || h.Method != "push" || push.Resources[0].Data["id"] != rules[0].ID.String() || push.Event != "updated" {
			t.Fatalf("got %s %s", h.Method, h.Args)
		}
		versions = append(versions, push.Resources[0].Version)
	}
	slices.Sort(versions)
	if diff := cmp.Diff([]string{"1.2", "1.3"}, versions); diff != "" || updated != 1 {
		t.Errorf("pushed in %v, and published of %d times", versions, updated)
	}

	if err := st.DeleteSecurityRule(t.Context(), rules[0].ID, nil); err != nil {
		t.Fatal(err)
	}
	st.publishAll(t, publisher)
	for range 3 {
		if h := st.receive(t); h.Method == "push" && !strings.Contains(string(h.Args), `"deleted"`) {
			t.Errorf("got %s", h.Args)
		}
	}
}

// A port joins a group, changes its address and leaves the group.
func TestPublish_SecurityGroupMemberUpdates(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	st.listenTo(t, "q-agent-notifier-security_group-update", "cmp9", "1.1")
	st.listenTo(t, "dhcp_agent", "net1", "1.0")
	publisher := st.newPublisher(t)
	wantMemberUpdate := func(what string, want uuid.UUID) {
		t.Helper()
		st.publishAll(t, publisher)
		for { // skip the notifications about the project's new default group
			if h := st.receive(t); h.Method == "security_groups_member_updated" {
				if !strings.Contains(string(h.Args), want.String()) {
					t.Errorf("%s: got %s", what, h.Args)
				}
				return
			}
		}
	}
	port := st.createPorts(t, 1)[0]
	group := port.SecurityGroups[0]
	wantMemberUpdate("a new port", group)
	if _, err := st.UpdatePort(t.Context(), port.ID, network.PortChange{Fixed: &[]network.Fixed{}}, nil); err != nil {
		t.Fatal(err)
	}
	wantMemberUpdate("another address", group)
	if _, err := st.UpdatePort(t.Context(), port.ID, network.PortChange{SecurityGroups: &[]uuid.UUID{}}, nil); err != nil {
		t.Fatal(err)
	}
	wantMemberUpdate("left", group)
}

func TestSecurityGroupInfo_HasGroupsRulesAndMembers(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	ports := st.createPorts(t, 2)
	pairs := []network.AddressPair{{IP: netip.MustParsePrefix("10.7.0.0/24"), MAC: "fa:16:3e:00:00:01"}}
	if _, err := st.UpdatePort(t.Context(), ports[1].ID, network.PortChange{AddressPairs: &pairs}, nil); err != nil {
		t.Fatal(err)
	}
	group, first, second := ports[0].SecurityGroups[0].String(), ports[0].Addresses[0].IP.String(), ports[1].Addresses[0].IP.String()
	type device struct {
		ID     string           `json:"id"`
		Device string           `json:"device"`
		Fixed  []string         `json:"fixed_ips"`
		Remote []string         `json:"security_group_source_groups"`
		Rules  []map[string]any `json:"security_group_rules"`
	}
	var info struct {
		Devices map[string]device           `json:"devices"`
		Groups  map[string][]map[string]any `json:"security_groups"`
		Members map[string]map[string][]any `json:"sg_member_ips"`
	}
	name := "tap" + ports[0].ID.String()[:11]
	st.call(t, &info, "security_group_info_for_devices", "1.3", map[string]any{"devices": []string{name, "unknown"}, "call_version": "1.3"})
	dhcp := []map[string]any{
		{"direction": "ingress", "ethertype": "IPv4", "protocol": "udp", "port_range_min": 68.0, "port_range_max": 68.0, "source_port_range_min": 67.0, "source_port_range_max": 67.0, "dest_ip_prefix": first + "/32"},
		{"direction": "ingress", "ethertype": "IPv4", "protocol": "udp", "port_range_min": 68.0, "port_range_max": 68.0, "source_port_range_min": 67.0, "source_port_range_max": 67.0, "dest_ip_prefix": "255.255.255.255/32"},
		{"direction": "ingress", "ethertype": "IPv6", "protocol": "udp", "port_range_min": 546.0, "port_range_max": 546.0, "source_port_range_min": 547.0, "source_port_range_max": 547.0, "dest_ip_prefix": "fe80::/64"},
	}
	want := map[string]device{ports[0].ID.String(): {ports[0].ID.String(), name, []string{first}, []string{group}, dhcp}}
	if diff := cmp.Diff(want, info.Devices); diff != "" {
		t.Error(diff)
	}
	if len(info.Groups[group]) != 4 || info.Groups[group][0]["stateful"] != true {
		t.Errorf("groups: %v", info.Groups)
	}
	members := []any{[]any{first, nil}, []any{second, nil}, []any{"10.7.0.0/24", "fa:16:3e:00:00:01"}}
	if diff := cmp.Diff(map[string]map[string][]any{group: {"IPv4": sortedByJSON(members), "IPv6": {}}}, map[string]map[string][]any{group: {"IPv4": sortedByJSON(info.Members[group]["IPv4"]), "IPv6": info.Members[group]["IPv6"]}}); diff != "" {
		t.Error(diff)
	}
	st.call(t, &info, "security_group_info_for_devices", "1.2", map[string]any{"devices": []string{name}})
	if got := sortedByJSON(info.Members[group]["IPv4"]); !cmp.Equal(got, sortedByJSON([]any{first, second, "10.7.0.0/24"})) {
		t.Errorf("members for version 1.2: %v", got)
	}

	var rules map[string]device
	st.call(t, &rules, "security_group_rules_for_devices", "1.1", map[string]any{"devices": []string{ports[0].ID.String()}})
	sources := map[string]bool{}
	for _, r := range rules[ports[0].ID.String()].Rules {
		if from, ok := r["source_ip_prefix"]; ok {
			sources[from.(string)] = true
		}
	}
	if got := slices.Sorted(maps.Keys(sources)); !cmp.Equal(got, slices.Sorted(slices.Values([]string{second + "/32", "10.7.0.0/24"}))) {
		t.Errorf("rules allow %v", got)
	}
}

func sortedByJSON(all []any) []any {
	return slices.SortedFunc(slices.Values(all), func(a, b any) int {
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		return strings.Compare(string(x), string(y))
	})
}

func TestDVRMAC_IsUniquePerHost(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	st.listenTo(t, "q-agent-notifier-dvr-update", "cmp1", "1.0")
	publisher := st.newPublisher(t)
	macOf := func(host string) string {
		t.Helper()
		var m map[string]string
		st.call(t, &m, "get_dvr_mac_address_by_host", "1.0", map[string]any{"host": host})
		if m["host"] != host || !strings.HasPrefix(m["mac_address"], "fa:16:3f:") {
			t.Errorf("%s has %v", host, m)
		}
		return m["mac_address"]
	}
	first := macOf("cmp1")
	if again := macOf("cmp1"); again != first {
		t.Errorf("two calls for cmp1 returned %s and %s", first, again)
	}
	if other := macOf("cmp2"); other == first {
		t.Errorf("both hosts have %s", first)
	}
	var all []map[string]string
	st.call(t, &all, "get_dvr_mac_address_list", "1.0", map[string]any{})
	if len(all) != 2 {
		t.Errorf("listed %v", all)
	}
	st.publishAll(t, publisher)
	if args := st.receiveMethod(t, "dvr_mac_address_update"); len(args["dvr_macs"].([]any)) != 2 {
		t.Errorf("got %v", args)
	}
	st.call(t, nil, "get_dvr_mac_address_by_host", "1.0", map[string]any{"host": ""})
}

func TestPublish_MovedTunnelDeletesOldEndpoint(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	st.listenTo(t, "q-agent-notifier-tunnel-update", "cmp9", "1.0")
	st.listenTo(t, "q-agent-notifier-tunnel-delete", "cmp9", "1.0")
	publisher := st.newPublisher(t)
	sync := func(ip string) {
		t.Helper()
		var tunnels any
		st.call(t, &tunnels, "tunnel_sync", "1.4", map[string]any{"tunnel_ip": ip, "tunnel_type": "gre", "host": "cmp1"})
		st.publishAll(t, publisher)
	}
	sync("10.9.9.1")
	if args := st.receiveMethod(t, "tunnel_update"); args["tunnel_ip"] != "10.9.9.1" || args["tunnel_type"] != "gre" {
		t.Errorf("got %v", args)
	}
	sync("10.9.9.2")
	got := st.receiveMethods(t, "tunnel_update", "tunnel_delete")
	if got["tunnel_update"]["tunnel_ip"] != "10.9.9.2" || got["tunnel_delete"]["tunnel_ip"] != "10.9.9.1" {
		t.Errorf("got %v", got)
	}
}

// An agent that missed its heartbeats kept its state, so it only needs the notifications since then.
func TestReportState_RevivedAgentGetsMissedNotifications(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	st.listenTo(t, "neutron-vo-Port-1.7", "cmp1", "1.1")
	st.listenTo(t, "dhcp_agent", "net1", "1.0")
	publisher := st.newPublisher(t)
	port := st.createPorts(t, 1)[0]
	st.publishAll(t, publisher)
	st.receiveAbout(t, "push", port.ID)
	st.makeStale(t, "cmp1")

	o := st.request(t, map[string]any{"topic": "q-reports-plugin", "method": "report_state", "version": "1.2", "args": map[string]any{"time": "2026-11-20T16:56:24.405715",
		"agent_state": map[string]any{"agent_state": map[string]any{"agent_type": "Open vSwitch agent", "host": "cmp1", "binary": "x", "topic": "N/A"}}}})
	if string(o.Result) != `"revived"` {
		t.Fatalf("got %s %s %s", o.Result, o.Failure, o.Message)
	}
	st.publishAll(t, publisher)
	st.receiveAbout(t, "push", port.ID)
}
