package rpc_test

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
)

func TestSecurityGroupInfo_HasGroupsRulesAndMembers(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	ports := st.createPorts(t, 2)
	pairs := []network.AddressPair{{IP: netip.MustParsePrefix("10.7.0.0/24"), MAC: "fa:16:3e:00:00:01"}}
	if _, err := st.Network.UpdatePort(t.Context(), ports[1].ID, network.PortChange{AddressPairs: &pairs}, nil); err != nil {
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
	st.call(t, &info, "security_group_info_for_devices", "1.3",
		map[string]any{"devices": []string{name, "unknown"}, "call_version": "1.3"})
	dhcp := []map[string]any{
		{
			"direction":             "ingress",
			"ethertype":             "IPv4",
			"protocol":              "udp",
			"port_range_min":        68.0,
			"port_range_max":        68.0,
			"source_port_range_min": 67.0,
			"source_port_range_max": 67.0,
			"dest_ip_prefix":        first + "/32",
		},
		{
			"direction":             "ingress",
			"ethertype":             "IPv4",
			"protocol":              "udp",
			"port_range_min":        68.0,
			"port_range_max":        68.0,
			"source_port_range_min": 67.0,
			"source_port_range_max": 67.0,
			"dest_ip_prefix":        "255.255.255.255/32",
		},
		{
			"direction":             "ingress",
			"ethertype":             "IPv6",
			"protocol":              "udp",
			"port_range_min":        546.0,
			"port_range_max":        546.0,
			"source_port_range_min": 547.0,
			"source_port_range_max": 547.0,
			"dest_ip_prefix":        "fe80::/64",
		},
	}
	want := map[string]device{
		ports[0].ID.String(): {ports[0].ID.String(), name, []string{first}, []string{group}, dhcp},
	}
	if diff := cmp.Diff(want, info.Devices); diff != "" {
		t.Error(diff)
	}
	if len(info.Groups[group]) != 4 || info.Groups[group][0]["stateful"] != true {
		t.Errorf("security_group_info_for_devices: got the groups %v, want four stateful rules", info.Groups)
	}
	members := []any{[]any{first, nil}, []any{second, nil}, []any{"10.7.0.0/24", "fa:16:3e:00:00:01"}}
	if diff := cmp.Diff(map[string]map[string][]any{group: {"IPv4": sortedByJSON(members), "IPv6": {}}}, map[string]map[string][]any{group: {"IPv4": sortedByJSON(info.Members[group]["IPv4"]), "IPv6": info.Members[group]["IPv6"]}}); diff != "" {
		t.Error(diff)
	}
	st.call(t, &info, "security_group_info_for_devices", "1.2", map[string]any{"devices": []string{name}})
	got := sortedByJSON(info.Members[group]["IPv4"])
	if !cmp.Equal(got, sortedByJSON([]any{first, second, "10.7.0.0/24"})) {
		t.Errorf(
			"security_group_info_for_devices in version 1.2: got the members %v, want addresses without MACs",
			got,
		)
	}

	var rules map[string]device
	st.call(t, &rules, "security_group_rules_for_devices", "1.1",
		map[string]any{"devices": []string{ports[0].ID.String()}})
	sources := map[string]bool{}
	for _, r := range rules[ports[0].ID.String()].Rules {
		if from, ok := r["source_ip_prefix"]; ok {
			sources[from.(string)] = true
		}
	}
	wanted := map[string]bool{second + "/32": true, "10.7.0.0/24": true}
	if !cmp.Equal(sources, wanted) {
		t.Errorf(
			"security_group_rules_for_devices: got rules for the sources %v, want the other member and its allowed address pair",
			sources,
		)
	}
}

func sortedByJSON(all []any) []any {
	return slices.SortedFunc(slices.Values(all), func(a, b any) int {
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		return strings.Compare(string(x), string(y))
	})
}
