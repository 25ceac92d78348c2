package rpc_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
)

func TestPort_ActiveAfterDHCPAndL2Reports(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	var alive bool
	st.call(t, &alive, "has_alive_neutron_server", "1.4", map[string]any{})
	if !alive {
		t.Error("call the RPC method has_alive_neutron_server: got the result false, want true")
	}
	port := st.createPorts(t, 1)[0]
	id := port.ID.String()

	st.call(t, nil, "dhcp_ready_on_ports", "1.5",
		map[string]any{"port_ids": []string{id, uuid.NewString(), "nonsense"}})
	if got := st.portStatus(t, port.ID); got != network.Down {
		t.Errorf("read the port after the DHCP agent's report alone: got status %s, want DOWN", got)
	}
	var up map[string]any
	st.call(t, &up, "update_device_list", "1.9", map[string]any{
		"devices_up":      []string{id, "no-such"},
		"devices_down":    []string{},
		"agent_id":        "ovs-agent-cmp1",
		"host":            "cmp1",
		"refresh_tunnels": false,
	})
	want := map[string]any{
		"devices_up":          []any{id, "no-such"},
		"failed_devices_up":   []any{},
		"devices_down":        []any{},
		"failed_devices_down": []any{},
	}
	if diff := cmp.Diff(want, up); diff != "" {
		t.Error(diff)
	}
	if got := st.portStatus(t, port.ID); got != network.Active {
		t.Errorf(
			"read the port after the reports of the DHCP and the L2 agent: got status %s, want ACTIVE",
			got,
		)
	}

	var down map[string]any
	st.call(t, &down, "update_device_down", "1.9",
		map[string]any{"device": "tap" + id[:11], "agent_id": "ovs-agent-cmp1", "host": "cmp1"})
	if diff := cmp.Diff(map[string]any{"device": "tap" + id[:11], "exists": true}, down); diff != "" {
		t.Error(diff)
	}
	if got := st.portStatus(t, port.ID); got != network.Down {
		t.Errorf("read the port after update_device_down: got status %s, want DOWN", got)
	}
	st.call(t, nil, "update_device_up", "1.9",
		map[string]any{"device": []any{port.MAC, "0000:04:00.1"}, "agent_id": "x", "host": nil})
	if got := st.portStatus(t, port.ID); got != network.Active {
		t.Errorf("read the port after update_device_up: got status %s, want ACTIVE", got)
	}
}

func TestUpdateDeviceUp_FromAnotherHostIsIgnored(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	port := st.createPorts(t, 1)[0]
	st.call(t, nil, "dhcp_ready_on_ports", "1.5", map[string]any{"port_ids": []string{port.ID.String()}})
	st.call(t, nil, "update_device_up", "1.9",
		map[string]any{"device": port.ID, "agent_id": "x", "host": "cmp2"})
	p, err := st.Network.Port(t.Context(), port.ID)
	if err != nil {
		t.Fatal(err)
	}
	if p.Status != network.Down || p.IgnoredReports != 1 {
		t.Errorf(
			"read the port after a report from another host: got status %s, %d ignored reports; want DOWN and 1",
			p.Status,
			p.IgnoredReports,
		)
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
	want := []map[string]any{
		{
			"device":           port.ID.String(),
			"network_id":       port.Network.String(),
			"port_id":          port.ID.String(),
			"mac_address":      port.MAC,
			"admin_state_up":   true,
			"network_type":     "vxlan",
			"segmentation_id":  float64(*st.network.Segment),
			"physical_network": nil,
			"mtu":              1450.0,
			"fixed_ips": []any{
				map[string]any{
					"subnet_id":  st.subnet.ID.String(),
					"ip_address": port.Addresses[0].IP.String(),
				},
			},
			"device_owner":            "compute:nova",
			"allowed_address_pairs":   []any{},
			"port_security_enabled":   true,
			"qos_policy_id":           nil,
			"qos_network_policy_id":   nil,
			"profile":                 map[string]any{},
			"propagate_uplink_status": false,
			"vif_type":                "ovs",
			"vnic_type":               "normal",
			"security_groups":         []any{port.SecurityGroups[0].String()},
		},
		{"device": "unknown"},
	}
	if diff := cmp.Diff(want, found.Devices); diff != "" || len(found.Failed) != 0 {
		t.Errorf(
			"get_devices_details_list: details differ (-want +got):\n%s\nfailed devices: %v, want none",
			diff,
			found.Failed,
		)
	}
	if got := st.portStatus(t, port.ID); got != network.Build {
		t.Errorf("read the port after get_devices_details_list: got status %s, want BUILD", got)
	}
}

func TestDevicesDetailsList_ADeviceThatIsNamedAgainHasOneAnswer(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	port := st.createPorts(t, 1)[0]
	id, tap := port.ID.String(), "tap"+port.ID.String()[:11]
	var found []map[string]any
	st.call(t, &found, "get_devices_details_list", "1.3", map[string]any{
		"devices": []string{id, "unknown", id, tap, "unknown", tap}, "agent_id": "x", "host": "cmp1"})
	var names []any
	for _, d := range found {
		names = append(names, d["device"])
		if d["device"] != "unknown" && d["port_id"] != id {
			t.Errorf("details of the device %s: got the port %v, want %s", d["device"], d["port_id"], id)
		}
	}
	if want := []any{id, "unknown", tap}; !slices.Equal(names, want) {
		t.Errorf("details of three devices that are named twice: got the devices %v, want %v", names, want)
	}
}

func TestTunnelSync_ReturnsAllEndpoints(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	sync := func(host, ip string) []any {
		var got map[string][]any
		st.call(t, &got, "tunnel_sync", "1.4",
			map[string]any{"tunnel_ip": ip, "tunnel_type": "vxlan", "host": host})
		return got["tunnels"]
	}
	sync("cmp1", "10.9.9.1")
	sync("cmp2", "10.9.9.2")
	got := sync("cmp2", "10.9.9.3") // the endpoint of cmp2 changes
	want := []any{
		map[string]any{"ip_address": "10.9.9.1", "udp_port": 4789.0, "host": "cmp1"},
		map[string]any{"ip_address": "10.9.9.3", "udp_port": 4789.0, "host": "cmp2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestSRIOVDevice_IsFoundByMACAndSlot creates ports with the same MAC on two networks. An SR-IOV agent names
// such a port by the MAC and the PCI slot of the virtual function, and wants to read the MAC alone as the
// name of the device.
func TestSRIOVDevice_IsFoundByMACAndSlot(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	st.reportState(t, "NIC Switch agent", "cmp1", "new")
	mac, host, owner, project, vnic := "fa:16:3e:00:00:07", "cmp1", "compute:nova", "p1", "direct"
	slots := []string{"0000:05:00.1", "0000:05:00.2"}
	var ids []uuid.UUID
	for i, slot := range slots {
		st.createNetwork(t, []string{network.Flat, network.VLAN}[i])
		profile := json.RawMessage(`{"pci_slot": "` + slot + `"}`)
		ports, err := st.Network.CreatePorts(t.Context(), []network.PortChange{{
			Network:     &st.network.ID,
			MAC:         &mac,
			Host:        &host,
			DeviceOwner: &owner,
			DeviceID:    new(uuid.NewString()),
			Project:     &project,
			VNIC:        &vnic,
			Profile:     profile,
		}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, ports[0].ID)
	}
	for i, slot := range slots {
		d := []any{mac, slot}
		var found []map[string]any
		st.call(t, &found, "get_devices_details_list", "1.9",
			map[string]any{"devices": []any{d}, "agent_id": "nic-agent", "host": host})
		if len(found) != 1 || found[0]["device"] != mac || found[0]["port_id"] != ids[i].String() {
			t.Errorf("get_devices_details_list of %v: got %v, want device %s and port %s",
				d, found, mac, ids[i])
		}
		var down map[string]any
		st.call(t, &down, "update_device_down", "1.9",
			map[string]any{"device": d, "agent_id": "nic-agent", "host": host})
		if diff := cmp.Diff(map[string]any{"device": mac, "exists": true}, down); diff != "" {
			t.Errorf("update_device_down of %v: reply differs (-want +got):\n%s", d, diff)
		}
	}
	var found []map[string]any
	st.call(t, &found, "get_devices_details_list", "1.9",
		map[string]any{"devices": []any{mac}, "agent_id": "nic-agent", "host": host})
	if diff := cmp.Diff([]map[string]any{{"device": mac}}, found); diff != "" {
		t.Errorf(
			"get_devices_details_list of a MAC that two ports have: reply differs (-want +got):\n%s",
			diff,
		)
	}
}

// Another project gives a port on its own network the MAC of a server's port. A macvtap agent, and an SR-IOV
// agent that sends no PCI slot, name the server's port by the MAC alone.
func TestDevice_WithTheMACOfAPortElsewhereIsTheOneOnTheHost(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	st.reportState(t, "NIC Switch agent", "cmp1", "new")
	mac, host, owner, vnic := "fa:16:3e:00:00:07", "cmp1", "compute:nova", "direct"
	create := func(project, typ string, bound bool) network.Port {
		t.Helper()
		st.createNetwork(t, typ)
		c := network.PortChange{Network: &st.network.ID, MAC: &mac, Project: &project, VNIC: &vnic}
		if bound {
			c.Host, c.DeviceOwner, c.DeviceID = &host, &owner, new(uuid.NewString())
		}
		ports, err := st.Network.CreatePorts(t.Context(), []network.PortChange{c})
		if err != nil {
			t.Fatal(err)
		}
		return ports[0]
	}
	want := create("p1", network.Flat, true)
	create("mallory", network.VXLAN, false)

	var found []map[string]any
	st.call(t, &found, "get_devices_details_list", "1.9",
		map[string]any{"devices": []any{mac}, "agent_id": "nic-agent", "host": host})
	if len(found) != 1 || found[0]["port_id"] != want.ID.String() {
		t.Errorf("details of the device %s on %s: got %v, want port %s", mac, host, found, want.ID)
	}
	st.call(t, nil, "update_device_up", "1.9",
		map[string]any{"device": mac, "agent_id": "nic-agent", "host": host})
	p, err := st.Network.Port(t.Context(), want.ID)
	waits := slices.ContainsFunc(p.Blocks, func(b network.Block) bool { return b.Entity == network.L2 })
	if err != nil || waits {
		t.Errorf("port after its agent has reported the device up: got blocks %v, error %v; want no L2 block",
			p.Blocks, err)
	}
}

// TestUpdateDeviceUp_OfAnEarlierBindingCompletesNothing moves a port away from a host and back while the
// agent of the host still configures the port for its first binding. The messages are those of the SR-IOV
// agent, which sends no revision of the port.
func TestUpdateDeviceUp_OfAnEarlierBindingCompletesNothing(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	st.createNetwork(t, network.Flat)
	st.reportState(t, "NIC Switch agent", "cmp1", "new")
	st.reportState(t, "NIC Switch agent", "cmp2", "new")
	publisher := st.newPublisher(t)
	st.listenTo(t, "dhcp_agent", "net1", "1.0")
	st.listenTo(t, "q-agent-notifier-port-update", "cmp1", "1.0")
	host, owner, device, project, vnic := "cmp1", "compute:nova", uuid.NewString(), "p1", "direct"
	ports, err := st.Network.CreatePorts(t.Context(), []network.PortChange{
		{
			Network:     &st.network.ID,
			Host:        &host,
			DeviceOwner: &owner,
			DeviceID:    &device,
			Project:     &project,
			VNIC:        &vnic,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	id := ports[0].ID
	st.call(t, nil, "dhcp_ready_on_ports", "1.5", map[string]any{"port_ids": []string{id.String()}})
	fetch := func(host string) {
		t.Helper()
		var details []map[string]any
		st.call(t, &details, "get_devices_details_list", "1.9", map[string]any{
			"devices":  []any{[]any{ports[0].MAC, "0000:04:00.1"}},
			"agent_id": "nic-agent",
			"host":     host,
		})
	}
	reportUp := func(host string) network.Port {
		t.Helper()
		st.call(t, nil, "update_device_up", "1.9", map[string]any{
			"device":   []any{ports[0].MAC, "0000:04:00.1"},
			"agent_id": "nic-agent",
			"host":     host,
		})
		p, err := st.Network.Port(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	move := func(host string) {
		t.Helper()
		if _, err := st.Network.UpdatePort(t.Context(), id, network.PortChange{Host: &host}, nil); err != nil {
			t.Fatal(err)
		}
	}

	fetch("cmp1")
	move("cmp2")
	move("cmp1")
	st.publishNetwork(t, publisher)
	if p := reportUp("cmp1"); p.Status == network.Active || p.IgnoredReports != 1 {
		t.Errorf(
			"report that is about the first binding to the host: got status %s and %d ignored reports, want DOWN and 1",
			p.Status,
			p.IgnoredReports,
		)
	}

	// The agent gets another notification, requests the details, and reports again.
	due, err := st.Notifications.Unsent(t.Context(), st.network.ID, 100)
	if err != nil || len(due) != 1 || due[0].ResourceID != id {
		t.Fatalf("notifications after the ignored report: got %v, error %v; want one about the port",
			due, err)
	}
	st.publishNetwork(t, publisher)
	st.receiveAbout(t, "port_update", id)
	fetch("cmp1")
	if p := reportUp("cmp1"); p.Status != network.Active || p.IgnoredReports != 1 {
		t.Errorf(
			"report after a new request for the details: got status %s and %d ignored reports, want ACTIVE and 1",
			p.Status,
			p.IgnoredReports,
		)
	}
	if p := reportUp("cmp1"); p.Status != network.Active {
		t.Errorf("repeated report: got status %s, want ACTIVE", p.Status)
	}
}
