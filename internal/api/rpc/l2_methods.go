package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/netip"
	"slices"

	"github.com/google/uuid"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
	"berth/internal/store/portstore"
)

// l2Methods are the methods that L2 agents call. An L2 agent connects the ports that are bound to the agent's
// host. SR-IOV and macvtap agents request the details of ports with these methods; Open vSwitch agents
// request versioned objects instead, see object_methods.go.
func (h *handlers) l2Methods() map[string]oslomsg.Method {
	return map[string]oslomsg.Method{
		"get_device_details":       oslomsg.WithArgs(h.getDeviceDetails),
		"get_devices_details_list": oslomsg.WithArgs(h.getDevicesDetailsList),
		"get_devices_details_list_and_failed_devices": oslomsg.WithArgs(
			h.getDevicesDetailsListAndFailedDevices,
		),
		"update_device_up":    oslomsg.WithArgs(h.updateDeviceUp),
		"update_device_down":  oslomsg.WithArgs(h.updateDeviceDown),
		"update_device_list":  oslomsg.WithArgs(h.updateDeviceList),
		"tunnel_sync":         oslomsg.WithArgs(h.tunnelSync),
		"get_network_details": oslomsg.WithArgs(h.getNetworkDetails),
	}
}

// device is an agent's name for a port. In JSON a device is either the name as a string, or a list of the
// name and a PCI slot, which the SR-IOV agent sends. Replies about one device name it by its name alone;
// lists of the devices of a call contain their JSON unchanged.
type device struct {
	portstore.Device
	raw json.RawMessage
}

func (d *device) UnmarshalJSON(raw []byte) error {
	d.raw = slices.Clone(raw)
	if json.Unmarshal(raw, &d.Name) == nil {
		return nil
	}
	var list []any
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		if name, ok := list[0].(string); ok {
			d.Name = name
			if len(list) > 1 {
				d.PCISlot, _ = list[1].(string)
			}
			return nil
		}
	}
	return oslomsg.NewTypeError("a device must be a string, or a list that begins with one")
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

// distinctDevices returns the devices without repetitions, in order. An agent names each device once.
func distinctDevices(devices []device) (distinct []device) {
	seen := make(map[portstore.Device]bool, len(devices))
	for _, d := range devices {
		if !seen[d.Device] {
			seen[d.Device] = true
			distinct = append(distinct, d)
		}
	}
	return distinct
}

// portIDs returns the IDs of the ports of a host's devices. portIDs leaves out devices that have no port.
func (h *handlers) portIDs(
	ctx context.Context,
	host string,
	devices []device,
) (map[portstore.Device]uuid.UUID, error) {
	if slices.ContainsFunc(devices, func(d device) bool { return d.raw == nil }) {
		return nil, oslomsg.NewTypeError("the device is missing")
	}
	if len(devices) > maxDevices {
		return nil, oslomsg.NewTypeError("%d devices are more than %d", len(devices), maxDevices)
	}
	var names []portstore.Device
	for _, d := range distinctDevices(devices) {
		names = append(names, d.Device)
	}
	return h.Store.FindDevices(ctx, host, names)
}

// reportDevices applies an agent's report to the ports of all given devices, in one transaction. A sender
// reports for its own host only. Without a sender and if the parameter `host` is empty, reportDevices acts as
// if the report came from the host to which the port is bound.
func (h *handlers) reportDevices(ctx context.Context, devices []device, host, event string) error {
	ids, err := h.portIDs(ctx, h.sender.host(host), devices)
	if err != nil {
		return err
	}
	reports := map[uuid.UUID][]network.Report{}
	for _, id := range ids {
		from := h.sender.host(host)
		if from == "" {
			p, err := h.Store.Port(ctx, id)
			if err != nil {
				continue // the port was deleted
			}
			from = p.Host
		}
		reports[id] = []network.Report{
			{
				Entity:   network.L2,
				Host:     from,
				Event:    event,
				RPC:      true,
				HostOnly: h.sender != nil,
			},
		}
	}
	if _, err = h.Store.ReportPorts(ctx, reports); err == nil {
		h.sender.charge(len(devices))
	}
	return err
}

func (h *handlers) updateDeviceUp(ctx context.Context, a deviceArgs) (any, error) {
	return nil, h.reportDevices(ctx, []device{a.Device}, a.Host, network.ReportComplete)
}

func (h *handlers) updateDeviceDown(ctx context.Context, a deviceArgs) (any, error) {
	return viewDown(a.Device), h.reportDevices(ctx, []device{a.Device}, a.Host, network.ReportLost)
}

// viewDown returns the reply about a device that is down. The reply about a device that is down contains
// "exists": true even if the device is unknown, because agents require this value.
func viewDown(d device) object { return object{"device": d.Name, "exists": true} }

type deviceListArgs struct {
	Up   []device `json:"devices_up"`
	Down []device `json:"devices_down"`
	Host string   `json:"host"`
}

// updateDeviceList applies an agent's report of devices that are up and devices that are down. The reply to
// update_device_list lists unknown devices together with the devices whose update succeeded.
func (h *handlers) updateDeviceList(ctx context.Context, a deviceListArgs) (any, error) {
	if err := h.reportDevices(ctx, a.Up, a.Host, network.ReportComplete); err != nil {
		return nil, err
	}
	if err := h.reportDevices(ctx, a.Down, a.Host, network.ReportLost); err != nil {
		return nil, err
	}
	down := []object{}
	for _, d := range a.Down {
		down = append(down, viewDown(d))
	}
	return object{
		"devices_up":          emptyIfNil(a.Up),
		"failed_devices_up":   []string{},
		"devices_down":        down,
		"failed_devices_down": []string{},
	}, nil
}

func (h *handlers) getDeviceDetails(ctx context.Context, a deviceArgs) (any, error) {
	found, err := h.deviceDetails(ctx, []device{a.Device}, a.Host)
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

func (h *handlers) getDevicesDetailsList(ctx context.Context, a devicesArgs) (any, error) {
	return h.deviceDetails(ctx, a.Devices, a.Host)
}

func (h *handlers) getDevicesDetailsListAndFailedDevices(ctx context.Context, a devicesArgs) (any, error) {
	found, err := h.deviceDetails(ctx, a.Devices, a.Host)
	return object{"devices": found, "failed_devices": []string{}}, err
}

// deviceDetails returns the attributes that an agent needs to connect the ports of devices: one encoded
// object for each device, in the order of the devices, also if the call names a device again. deviceDetails
// also sets the status of the ports to BUILD, because an agent requests the details of a device before it
// begins to connect the port. If the details are larger than a reply may be, deviceDetails returns the
// failure of the call: a call can name one port by many devices.
func (h *handlers) deviceDetails(
	ctx context.Context,
	devices []device,
	host string,
) ([]json.RawMessage, error) {
	host = h.sender.host(host)
	if err := h.reportDevices(ctx, devices, host, network.ReportBegun); err != nil {
		return nil, err
	}
	ids, err := h.portIDs(ctx, host, devices)
	if err != nil {
		return nil, err
	}
	devices = distinctDevices(devices)
	ofPort := map[uuid.UUID][]int{} // indexes of the devices of each port
	for i, d := range devices {
		if id, ok := ids[d.Device]; ok {
			ofPort[id] = append(ofPort[id], i)
		}
	}
	list := deviceList{devices: devices, details: make([]json.RawMessage, len(devices))}
	ports := slices.Collect(maps.Keys(ofPort))
	err = h.eachPortPage(ctx, ports, withoutLargeFields, func(page []network.Port) error {
		networks, err := h.networksOf(ctx, page)
		if err != nil {
			return err
		}
		for _, p := range page {
			if err := list.set(ctx, ofPort[p.ID], h.viewDevice(p, networks[p.Network], host)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, set := range list.details {
		if set == nil {
			if err := list.set(ctx, []int{i}, object{}); err != nil {
				return nil, err
			}
		}
	}
	return list.details, nil
}

// deviceList is a list of the encoded details of devices.
type deviceList struct {
	encodedObjects
	devices []device
	details []json.RawMessage // in the order of the devices
}

// set sets the details of the devices with the given indexes to a view of their port.
func (l *deviceList) set(ctx context.Context, indexes []int, view object) (err error) {
	for _, i := range indexes {
		view["device"] = l.devices[i].Name
		if l.details[i], err = l.encode(ctx, view); err != nil {
			return err
		}
	}
	return nil
}

// networksOf reads the networks of ports.
func (h *handlers) networksOf(
	ctx context.Context,
	ports []network.Port,
) (map[uuid.UUID]network.Network, error) {
	ids := make([]uuid.UUID, len(ports))
	for i, p := range ports {
		ids[i] = p.Network
	}
	list, err := h.Store.Networks(ctx,
		db.Listing{Where: []db.Condition{db.OneOfIDs("id", ids)}})
	networks := map[uuid.UUID]network.Network{}
	for _, n := range list {
		networks[n.ID] = n
	}
	return networks, err
}

// viewDevice returns the details of a port for an agent on a host, without the name of the device. viewDevice
// returns no attributes of a port that the agent does not wire.
func (h *handlers) viewDevice(p network.Port, n network.Network, host string) object {
	boundHere := func(b network.Binding) bool { return b.Host == host }
	switch {
	case !p.Bound() || !h.sender.wires(p):
		return object{}
	case host != "" && p.Host != host && !p.Distributed() && slices.ContainsFunc(p.Bindings, boundHere):
		return object{"no_active_binding": true}
	}
	port := attribute.PortRPC(p)
	details := object{
		"port_id":                 p.ID,
		"profile":                 port["binding:profile"],
		"vif_type":                port["binding:vif_type"],
		"vnic_type":               port["binding:vnic_type"],
		"network_type":            n.Type,
		"segmentation_id":         n.Segment,
		"physical_network":        nullIfEmpty(n.PhysicalNetwork),
		"mtu":                     n.MTU,
		"qos_policy_id":           nil,
		"qos_network_policy_id":   nil,
		"propagate_uplink_status": false,
	}
	for _, name := range []string{"network_id", "mac_address", "admin_state_up", "fixed_ips", "device_owner", "allowed_address_pairs",
		"port_security_enabled", "security_groups"} {
		details[name] = port[name]
	}
	return details
}

type tunnelArgs struct {
	IP   string `json:"tunnel_ip"`
	Type string `json:"tunnel_type"`
	Host string `json:"host"`
}

// vxlanPort is the UDP port of VXLAN.
const vxlanPort = 4789

// tunnelSync stores the tunnel endpoint of an agent, and returns the endpoints of all agents with the same
// tunnel type.
func (h *handlers) tunnelSync(ctx context.Context, a tunnelArgs) (any, error) {
	ip, err := netip.ParseAddr(a.IP)
	if err != nil || ip.Zone() != "" {
		return nil, oslomsg.NewTypeError("tunnel_ip must be an IP address")
	}
	if err := checkNames(a.Host); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"vxlan", "gre", "geneve"}, a.Type) {
		return nil, oslomsg.NewFailure(neutronExceptions, "InvalidInput",
			"Invalid input for operation: Network type value '%s' not supported.",
			oslomsg.Excerpt(a.Type))
	}
	end := network.TunnelEndpoint{Type: a.Type, Host: h.sender.host(a.Host), IP: ip}
	if err := h.waitToChangeTunnel(ctx, end); err != nil {
		return nil, err
	}
	endpoints, err := h.Store.SyncTunnel(ctx, end, h.sender != nil)
	if h.sender != nil && errors.Is(err, db.ErrConflict) {
		return nil, h.sender.refuse(ctx, refusedOwner, "tunnel_sync: %s", err)
	}
	tunnels := []object{}
	for _, e := range endpoints {
		o := object{"ip_address": e.IP, "host": nullIfEmpty(e.Host)}
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

// getNetworkDetails returns a network. An Open vSwitch agent calls getNetworkDetails about each network whose
// change it gets as a notification, so the answer about a network that the sender does not serve contains
// only the ID and the segment.
func (h *handlers) getNetworkDetails(ctx context.Context, a networkArgs) (any, error) {
	n, err := h.Store.Network(ctx, parseUUID(a.Network))
	if err != nil {
		return nil, err
	}
	view := viewNetwork(n)
	if h.sender == nil {
		return view, nil
	}
	served, err := h.Store.Networks(ctx, db.Listing{
		Where: []db.Condition{
			{Field: "id", In: []string{n.ID.String()}},
			networkstore.OnHost(h.sender.Host),
		},
	})
	if len(served) == 0 {
		view = object{"id": n.ID}
		for _, name := range []string{"provider:network_type", "provider:physical_network", "provider:segmentation_id"} {
			view[name] = viewNetwork(n)[name]
		}
	}
	return view, err
}
