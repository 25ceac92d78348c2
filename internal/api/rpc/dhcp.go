package rpc

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store"
)

// dhcpMethods are what a DHCP agent calls.
var dhcpMethods = map[string]method{
	"get_active_networks_info": with(activeNetworks),
	"get_network_info":         with(networkInfo),
	"create_dhcp_port":         with(createDHCPPort),
	"update_dhcp_port":         with(updateDHCPPort),
	"release_dhcp_port":        with(releaseDHCPPort),
	"get_dhcp_port":            with(dhcpPort),
	"get_ports":                with(listPorts),
	"get_networks":             with(listNetworks),
	"dhcp_ready_on_ports":      with(dhcpReady),
}

type activeNetworksArgs struct {
	Host   string `json:"host"`
	Filter bool   `json:"enable_dhcp_filter"`
}

// activeNetworks are the networks that the DHCP agent on a host serves. An agent that nobody knows, or that an operator
// has disabled, serves none.
func activeNetworks(ctx context.Context, d *Desk, a activeNetworksArgs) (any, error) {
	agents, err := d.Store.Agents(ctx, store.Listing{Where: []store.Condition{{Field: "type", In: []string{network.DHCPAgent}}, {Field: "host", In: []string{a.Host}}}})
	if err != nil || len(agents) == 0 || !agents[0].AdminUp {
		return []object{}, err
	}
	hosted, err := d.Store.HostedNetworks(ctx, agents[0].ID)
	if err != nil {
		return nil, err
	}
	hosted = slices.DeleteFunc(hosted, func(n network.Network) bool { return !n.AdminUp })
	return d.infos(ctx, hosted, a.Filter)
}

type networkInfoArgs struct {
	Network string `json:"network_id"`
}

// networkInfo is one network for a DHCP agent, null if it is gone.
func networkInfo(ctx context.Context, d *Desk, a networkInfoArgs) (any, error) {
	n, err := d.Store.Network(ctx, idOf(a.Network))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	infos, err := d.infos(ctx, []network.Network{n}, false)
	if err != nil {
		return nil, err
	}
	return infos[0], nil
}

// infos are networks with everything on them.
func (d *Desk) infos(ctx context.Context, networks []network.Network, served bool) ([]object, error) {
	if len(networks) == 0 {
		return []object{}, nil
	}
	on := store.Listing{Where: []store.Condition{{Field: "network", In: make([]string, len(networks))}}}
	for i, n := range networks {
		on.Where[0].In[i] = n.ID.String()
	}
	subnets, err := d.Store.Subnets(ctx, on)
	if err != nil {
		return nil, err
	}
	ports, err := d.Store.Ports(ctx, on)
	if err != nil {
		return nil, err
	}
	infos := make([]object, len(networks))
	for i, n := range networks {
		theirs, plugged := []object{}, []object{}
		for _, s := range subnets {
			if s.Network == n.ID && (s.DHCP || !served) {
				theirs = append(theirs, viewSubnet(s))
			}
		}
		for _, p := range ports {
			if p.Network == n.ID {
				plugged = append(plugged, viewPort(p))
			}
		}
		infos[i] = object{"id": n.ID, "project_id": n.Project, "tenant_id": n.Project, "admin_state_up": n.AdminUp, "mtu": n.MTU,
			"subnets": theirs, "non_local_subnets": []object{}, "ports": plugged}
	}
	return infos, nil
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

// change is what the agent wants its port to be.
func (a dhcpPortArgs) change() (network.PortChange, error) {
	p, owner := a.Port.Port, network.DHCPOwner
	c := network.PortChange{DeviceOwner: &owner, Host: &a.Host, AdminUp: p.AdminUp}
	if len(a.Host) > maxName || len(p.DeviceID) > maxName || len(p.Name) > maxName {
		return c, badArgument("a host, a name or a device_id is longer than %d bytes", maxName)
	}
	if p.DeviceID != "" {
		c.DeviceID = &p.DeviceID
	}
	if p.Fixed == nil {
		return c, nil
	}
	fixed := make([]network.Fixed, len(*p.Fixed))
	for i, f := range *p.Fixed {
		fixed[i].Subnet = idOf(f.Subnet)
		if f.IP == "" {
			continue
		}
		var err error
		if fixed[i].IP, err = netip.ParseAddr(f.IP); err != nil || fixed[i].IP.Zone() != "" {
			return c, badArgument("'%s' is not an IP address", short(f.IP))
		}
	}
	c.Fixed = &fixed
	return c, nil
}

// createDHCPPort makes the port with which a DHCP agent is on a network; one that it has already is returned.
// Null says that the network, or a subnet of it, is gone meanwhile.
func createDHCPPort(ctx context.Context, d *Desk, a dhcpPortArgs) (any, error) {
	c, err := a.change()
	if err != nil {
		return nil, err
	}
	p := a.Port.Port
	on, project := idOf(p.Network), p.Project
	if project == "" {
		project = p.Tenant
	}
	if p.DeviceID == "" {
		return nil, badArgument("a DHCP port has a device_id")
	}
	c.Network, c.Project, c.Name = &on, &project, &p.Name
	c.PortSecurity, c.SecurityGroups = new(bool), &[]uuid.UUID{} // nothing is filtered of what it answers
	made, err := d.Store.EnsureDHCPPort(ctx, c)
	if overtaken(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return viewPort(made), nil
}

// overtaken tells whether what the agent asks for is about something that is gone, as a subnet is that is not on the network any more:
// the agent will hear of that.
func overtaken(err error) bool {
	var refused *network.Fault
	return errors.Is(err, store.ErrNotFound) || errors.As(err, &refused) && refused.Kind == network.InvalidInput
}

// reserved is the device of a DHCP port that waits for an agent to take it.
const reserved = "reserved_dhcp_port"

// updateDHCPPort changes a DHCP agent's port; null says that it is gone meanwhile.
func updateDHCPPort(ctx context.Context, d *Desk, a dhcpPortArgs) (any, error) {
	c, err := a.change()
	if err != nil {
		return nil, err
	}
	before, err := d.Store.Port(ctx, idOf(a.ID))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	hosts, err := d.Store.DHCPHosts(ctx, before.Network)
	switch {
	case err != nil:
		return nil, err
	case !slices.Contains(hosts, a.Host):
		return nil, network.Missing(network.NetworkNotFound, "Network", before.Network)
	case before.DeviceOwner != network.DHCPOwner,
		c.DeviceID != nil && before.DeviceID != *c.DeviceID && before.DeviceID != reserved:
		return nil, failuref("neutron.common.exceptions", "DhcpPortInUse", "Port %s is already acquired by another DHCP agent", before.ID)
	}
	after, err := d.Store.UpdatePort(ctx, before.ID, c, nil)
	if overtaken(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return viewPort(after), nil
}

type releaseArgs struct {
	Network string `json:"network_id"`
	Device  string `json:"device_id"`
}

// releaseDHCPPort deletes a DHCP agent's port. One that is gone already is released.
func releaseDHCPPort(ctx context.Context, d *Desk, a releaseArgs) (any, error) {
	found, err := d.Store.Ports(ctx, store.Listing{Where: []store.Condition{{Field: "network", In: []string{idOf(a.Network).String()}},
		{Field: "device_id", In: []string{a.Device}}, {Field: "device_owner", In: []string{network.DHCPOwner}}}})
	if err != nil {
		return nil, err
	}
	for _, p := range found {
		if err := d.Store.DeletePort(ctx, p.ID, nil); err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	return nil, nil
}

type portArgs struct {
	ID string `json:"port_id"`
}

func dhcpPort(ctx context.Context, d *Desk, a portArgs) (any, error) {
	p, err := d.Store.Port(ctx, idOf(a.ID))
	if err != nil {
		return nil, err
	}
	return viewPort(p), nil
}

type readyArgs struct {
	Ports []string `json:"port_ids"`
}

// dhcpReady takes the word of a DHCP agent that it serves these ports, for all of them in one transaction. Ports that
// are gone are no matter: the agent asks for ever about what it once heard of.
func dhcpReady(ctx context.Context, d *Desk, a readyArgs) (any, error) {
	if len(a.Ports) > maxDevices {
		return nil, badArgument("%d ports are more than %d", len(a.Ports), maxDevices)
	}
	reports := map[uuid.UUID][]network.Report{}
	for _, text := range a.Ports {
		if id := idOf(text); id != uuid.Nil {
			reports[id] = []network.Report{{Entity: network.DHCP, Event: network.Complete}}
		}
	}
	_, err := d.Store.ReportPorts(ctx, reports)
	return nil, err
}

// idOf reads an ID; what is none is the ID of nothing.
func idOf(text string) uuid.UUID {
	id, err := uuid.Parse(strings.TrimSpace(text))
	if err != nil || len(text) != 36 {
		return uuid.Nil
	}
	return id
}
