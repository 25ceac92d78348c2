package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"

	"github.com/google/uuid"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
)

// dhcpMethods are the methods that DHCP agents call.
func (h *handlers) dhcpMethods() map[string]oslomsg.Method {
	return map[string]oslomsg.Method{
		"get_active_networks_info": oslomsg.WithArgs(h.getActiveNetworksInfo),
		"get_network_info":         oslomsg.WithArgs(h.getNetworkInfo),
		"create_dhcp_port":         oslomsg.WithArgs(h.createDHCPPort),
		"update_dhcp_port":         oslomsg.WithArgs(h.updateDHCPPort),
		"release_dhcp_port":        oslomsg.WithArgs(h.releaseDHCPPort),
		"get_dhcp_port":            oslomsg.WithArgs(h.getDHCPPort),
		"get_ports":                oslomsg.WithArgs(h.getPorts),
		"get_networks":             oslomsg.WithArgs(h.getNetworks),
		"dhcp_ready_on_ports":      oslomsg.WithArgs(h.dhcpReadyOnPorts),
	}
}

type activeNetworksArgs struct {
	Host   string `json:"host"`
	Filter bool   `json:"enable_dhcp_filter"`
}

// getActiveNetworksInfo returns the networks that the DHCP agent on a host has to serve. If the agent is
// unknown or disabled, getActiveNetworksInfo returns an empty list. The agent calls it when it starts and
// after each error, to synchronize all its networks.
func (h *handlers) getActiveNetworksInfo(ctx context.Context, a activeNetworksArgs) (any, error) {
	if err := h.sender.waitToSynchronize(ctx); err != nil {
		return nil, err
	}
	agents, err := h.Store.Agents(ctx, db.Listing{Fields: []string{"id"},
		Where: []db.Condition{
			{Field: "type", In: []string{network.DHCPAgent}},
			{Field: "host", In: []string{h.sender.host(a.Host)}},
		}})
	if err != nil || len(agents) == 0 || !agents[0].AdminUp {
		return []object{}, err
	}
	served, err := h.Store.NetworkIDs(ctx, db.Listing{Where: []db.Condition{
		networkstore.ServedByDHCPOf(h.sender.host(a.Host)),
		{Field: "admin_up", In: []string{"true"}},
	}})
	if err != nil {
		return nil, err
	}
	return h.networkInfos(ctx, served, a.Filter)
}

type networkInfoArgs struct {
	Network string `json:"network_id"`
}

// getNetworkInfo returns one network. If the network does not exist, getNetworkInfo returns null.
func (h *handlers) getNetworkInfo(ctx context.Context, a networkInfoArgs) (any, error) {
	byID := []db.Condition{{Field: "id", In: []string{parseUUID(a.Network).String()}}}
	found, err := h.sender.readable(ctx, h.Store.NetworkIDs, byID, networkstore.ServedByDHCPOf)
	if err != nil {
		return nil, err
	}
	infos, err := h.networkInfos(ctx, found, false)
	if err != nil || len(infos) == 0 {
		return nil, err
	}
	return infos[0], nil
}

// networkInfos returns networks with their subnets and ports. If the parameter `dhcpOnly` is true,
// networkInfos leaves out the subnets for which DHCP is disabled.
func (h *handlers) networkInfos(ctx context.Context, ids []uuid.UUID, dhcpOnly bool) ([]object, error) {
	infos, subnets := []object{}, []uuid.UUID{}
	if len(ids) == 0 {
		return infos, nil
	}
	err := eachPage(ctx, h.Store.Networks, ids, allFields, func(page []network.Network) error {
		for _, n := range page {
			infos, subnets = append(infos, viewNetworkInfo(n)), append(subnets, n.Subnets...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	parts := networkParts{
		subnets: map[uuid.UUID][]json.RawMessage{},
		ports:   map[uuid.UUID][]json.RawMessage{},
		refused: refusedGateways{},
	}
	if err := h.addNetworkPorts(ctx, &parts, ids); err != nil {
		return nil, err
	}
	if err := h.addNetworkSubnets(ctx, &parts, subnets, dhcpOnly); err != nil {
		return nil, err
	}
	for _, info := range infos {
		id := info["id"].(uuid.UUID)
		info["subnets"], info["ports"] = emptyIfNil(parts.subnets[id]), emptyIfNil(parts.ports[id])
	}
	return infos, nil
}

// networkParts are the encoded subnets and ports of the networks in a reply.
type networkParts struct {
	encodedObjects
	subnets map[uuid.UUID][]json.RawMessage // by network
	ports   map[uuid.UUID][]json.RawMessage // by network
	refused refusedGateways
}

func (h *handlers) addNetworkPorts(ctx context.Context, parts *networkParts, networks []uuid.UUID) error {
	ids, err := h.Store.PortIDs(ctx, db.Listing{Where: []db.Condition{db.OneOfIDs("network", networks)}})
	if err != nil {
		return err
	}
	return h.eachPortPage(ctx, ids, allFields, func(page []network.Port) error {
		for _, p := range page {
			raw, err := parts.encode(ctx, attribute.PortRPC(p))
			if err != nil {
				return err
			}
			parts.ports[p.Network] = append(parts.ports[p.Network], raw)
			parts.refused.addPort(p)
		}
		return nil
	})
}

// addNetworkSubnets adds the subnets with the given IDs, without the gateways that the kernel of the agent's
// host refuses. The ports of the DHCP agents must have been added before.
func (h *handlers) addNetworkSubnets(
	ctx context.Context,
	parts *networkParts,
	ids []uuid.UUID,
	dhcpOnly bool,
) error {
	addBroadcast := func(page []network.Subnet) error {
		parts.refused.addSubnets(page)
		return nil
	}
	if len(ids) > allFields.size {
		// a gateway can be a broadcast address of a subnet on a later page
		if err := eachPage(ctx, h.Store.Subnets, ids, withoutLargeFields, addBroadcast); err != nil {
			return err
		}
	}
	return eachPage(ctx, h.Store.Subnets, ids, allFields, func(page []network.Subnet) error {
		parts.refused.addSubnets(page)
		parts.refused.removeFrom(page)
		for _, s := range page {
			if dhcpOnly && !s.DHCP {
				continue
			}
			raw, err := parts.encode(ctx, viewSubnet(s))
			if err != nil {
				return err
			}
			parts.subnets[s.Network] = append(parts.subnets[s.Network], raw)
		}
		return nil
	})
}

// viewNetworkInfo returns a network without its subnets and ports.
func viewNetworkInfo(n network.Network) object {
	return object{
		"id":                n.ID,
		"project_id":        n.Project,
		"tenant_id":         n.Project,
		"admin_state_up":    n.AdminUp,
		"mtu":               n.MTU,
		"non_local_subnets": []object{},
	}
}

type portArgs struct {
	ID string `json:"port_id"`
}

func (h *handlers) getDHCPPort(ctx context.Context, a portArgs) (any, error) {
	id := parseUUID(a.ID)
	found, err := h.readablePorts(ctx, db.Condition{Field: "id", In: []string{id.String()}})
	if err != nil {
		return nil, err
	}
	list := newEncodedList()
	err = h.eachPortPage(ctx, found, allFields,
		func(page []network.Port) error { return addAll(ctx, list, page, attribute.PortRPC) })
	if err != nil {
		return nil, err
	}
	if len(list.objects) == 0 {
		return nil, network.NotFound(network.PortNotFound, "Port", id)
	}
	return list.objects[0], nil
}

type readyArgs struct {
	Ports []string `json:"port_ids"`
}

// dhcpReadyOnPorts completes the DHCP provisioning block of all ports in the call, in one transaction.
// dhcpReadyOnPorts ignores ports that do not exist, because an agent may report a port again after the port
// is deleted. dhcpReadyOnPorts also ignores ports on networks that the DHCP agent of the sender does not
// serve.
func (h *handlers) dhcpReadyOnPorts(ctx context.Context, a readyArgs) (any, error) {
	if len(a.Ports) > maxDevices {
		return nil, oslomsg.NewTypeError("%d ports are more than %d", len(a.Ports), maxDevices)
	}
	reports := map[uuid.UUID][]network.Report{}
	for _, text := range a.Ports {
		if id := parseUUID(text); id != uuid.Nil {
			reports[id] = []network.Report{
				{
					Entity:   network.DHCP,
					Host:     h.sender.host(""),
					Event:    network.ReportComplete,
					HostOnly: h.sender != nil,
				},
			}
		}
	}
	_, err := h.Store.ReportPorts(ctx, reports)
	if err == nil {
		h.sender.charge(len(a.Ports))
	}
	return nil, err
}

type dhcpPortArgs struct {
	ID   string `json:"port_id"`
	Host string `json:"host"`
	Port struct {
		Port struct {
			Network  string `json:"network_id"`
			Project  string `json:"project_id"`
			Tenant   string `json:"tenant_id"`
			Name     string `json:"name"`
			DeviceID string `json:"device_id"`
			AdminUp  *bool  `json:"admin_state_up"`
			Fixed    *[]struct {
				Subnet string `json:"subnet_id"`
				IP     string `json:"ip_address"`
			} `json:"fixed_ips"`
		} `json:"port"`
	} `json:"port"`
}

// Limits of the addresses that a call gives to the port of a DHCP agent. The agent needs an address in each
// subnet of the network with DHCP. By Neutron's default quota, a project has at most 100 subnets.
const (
	maxDHCPSubnets   = 256
	maxDHCPAddresses = 2 // in one subnet
)

// checkDHCPAddresses returns an error if a DHCP agent wants addresses for its port in too many subnets, too
// many in one subnet, or one without naming the subnet. The port may keep the addresses that it has: the
// owner of the network can give it more, and an agent whose call fails synchronizes all its networks again
// and again.
func checkDHCPAddresses(c network.PortChange, has []network.Address) error {
	if c.FixedIPs == nil {
		return nil
	}
	inSubnet, most := map[uuid.UUID]int{}, map[uuid.UUID]int{}
	for _, w := range *c.FixedIPs {
		if w.Subnet == uuid.Nil {
			return oslomsg.NewTypeError("fixed_ips of a DHCP port must have a subnet_id")
		}
		if !slices.Contains(has, network.Address(w)) {
			most[w.Subnet] = maxDHCPAddresses
		}
		inSubnet[w.Subnet]++
		if len(inSubnet) > maxDHCPSubnets || inSubnet[w.Subnet] > cmp.Or(most[w.Subnet], attribute.MaxItems) {
			return oslomsg.NewTypeError("fixed_ips has more than %d subnets or %d addresses in one",
				maxDHCPSubnets, maxDHCPAddresses)
		}
	}
	return nil
}

// change returns the change of the port that the DHCP agent requests.
func (a dhcpPortArgs) change() (network.PortChange, error) {
	p, owner := a.Port.Port, network.DeviceOwnerDHCP
	c := network.PortChange{DeviceOwner: &owner, Host: &a.Host, AdminUp: p.AdminUp}
	if err := checkNames(a.Host, p.DeviceID, p.Name, p.Project, p.Tenant); err != nil {
		return c, err
	}
	if p.DeviceID != "" {
		c.DeviceID = &p.DeviceID
	}
	if p.Fixed == nil {
		return c, nil
	}
	fixed := make([]network.FixedIP, len(*p.Fixed))
	for i, f := range *p.Fixed {
		fixed[i].Subnet = parseUUID(f.Subnet)
		if f.IP == "" {
			continue
		}
		var err error
		if fixed[i].IP, err = netip.ParseAddr(f.IP); err != nil || fixed[i].IP.Zone() != "" {
			return c, oslomsg.NewTypeError("'%s' is not an IP address", oslomsg.Excerpt(f.IP))
		}
	}
	c.FixedIPs = &fixed
	return c, nil
}

// createDHCPPort creates a DHCP agent's port on a network. If the agent already has a port with this
// device_id on the network, createDHCPPort returns the existing port. If the network or one of the subnets
// does not exist any more, createDHCPPort returns null.
func (h *handlers) createDHCPPort(ctx context.Context, a dhcpPortArgs) (any, error) {
	c, err := a.change()
	if err != nil {
		return nil, err
	}
	if err := checkDHCPAddresses(c, nil); err != nil {
		return nil, err
	}
	p := a.Port.Port
	networkID := parseUUID(p.Network)
	if p.DeviceID == "" {
		return nil, oslomsg.NewTypeError("a DHCP port must have a device_id")
	}
	if err := h.requireDHCPService(ctx, networkID); err != nil {
		return nil, err
	}
	if err := h.requireOwnDHCPDevice(ctx, networkID, p.DeviceID); err != nil {
		return nil, err
	}
	host := h.sender.host(a.Host)
	c.Host, c.Network, c.Name = &host, &networkID, &p.Name
	c.PortSecurity, c.SecurityGroups = new(bool), &[]uuid.UUID{} // DHCP replies must not be filtered
	port, err := h.Store.EnsureDHCPPort(ctx, c, h.sender != nil)
	if isOutdated(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return attribute.PortRPC(port), nil
}

// isOutdated reports whether an error means that the agent acted on outdated state, such as a deleted subnet.
// An agent with outdated state needs no error, because it will receive a notification about the newer state.
func isOutdated(err error) bool {
	var fault *network.Fault
	return errors.Is(err, db.ErrNotFound) || errors.As(err, &fault) && fault.Kind == network.InvalidInput
}

// updateDHCPPort changes a DHCP agent's port. If the port or one of the subnets does not exist any more,
// updateDHCPPort returns null.
func (h *handlers) updateDHCPPort(ctx context.Context, a dhcpPortArgs) (any, error) {
	c, err := a.change()
	if err != nil {
		return nil, err
	}
	host := h.sender.host(a.Host)
	c.Host = &host
	before, err := h.Store.Port(ctx, parseUUID(a.ID))
	if errors.Is(err, db.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := checkDHCPAddresses(c, before.Addresses); err != nil {
		return nil, err
	}
	hosts, err := h.Store.DHCPHosts(ctx, before.Network)
	switch {
	case err != nil:
		return nil, err
	case !slices.Contains(hosts, host):
		return nil, network.NotFound(network.NetworkNotFound, "Network", before.Network)
	case before.DeviceOwner != network.DeviceOwnerDHCP,
		h.sender != nil && before.Host != "" && before.Host != host && before.DeviceID != network.ReservedDHCPDevice,
		c.DeviceID != nil && before.DeviceID != *c.DeviceID && before.DeviceID != network.ReservedDHCPDevice:
		return nil, oslomsg.NewFailure("neutron.common.exceptions", "DhcpPortInUse",
			"Port %s is already acquired by another DHCP agent", before.ID)
	}
	if c.DeviceID != nil {
		if err := h.requireOwnDHCPDevice(ctx, before.Network, *c.DeviceID); err != nil {
			return nil, err
		}
	}
	after, err := h.Store.UpdatePort(ctx, before.ID, c, nil)
	if isOutdated(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return attribute.PortRPC(after), nil
}

type releaseArgs struct {
	Network string `json:"network_id"`
	Device  string `json:"device_id"`
}

// releaseDHCPPort deletes a DHCP agent's port on a network. If the port does not exist, releaseDHCPPort
// returns no error. The ports of other hosts and those of trunks stay, also without an error: an agent whose
// call fails synchronizes all its networks again and again.
func (h *handlers) releaseDHCPPort(ctx context.Context, a releaseArgs) (any, error) {
	ids, err := h.Store.PortIDs(ctx, db.Listing{Where: []db.Condition{
		{Field: "network", In: []string{parseUUID(a.Network).String()}},
		{Field: "device_id", In: []string{a.Device}},
		{Field: "device_owner", In: []string{network.DeviceOwnerDHCP}},
	}})
	if err != nil {
		return nil, err
	}
	return nil, h.eachPortPage(ctx, ids, withoutLargeFields, func(page []network.Port) error {
		for _, p := range page {
			if h.sender != nil && p.Host != h.sender.Host {
				continue
			}
			if err := h.Store.DeletePort(ctx, p.ID, nil); err != nil && !mayKeepPort(err) {
				return err
			}
		}
		return nil
	})
}

// mayKeepPort reports whether the error means that the port is deleted already, or is that of a trunk.
func mayKeepPort(err error) bool {
	var fault *network.Fault
	return errors.Is(err, db.ErrNotFound) ||
		errors.As(err, &fault) && (fault.Kind == network.PortIsParent || fault.Kind == network.PortIsSubport)
}
