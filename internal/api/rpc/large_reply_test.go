package rpc_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/store/storetest"
)

// RabbitMQ closes the channel of the server when a reply is too large, and then delivers the call again.
func TestCall_AnswerThatIsTooLargeIsAnError(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	ports := st.createPorts(t, 30)
	storetest.Exec(t, st.database, `update port set tags = array_fill(repeat('x', 255), array[$1::int])`,
		oslomsg.MaxReply/len(ports)/200)
	for method, args := range map[string]map[string]any{
		"get_network_info":         {"network_id": st.network.ID},
		"get_active_networks_info": {"host": "net1"},
		"get_ports":                {"filters": map[string]any{"network_id": []any{st.network.ID}}},
	} {
		got := st.request(t, map[string]any{"topic": "q-plugin", "method": method, "version": "1.0", "args": args})
		if !strings.Contains(got.Message, oslomsg.ReplyTooLarge) {
			t.Errorf("call %s, whose answer is larger than %d bytes: got the failure %q, want %q",
				method, oslomsg.MaxReply, got.Message, oslomsg.ReplyTooLarge)
		}
	}
	// the agents that wire ports need no tags
	var details struct{ Devices []map[string]any }
	st.call(t, &details, "get_devices_details_list_and_failed_devices", "1.5",
		map[string]any{"devices": []string{ports[0].ID.String()}, "host": "cmp1"})
	if len(details.Devices) != 1 || details.Devices[0]["mac_address"] == nil {
		t.Errorf("details of a port with large tags: got %v, want its attributes", details)
	}
}

// An Open vSwitch agent reads the members of the security groups of all its ports with one call. Without the
// answer, it wires no port of its host, of no project.
func TestBulkPull_LargePortsDoNotHideTheMembersOfSecurityGroups(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	ports := st.createPorts(t, 30)
	storetest.Exec(t, st.database, `
		update port set
			tags = array_fill(repeat('x', 255), array[$1::int]),
			dhcp_options = (select jsonb_agg(jsonb_build_object('opt_name', n::text, 'opt_value', repeat('x', 255), 'ip_version', 4))
				from generate_series(1, $1::int) n)`,
		oslomsg.MaxReply/len(ports)/200)
	var members []struct {
		Data map[string]any `json:"versioned_object.data"`
	}
	st.call(t, &members, "bulk_pull", "1.1", map[string]any{
		"resource_type": "Port",
		"version":       "1.7",
		"filter_kwargs": map[string]any{"security_group_ids": []any{ports[0].SecurityGroups[0]}},
	})
	if len(members) != len(ports) || len(members[0].Data["fixed_ips"].([]any)) != 1 {
		t.Errorf("members of a security group with large ports: got %d ports, want %d with their addresses",
			len(members), len(ports))
	}
}

// The number of rules of a device is the number of rules with a remote group times the number of the members
// of this group.
func TestSecurityGroupRules_MemoryOfAnAnswerThatIsTooLargeIsBounded(t *testing.T) {
	st := newFixture(t)
	ports := st.createPorts(t, 60)
	group := ports[0].SecurityGroups[0]
	storetest.Exec(t, st.database, `
		insert into port_address (subnet_id, address, port_id, position)
		select a.subnet_id, '10.2.0.0'::inet + (row_number() over ())::int, a.port_id, n
		from port_address a cross join generate_series(1, 99) n`)
	storetest.Exec(t, st.database, `
		insert into security_group_rule (id, group_id, project, description, direction, ethertype, protocol, port_min, port_max, remote_ip, remote_group)
		select gen_random_uuid(), $1, 'p1', '', 'ingress', 'IPv4', 'tcp', n, n, '', $1
		from generate_series(1, 96) n`, group)
	st.checkTooLarge(t, "rules of a device with 570,000 rules", 512, map[string]any{
		"topic":   "q-plugin",
		"method":  "security_group_rules_for_devices",
		"version": "1.3",
		"args":    map[string]any{"devices": []any{ports[0].ID}},
	})
}

// checkTooLarge checks that a request gets the failure that its answer is too large, and that berth has
// allocated at most the given memory for it, in MiB.
func (st *fixture) checkTooLarge(t *testing.T, what string, most uint64, request map[string]any) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := st.request(t, request)
	runtime.ReadMemStats(&after)
	if !strings.Contains(got.Message, oslomsg.ReplyTooLarge) {
		t.Errorf("%s: got the failure %q, want %q", what, got.Message, oslomsg.ReplyTooLarge)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > most<<20 {
		t.Errorf("%s: got %d MiB of memory allocated for the answer, want at most %d MiB", what, allocated>>20, most)
	}
}

// A port can have many addresses, and a call can name one port by many devices.
func TestDeviceDetails_MemoryForAPortWithManyNamesIsBounded(t *testing.T) {
	st := newFixture(t)
	port := st.createPorts(t, 1)[0]
	storetest.Exec(t, st.database, `
		insert into port_address (subnet_id, address, port_id, position)
		select a.subnet_id, '10.2.0.0'::inet + n, a.port_id, n
		from port_address a cross join generate_series(1, 2000) n
		where a.port_id = $1`, port.ID)
	devices := make([]any, 1000)
	for i := range devices {
		devices[i] = []any{port.ID, strconv.Itoa(i)} // an ID and a PCI slot
	}
	st.checkTooLarge(t, "details of a port with 1,000 names", 256, map[string]any{
		"topic":   "q-plugin",
		"method":  "get_devices_details_list",
		"version": "1.3",
		"args":    map[string]any{"devices": devices, "host": "cmp1"},
	})
}

// A call can ask for the objects of all projects. berth reads them in parts, and stops at the limit of an
// answer: the objects of each call have 160 MB together.
func TestCall_MemoryForManyLargeObjectsIsBounded(t *testing.T) {
	st := newFixture(t)
	storetest.Exec(t, st.database, `
		insert into network (id, project, name, description, admin_up, shared, external, mtu, port_security, type)
		select gen_random_uuid(), 'p1', 'n', repeat('x', 400000), true, false, false, 1400, true, 'local'
		from generate_series(1, 400)`)
	storetest.Exec(t, st.database, `
		insert into subnet (id, network_id, project, name, description, cidr, dhcp, pools, dns, routes, ra_mode, address_mode)
		select gen_random_uuid(), network_id, project, name, repeat('x', 400000), cidr, dhcp, pools, dns, routes, ra_mode, address_mode
		from subnet cross join generate_series(1, 400)`)
	storetest.Exec(t, st.database, `
		insert into security_group (id, project, name, description, stateful, tags)
		select gen_random_uuid(), 'p1', 'g', repeat('x', 400000), true, '{}'
		from generate_series(1, 400)`)
	storetest.Exec(t, st.database, `
		insert into security_group_rule (id, group_id, project, description, direction, ethertype, protocol, port_min, port_max, remote_ip, remote_group)
		select gen_random_uuid(), g.id, 'p1', repeat('x', 20000), 'ingress', 'IPv4', 'tcp', n, n, '', null
		from (select id from security_group order by id desc limit 1) as g cross join generate_series(1, 8000) n`)
	for _, objectType := range []string{"Network", "Subnet", "SecurityGroup", "SecurityGroupRule"} {
		st.checkTooLarge(t, "bulk_pull of all objects of the type "+objectType, 512, map[string]any{
			"topic":   "q-plugin",
			"method":  "bulk_pull",
			"version": "1.1",
			"args": map[string]any{
				"resource_type": objectType,
				"version":       "1.0",
				"filter_kwargs": map[string]any{},
			},
		})
	}
	for method, args := range map[string]map[string]any{
		"get_networks":             {"filters": map[string]any{}},
		"get_network_info":         {"network_id": st.network.ID},
		"get_active_networks_info": {"host": "net1"},
	} {
		request := map[string]any{"topic": "q-plugin", "method": method, "version": "1.0", "args": args}
		st.checkTooLarge(t, method, 512, request)
	}
}
