package rpc_test

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

func TestPublish_DHCPAgentGetsSubnetAndAgentNotifications(t *testing.T) {
	t.Parallel()
	st, next := newDHCPFixture(t)
	project, cidr, off, name := "p1", netip.MustParsePrefix("10.9.0.0/24"), false, "green"
	subnets, err := st.Network.CreateSubnets(t.Context(),
		[]network.SubnetChange{{Network: &st.network.ID, CIDR: &cidr, Project: &project}})
	if err != nil {
		t.Fatal(err)
	}
	if p := next("subnet_create_end", 3); p["subnet"].(map[string]any)["cidr"] != "10.9.0.0/24" {
		t.Errorf("receive subnet_create_end: got %v, want the subnet with the CIDR 10.9.0.0/24", p)
	}
	if _, err := st.Network.UpdateSubnet(t.Context(), subnets[0].ID, network.SubnetChange{DHCP: &off}, nil); err != nil {
		t.Fatal(err)
	}
	if p := next("subnet_update_end", 3); p["subnet"].(map[string]any)["enable_dhcp"] != false {
		t.Errorf("receive subnet_update_end: got %v, want enable_dhcp false", p)
	}
	if err := st.Network.DeleteSubnet(t.Context(), subnets[0].ID, nil); err != nil {
		t.Fatal(err)
	}
	if p := next("subnet_delete_end", 4); p["subnet_id"] != subnets[0].ID.String() ||
		p["network_id"] != st.network.ID.String() {
		t.Errorf("receive subnet_delete_end: got %v, want the IDs of the subnet and of the network", p)
	}
	if _, err := st.Network.UpdateNetwork(t.Context(), st.network.ID, network.NetworkChange{Name: &name}, nil); err != nil {
		t.Fatal(err)
	}
	if p := next("network_update_end", 1); p["network"].(map[string]any)["name"] != "green" {
		t.Errorf("receive network_update_end: got %v, want the name green", p)
	}
	agents, err := st.Network.Agents(t.Context(),
		db.Listing{Where: []db.Condition{{Field: "host", In: []string{"net1"}}}})
	if err != nil || len(agents) != 1 {
		t.Fatalf("read the agents on the host net1: got %v, error %v; want one agent", agents, err)
	}
	if _, err := st.Network.UpdateAgent(t.Context(), agents[0].ID, network.AgentChange{AdminUp: &off}); err != nil {
		t.Fatal(err)
	}
	if p := next("agent_updated", 0); p["admin_state_up"] != false {
		t.Errorf("receive agent_updated: got %v, want admin_state_up false", p)
	}
	if err := st.Network.UnscheduleNetwork(t.Context(), agents[0].ID, st.network.ID); err != nil {
		t.Fatal(err)
	}
	if p := next("network_delete_end", 2); p["network_id"] != st.network.ID.String() {
		t.Errorf("receive network_delete_end: got %v, want the network's ID", p)
	}
}

// A DHCP agent gets no message when only the name of an object changes.
func TestPublish_DHCPAgentGetsPortUpdateOnlyForAddressesAndOptions(t *testing.T) {
	t.Parallel()
	st, next := newDHCPFixture(t)
	port := st.createPorts(t, 1)[0]
	next("port_create_end", 5)
	name := "web"
	if _, err := st.Network.UpdatePort(t.Context(), port.ID, network.PortChange{Name: &name}, nil); err != nil {
		t.Fatal(err)
	}
	value := "10.1.0.9"
	options := []network.DHCPOption{{Name: "server-ip-address", Value: &value, IPVersion: 4}}
	if _, err := st.Network.UpdatePort(t.Context(), port.ID, network.PortChange{DHCPOptions: &options}, nil); err != nil {
		t.Fatal(err)
	}
	if p := next("port_update_end", 6)["port"].(map[string]any); p["name"] != "web" ||
		len(p["extra_dhcp_opts"].([]any)) != 1 {
		t.Errorf("receive port_update_end: got %v, want the port web with one DHCP option", p)
	}
	addresses := port.Addresses
	if err := st.Network.DeletePort(t.Context(), port.ID, nil); err != nil {
		t.Fatal(err)
	}
	p := next("port_delete_end", 6)
	if fixed := p["fixed_ips"].([]any); len(fixed) != 1 ||
		fixed[0].(map[string]any)["ip_address"] != addresses[0].IP.String() {
		t.Errorf("receive port_delete_end: got %v, want the port's address", p)
	}
}

// In this test, a port moves to a host for which the port already has an inactive binding.
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
	if _, err := st.Network.CreateBinding(t.Context(), port.ID, network.BindingChange{Host: &host}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Network.ActivateBinding(t.Context(), port.ID, "cmp2"); err != nil {
		t.Fatal(err)
	}
	st.publishAll(t, publisher)
	got := st.receiveMethods(t, "binding_deactivate", "binding_activate")
	if d := got["binding_deactivate"]; d["host"] != "cmp1" || d["port_id"] != port.ID.String() ||
		d["network_id"] != port.Network.String() {
		t.Errorf("receive binding_deactivate: got %v, want the port on cmp1", d)
	}
	if a := got["binding_activate"]; a["host"] != "cmp2" || a["port_id"] != port.ID.String() {
		t.Errorf("receive binding_activate: got %v, want the port on cmp2", a)
	}
}

// A security group rule is created while the listening agents use two versions of the rule's versioned
// object.
func TestPublish_PushesRuleInEveryVersionOfTheAgents(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	port := st.createPorts(t, 1)[0]
	for host, version := range map[string]string{"cmp7": "1.2", "cmp8": "1.3"} {
		st.reportVersions(t, host, map[string]any{"SecurityGroupRule": version})
		st.listenTo(t, "neutron-vo-SecurityGroupRule-"+version, host, "1.1")
	}
	st.listenTo(t, "q-agent-notifier-security_group-update", "cmp9", "1.1")
	publisher := st.newPublisher(t)

	direction, protocol := network.Ingress, "tcp"
	group := port.SecurityGroups[0]
	rules, err := st.Network.CreateSecurityRules(t.Context(),
		[]network.SecurityRuleChange{{Group: &group, Direction: &direction, Protocol: &protocol}})
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
		if err := json.Unmarshal(h.Args, &push); err != nil || h.Method != "push" ||
			push.Resources[0].Data["id"] != rules[0].ID.String() ||
			push.Event != "updated" {
			t.Fatalf(
				"receive a message about a new rule: got method %s with arguments %s, want a push of the rule with the event updated",
				h.Method,
				h.Args,
			)
		}
		versions = append(versions, push.Resources[0].Version)
	}
	slices.Sort(versions)
	if diff := cmp.Diff([]string{"1.2", "1.3"}, versions); diff != "" || updated != 1 {
		t.Errorf(
			"messages about a new rule: got pushes in the versions %v and %d times security_groups_rule_updated; want 1.2 and 1.3, and once",
			versions,
			updated,
		)
	}

	if err := st.Network.DeleteSecurityRule(t.Context(), rules[0].ID, nil); err != nil {
		t.Fatal(err)
	}
	st.publishAll(t, publisher)
	for range 3 {
		if h := st.receive(t); h.Method == "push" && !strings.Contains(string(h.Args), `"deleted"`) {
			t.Errorf("receive the push of a deleted rule: got %s, want the event deleted", h.Args)
		}
	}
}

// RabbitMQ refuses messages above a size, so the push of a group must not grow with its rules for ever.
func TestPublish_LargeSecurityGroupIsPushedWithoutItsRules(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	group := st.createPorts(t, 1)[0].SecurityGroups[0]
	st.reportVersions(t, "cmp7", map[string]any{"SecurityGroup": "1.5"})
	st.listenTo(t, "neutron-vo-SecurityGroup-1.5", "cmp7", "1.1")
	publisher := st.newPublisher(t)
	pushed := func(name string) (rules []any) {
		t.Helper()
		if _, err := st.Network.UpdateSecurityGroup(t.Context(), group,
			network.SecurityGroupChange{Description: &name}, nil); err != nil {
			t.Fatal(err)
		}
		st.publishAll(t, publisher)
		var push struct {
			Resources []struct {
				Data struct {
					ID          uuid.UUID `json:"id"`
					Description string    `json:"description"`
					Rules       []any     `json:"rules"`
				} `json:"versioned_object.data"`
			} `json:"resource_list"`
		}
		h := st.receive(t)
		if err := json.Unmarshal(h.Args, &push); err != nil || len(push.Resources) != 1 ||
			push.Resources[0].Data.ID != group || push.Resources[0].Data.Description != name {
			t.Fatalf("push of a changed group: got %s, error %v; want the group with the description %s", h.Args, err, name)
		}
		return push.Resources[0].Data.Rules
	}
	if rules := pushed("small"); len(rules) != 4 {
		t.Errorf("push of a group with the default rules: got the rules %v, want 4", rules)
	}
	storetest.Exec(t, st.database, `
		insert into security_group_rule (id, group_id, project, description, direction, ethertype, protocol, port_min,
			port_max, remote_ip)
		select gen_random_uuid(), $1, project, '', 'ingress', 'IPv4', 'tcp', n, n, ''
		from security_group, generate_series(1, 997) n
		where id = $1`, group)
	if rules := pushed("large"); rules == nil || len(rules) != 0 {
		t.Errorf("push of a group with 1,001 rules: got %d rules, want an empty list", len(rules))
	}
}

// In this test, a port joins a security group, changes its address and leaves the group.
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
					t.Errorf(
						"receive security_groups_member_updated because of %s: got %s, want the group's ID",
						what,
						h.Args,
					)
				}
				return
			}
		}
	}
	port := st.createPorts(t, 1)[0]
	group := port.SecurityGroups[0]
	wantMemberUpdate("a new port", group)
	if _, err := st.Network.UpdatePort(t.Context(), port.ID, network.PortChange{FixedIPs: &[]network.FixedIP{}}, nil); err != nil {
		t.Fatal(err)
	}
	wantMemberUpdate("a changed address", group)
	if _, err := st.Network.UpdatePort(t.Context(), port.ID, network.PortChange{SecurityGroups: &[]uuid.UUID{}}, nil); err != nil {
		t.Fatal(err)
	}
	wantMemberUpdate("a port that left the group", group)
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
		st.call(t, &tunnels, "tunnel_sync", "1.4",
			map[string]any{"tunnel_ip": ip, "tunnel_type": "gre", "host": "cmp1"})
		st.publishAll(t, publisher)
	}
	sync("10.9.9.1")
	if args := st.receiveMethod(t, "tunnel_update"); args["tunnel_ip"] != "10.9.9.1" ||
		args["tunnel_type"] != "gre" {
		t.Errorf("receive tunnel_update: got %v, want the GRE endpoint 10.9.9.1", args)
	}
	sync("10.9.9.2")
	got := st.receiveMethods(t, "tunnel_update", "tunnel_delete")
	if got["tunnel_update"]["tunnel_ip"] != "10.9.9.2" || got["tunnel_delete"]["tunnel_ip"] != "10.9.9.1" {
		t.Errorf(
			"receive the messages about a changed tunnel endpoint: got %v, want tunnel_update with 10.9.9.2 and tunnel_delete with 10.9.9.1",
			got,
		)
	}
}
