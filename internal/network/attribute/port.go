package attribute

import (
	"time"

	"github.com/google/uuid"

	"berth/internal/network"
)

type (
	port       = network.Port
	portChange = network.PortChange
	object     = map[string]any
)

// Why is the attribute that says what a port waits for. Only the response to a request for a single port
// contains the attribute Why.
const Why = "berth:why"

// Ports is the table of a port's attributes. berth builds four representations of a port from the table
// Ports: the resource of Neutron's REST API, the dictionary for agents, the versioned object for agents, and
// the body for OpenDaylight. berth reads the attributes of a request in the order of the table Ports, so that
// two equal requests with several errors get the same error.
var Ports = []Definition[port, portChange]{
	{
		Name:        "id",
		FilterField: "id",
		FilterValue: FilterUUID,
		Sortable:    true,
		Views:       everywhere(func(p port) any { return p.ID }),
	},
	{
		Name:        "network_id",
		SettableOn:  OnCreate | Required,
		FilterField: "network",
		FilterValue: FilterUUID,
		Sortable:    true,
		Set:         Into(func(c *portChange) **uuid.UUID { return &c.Network }, UUID),
		Views:       everywhere(func(p port) any { return p.Network }),
	},
	{
		Name:        "project_id",
		SettableOn:  OnCreate,
		FilterField: "project",
		Sortable:    true,
		Set:         ProjectInto(func(c *portChange) **string { return &c.Project }),
		Views: Views[port]{
			REST:       portProject,
			RPC:        portProject,
			Versioned:  portProject,
			Controller: portTenant,
		},
	},
	{
		Name:        "tenant_id",
		SettableOn:  OnCreate,
		FilterField: "project",
		Sortable:    true,
		Set:         ProjectInto(func(c *portChange) **string { return &c.Project }),
		Views:       Views[port]{REST: portProject, RPC: portProject, Controller: portTenant},
	},
	{
		Name:        "name",
		SettableOn:  OnWrite,
		FilterField: "name",
		Sortable:    true,
		Set:         Into(func(c *portChange) **string { return &c.Name }, Text(255)),
		Views:       everywhere(func(p port) any { return p.Name }),
	},
	{
		Name:        "description",
		SettableOn:  OnWrite,
		FilterField: "description",
		Set:         Into(func(c *portChange) **string { return &c.Description }, Text(255)),
		Views:       everywhere(func(p port) any { return p.Description }),
	},
	{
		Name:        "admin_state_up",
		SettableOn:  OnWrite,
		FilterField: "admin_up",
		FilterValue: FilterBool,
		Sortable:    true,
		Set:         Into(func(c *portChange) **bool { return &c.AdminUp }, Bool),
		Views:       everywhere(func(p port) any { return p.AdminUp }),
	},
	{
		Name:        "mac_address",
		SettableOn:  OnWrite,
		FilterField: "mac",
		FilterValue: FilterMAC,
		Sortable:    true,
		Set:         Into(func(c *portChange) **string { return &c.MAC }, macOrRandom),
		Views:       everywhere(func(p port) any { return p.MAC }),
	},
	{
		Name:       "fixed_ips",
		SettableOn: OnWrite,
		Set:        Into(func(c *portChange) **[]network.FixedIP { return &c.FixedIPs }, List(fixedIP)),
		Views:      nested(portFixedIPs, versionedFixedIPs),
	},
	{
		Name:        "device_id",
		SettableOn:  OnWrite,
		FilterField: "device_id",
		Sortable:    true,
		Set:         Into(func(c *portChange) **string { return &c.DeviceID }, Line(255)),
		Views:       everywhere(func(p port) any { return p.DeviceID }),
	},
	{
		Name:        "device_owner",
		SettableOn:  OnWrite,
		FilterField: "device_owner",
		Sortable:    true,
		Set:         Into(func(c *portChange) **string { return &c.DeviceOwner }, Line(255)),
		Views:       everywhere(func(p port) any { return p.DeviceOwner }),
	},
	{
		Name:        "port_security_enabled",
		SettableOn:  OnWrite,
		FilterField: "port_security",
		FilterValue: FilterBool,
		ObjectName:  "security",
		Set:         Into(func(c *portChange) **bool { return &c.PortSecurity }, Bool),
		Views:       nested(func(p port) any { return p.PortSecurity }, versionedPortSecurity),
	},
	{
		Name:           "binding:host_id",
		SettableOn:     OnWrite,
		AdminOnlyWrite: true,
		AdminOnlyRead:  true,
		FilterField:    "host",
		Sortable:       true,
		Set:            Into(func(c *portChange) **string { return &c.Host }, NullIsEmpty(Line(255))),
		Views:          notVersioned(func(p port) any { return p.Host }),
	},
	{
		Name:        "binding:vnic_type",
		SettableOn:  OnWrite,
		FilterField: "vnic",
		Set:         Into(func(c *portChange) **string { return &c.VNIC }, VNICType),
		Views:       notVersioned(func(p port) any { return p.VNIC }),
	},
	{
		Name:           "binding:profile",
		SettableOn:     OnWrite,
		AdminOnlyWrite: true,
		AdminOnlyRead:  true,
		Set:            setProfile,
		Views:          notVersioned(func(p port) any { return p.Profile }),
	},
	{
		Name:          "binding:vif_type",
		AdminOnlyRead: true,
		FilterField:   "vif",
		Views:         notVersioned(func(p port) any { return p.VIF }),
	},
	{Name: "binding:vif_details", AdminOnlyRead: true,
		Views: Views[port]{REST: VIFDetails, RPC: agentVIFDetails, Controller: controllerVIFDetails}},
	{
		Name:       "security_groups",
		SettableOn: OnWrite,
		ObjectName: "security_group_ids",
		Set: Into(
			func(c *portChange) **[]uuid.UUID { return &c.SecurityGroups },
			NullIsEmptyList(Distinct(List(UUID))),
		),
		Views: everywhere(func(p port) any { return p.SecurityGroups }),
	},
	{
		Name:       "allowed_address_pairs",
		SettableOn: OnWrite,
		Set: Into(
			func(c *portChange) **[]network.AddressPair { return &c.AddressPairs },
			NullIsEmptyList(List(addressPair)),
		),
		Views: nested(portAddressPairs, versionedAddressPairs),
	},
	{
		Name:       "extra_dhcp_opts",
		SettableOn: OnWrite,
		ObjectName: "dhcp_options",
		Set: Into(
			func(c *portChange) **[]network.DHCPOption { return &c.DHCPOptions },
			NullIsEmptyList(List(dhcpOption)),
		),
		// Open vSwitch agents read no DHCP options. They read the ports of security groups with one call, and
		// the options of many ports would not fit into the answer.
		Views: nested(portDHCPOptions, func(port) any { return []object{} }),
	},
	{
		Name:        "status",
		FilterField: "status",
		Sortable:    true,
		Views:       everywhere(func(p port) any { return p.Status }),
	},
	{
		Name:        "revision_number",
		FilterField: "revision",
		FilterValue: FilterInt,
		Views:       everywhere(func(p port) any { return p.Revision }),
	},
	{
		Name:       "tags",
		SettableOn: OnCreate,
		Set:        Into(func(c *portChange) **[]string { return &c.Tags }, Tags),
		Views:      notVersioned(func(p port) any { return p.Tags }),
	},
	{Name: "trunk_details",
		Views: Views[port]{REST: portTrunkDetails}},
	{Name: "created_at",
		Views: everywhere(func(p port) any { return timestamp(p.CreatedAt) })},
	{Name: "updated_at",
		Views: everywhere(func(p port) any { return timestamp(p.UpdatedAt) })},
	{Name: Why},
}

// PortView returns the representation of the port in the Networking API. The function visible says whether
// the caller sees an attribute that only administrators see by default.
func PortView(p network.Port, visible func(name string) bool) map[string]any {
	return view(Ports, p, func(d Definition[port, portChange]) (string, func(port) any) {
		if d.AdminOnlyRead && !visible(d.Name) {
			return d.Name, nil
		}
		return d.Name, d.Views.REST
	})
}

// PortRPC returns the port as the dictionary that agents read.
func PortRPC(p network.Port) map[string]any {
	return view(Ports, p,
		func(d Definition[port, portChange]) (string, func(port) any) { return d.Name, d.Views.RPC })
}

// PortController returns the representation of the port in OpenDaylight's northbound API.
func PortController(p network.Port) map[string]any {
	return view(Ports, p, func(d Definition[port, portChange]) (string, func(port) any) {
		return d.Name, d.Views.Controller
	})
}

func portProject(p port) any { return p.Project }

// portTenant returns the project of the port at the controller. For OpenDaylight, a port without a project
// belongs to the project of the port's network.
func portTenant(p port) any { return p.QuotaProject }

func portFixedIPs(p port) any {
	list := make([]object, len(p.Addresses))
	for i, a := range p.Addresses {
		list[i] = object{"subnet_id": a.Subnet, "ip_address": a.IP}
	}
	return list
}

func portAddressPairs(p port) any {
	list := make([]object, len(p.AddressPairs))
	for i, a := range p.AddressPairs {
		list[i] = object{"ip_address": a.CIDR(), "mac_address": a.MAC}
	}
	return list
}

func portDHCPOptions(p port) any {
	list := make([]object, len(p.DHCPOptions))
	for i, o := range p.DHCPOptions {
		list[i] = object{"opt_name": o.Name, "opt_value": o.Value, "ip_version": o.IPVersion}
	}
	return list
}

func portTrunkDetails(p port) any {
	if p.TrunkDetails == nil {
		return absent{}
	}
	return object{"trunk_id": p.TrunkDetails.Trunk, "sub_ports": p.TrunkDetails.Subports}
}

// VIFDetails returns binding:vif_details for the Networking API. Nova needs these details to plug in the
// server's device.
func VIFDetails(p network.Port) any {
	driver := p.MechanismDriver()
	switch {
	case p.WiredByController():
		return p.ControllerVIFDetails
	case driver == "":
		return object{}
	}
	details := p.VIFDetails()
	if details == nil {
		details = object{"connectivity": "l2", "port_filter": false}
	}
	details["bound_drivers"] = object{"0": driver}
	return details
}

// agentVIFDetails returns binding:vif_details for agents. The VIF details for agents lack the key
// bound_drivers, because agents do not read this key.
func agentVIFDetails(p port) any {
	if p.WiredByController() {
		return p.ControllerVIFDetails
	}
	if details := p.VIFDetails(); details != nil {
		return details
	}
	return object{}
}

// controllerVIFDetails returns the value of binding:vif_details for the controller: only the VIF details that
// the controller has given to berth.
func controllerVIFDetails(p port) any {
	if p.WiredByController() {
		return p.ControllerVIFDetails
	}
	return object{}
}

// timestamp returns the instant in the form of Neutron's created_at, in UTC and without fractions of a
// second.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
