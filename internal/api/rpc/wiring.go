package rpc

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store"
)

// maxDevices is how many devices or ports a call may name. Agents slice their lists far below it.
const maxDevices = 1000

// wiringMethods are what the agents call that wire ports.
var wiringMethods = map[string]method{
	"get_device_details":       with(deviceDetails),
	"get_devices_details_list": with(devicesDetails),
	"get_devices_details_list_and_failed_devices": with(func(ctx context.Context, d *Desk, a devicesArgs) (any, error) {
		found, err := d.details(ctx, a.Devices, a.Host)
		return object{"devices": found, "failed_devices": []string{}}, err
	}),
	"update_device_up":    with(deviceUp),
	"update_device_down":  with(deviceDown),
	"update_device_list":  with(deviceList),
	"tunnel_sync":         with(tunnelSync),
	"get_network_details": with(networkDetails),
}

// device is what an agent calls a port: its ID, "tap" and the beginning of its ID, or its MAC, alone or in a list with
// the slot of its card. It is repeated in answers as it came.
type device struct {
	raw  json.RawMessage
	text string
}

func (d *device) UnmarshalJSON(raw []byte) error {
	d.raw = slices.Clone(raw)
	var many []any
	if json.Unmarshal(raw, &d.text) == nil {
		return nil
	}
	if json.Unmarshal(raw, &many) == nil && len(many) > 0 {
		if text, ok := many[0].(string); ok {
			d.text = text
			return nil
		}
	}
	return badArgument("a device is a text or a list that begins with one")
}

func (d device) MarshalJSON() ([]byte, error) { return d.raw, nil }

type deviceArgs struct {
	Device device `json:"device"`
	Host   string `json:"host"`
}

type devicesArgs struct {
	Devices []device `json:"devices"`
	Host    string   `json:"host"`
}

// resolve finds the ports of devices; those that no port has are left out.
func (d *Desk) resolve(ctx context.Context, devices []device) (map[string]uuid.UUID, error) {
	if slices.ContainsFunc(devices, func(d device) bool { return d.raw == nil }) {
		return nil, badArgument("the device is missing")
	}
	if len(devices) > maxDevices {
		return nil, badArgument("%d devices are more than %d", len(devices), maxDevices)
	}
	names := make([]string, len(devices))
	for i, dev := range devices {
		names[i] = dev.text
	}
	return d.Store.Devices(ctx, names)
}

// report tells of an event on devices, in one transaction, and returns what their ports are then. A report that names no
// host is of the agent where the port is.
func (d *Desk) report(ctx context.Context, devices []device, host, event string) (map[string]network.Standing, error) {
	of, err := d.resolve(ctx, devices)
	if err != nil || len(of) == 0 {
		return nil, err
	}
	reports := map[uuid.UUID][]network.Report{}
	for _, id := range of {
		at := host
		if at == "" {
			p, err := d.Store.Port(ctx, id)
			if err != nil {
				continue // it is gone
			}
			at = p.Host
		}
		reports[id] = []network.Report{{Entity: network.L2, Host: at, Event: event}}
	}
	standings, err := d.Store.ReportPorts(ctx, reports)
	after := map[string]network.Standing{}
	for name, id := range of {
		if s, ok := standings[id]; ok {
			after[name] = s
		}
	}
	return after, err
}

func deviceUp(ctx context.Context, d *Desk, a deviceArgs) (any, error) {
	_, err := d.report(ctx, []device{a.Device}, a.Host, network.Complete)
	return nil, err
}

func deviceDown(ctx context.Context, d *Desk, a deviceArgs) (any, error) {
	_, err := d.report(ctx, []device{a.Device}, a.Host, network.Lost)
	return lost(a.Device), err
}

// lost answers that a device is down. That it exists is said of those nobody knows as well: agents depend on it.
func lost(d device) object { return object{"device": d, "exists": true} }

type deviceListArgs struct {
	Up   []device `json:"devices_up"`
	Down []device `json:"devices_down"`
	Host string   `json:"host"`
}

// deviceList is the two together. Devices that nobody knows count as done.
func deviceList(ctx context.Context, d *Desk, a deviceListArgs) (any, error) {
	if _, err := d.report(ctx, a.Up, a.Host, network.Complete); err != nil {
		return nil, err
	}
	if _, err := d.report(ctx, a.Down, a.Host, network.Lost); err != nil {
		return nil, err
	}
	down := []object{}
	for _, dev := range a.Down {
		down = append(down, lost(dev))
	}
	return object{"devices_up": list(a.Up), "failed_devices_up": []string{}, "devices_down": down, "failed_devices_down": []string{}}, nil
}

func deviceDetails(ctx context.Context, d *Desk, a deviceArgs) (any, error) {
	found, err := d.details(ctx, []device{a.Device}, a.Host)
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

func devicesDetails(ctx context.Context, d *Desk, a devicesArgs) (any, error) {
	return d.details(ctx, a.Devices, a.Host)
}

// details tell an agent how to wire devices, and take them as begun: it will report again.
func (d *Desk) details(ctx context.Context, devices []device, host string) ([]object, error) {
	if _, err := d.report(ctx, devices, host, network.Begun); err != nil {
		return nil, err
	}
	of, err := d.resolve(ctx, devices)
	if err != nil {
		return nil, err
	}
	ports, networks, err := d.wired(ctx, of)
	if err != nil {
		return nil, err
	}
	entries := make([]object, len(devices))
	for i, dev := range devices {
		entries[i] = object{"device": dev}
		p, ok := ports[of[dev.text]]
		switch n := networks[p.Network]; {
		case !ok || !p.Bound():
		case host != "" && p.Host != host && !p.Distributed() && slices.ContainsFunc(p.Bindings, func(b network.Binding) bool { return b.Host == host }):
			entries[i]["no_active_binding"] = true
		default:
			entries[i] = detail(dev, p, n)
		}
	}
	return entries, nil
}

// wired reads ports and their networks.
func (d *Desk) wired(ctx context.Context, of map[string]uuid.UUID) (map[uuid.UUID]network.Port, map[uuid.UUID]network.Network, error) {
	ids, on := []string{}, []string{}
	for _, id := range of {
		ids = append(ids, id.String())
	}
	found, err := d.Store.Ports(ctx, store.Listing{Where: []store.Condition{{Field: "id", In: ids}}})
	if err != nil {
		return nil, nil, err
	}
	ports, networks := map[uuid.UUID]network.Port{}, map[uuid.UUID]network.Network{}
	for _, p := range found {
		ports[p.ID] = p
		on = append(on, p.Network.String())
	}
	all, err := d.Store.Networks(ctx, store.Listing{Where: []store.Condition{{Field: "id", In: on}}})
	for _, n := range all {
		networks[n.ID] = n
	}
	return ports, networks, err
}

func detail(dev device, p network.Port, n network.Network) object {
	return object{"device": dev, "network_id": p.Network, "port_id": p.ID, "mac_address": p.MAC, "admin_state_up": p.AdminUp,
		"network_type": n.Type, "segmentation_id": n.Segment, "physical_network": orNull(n.PhysicalNetwork), "mtu": n.MTU,
		"fixed_ips": fixedIPs(p), "device_owner": p.DeviceOwner, "allowed_address_pairs": pairs(p), "port_security_enabled": p.PortSecurity,
		"qos_policy_id": nil, "qos_network_policy_id": nil, "profile": p.Profile, "propagate_uplink_status": false,
		"vif_type": p.VIF, "vnic_type": p.VNIC, "security_groups": p.SecurityGroups}
}

type tunnelArgs struct {
	IP   string `json:"tunnel_ip"`
	Type string `json:"tunnel_type"`
	Host string `json:"host"`
}

// vxlanPort is where VXLAN's tunnels end.
const vxlanPort = 4789

// tunnelSync takes an agent's end of a tunnel and tells it of all the others.
func tunnelSync(ctx context.Context, d *Desk, a tunnelArgs) (any, error) {
	ip, err := netip.ParseAddr(a.IP)
	if err != nil || ip.Zone() != "" || len(a.Host) > maxName {
		return nil, badArgument("a tunnel has an address")
	}
	if !slices.Contains([]string{"vxlan", "gre", "geneve"}, a.Type) {
		return nil, failuref(neutronExceptions, "InvalidInput", "Invalid input for operation: Network type value '%s' not supported.", short(a.Type))
	}
	ends, err := d.Store.SyncTunnel(ctx, network.TunnelEnd{Type: a.Type, Host: a.Host, IP: ip})
	tunnels := []object{}
	for _, e := range ends {
		o := object{"ip_address": e.IP, "host": orNull(e.Host)}
		if e.Type == "vxlan" {
			o["udp_port"] = vxlanPort
		}
		tunnels = append(tunnels, o)
	}
	return object{"tunnels": tunnels}, err
}

type networkArgs struct {
	Network string `json:"network"`
}

func networkDetails(ctx context.Context, d *Desk, a networkArgs) (any, error) {
	n, err := d.Store.Network(ctx, idOf(a.Network))
	if err != nil {
		return nil, err
	}
	return viewNetwork(n), nil
}
