package network

import (
	"strings"

	"github.com/google/uuid"
)

// ReservedDHCPDevice is the device_id of a DHCP port that any DHCP agent may take over.
const ReservedDHCPDevice = "reserved_dhcp_port"

// DHCPDeviceID returns the beginning of the device_id of each port that the DHCP agent on a host takes for
// its own on a network (Neutron's get_dhcp_agent_device_id).
func DHCPDeviceID(host string, network uuid.UUID) string {
	name, _, _ := strings.Cut(host, ".")
	return dhcpDevicePrefix + uuid.NewSHA1(uuid.NameSpaceDNS, []byte(name)).String() + "-" + network.String()
}

const dhcpDevicePrefix = "dhcp"

// CheckDevice returns a fault if the port, which was `before`, now names a device of the network that is not
// its own. Agents and controllers find the ports of these devices by their device_id, whoever has set it.
func (p Port) CheckDevice(before Port, c PortChange) error {
	switch {
	case p.DeviceID == before.DeviceID && p.DeviceOwner == before.DeviceOwner:
		return nil
	case p.namesDHCPAgent() && p.DeviceOwner != DeviceOwnerDHCP:
		return Faultf(DeviceNotOwned,
			"The device_id %s is that of a DHCP agent. Only a port with the device_owner %s can have it.",
			p.DeviceID, DeviceOwnerDHCP)
	case c.Member != nil && p.namesDHCPAgent():
		return Faultf(DeviceNotOwned,
			"The device_id %s is that of a DHCP agent. Only an administrator or a service can give it to a port.",
			p.DeviceID)
	case c.Member != nil && p.DeviceID != "" && p.belongsToRouter():
		return Faultf(
			DeviceNotOwned,
			"The following device_id %s is not owned by your tenant or matches another tenants router.",
			p.DeviceID,
		)
	default:
		return nil
	}
}

// namesDHCPAgent reports whether a DHCP agent on some host takes the port for its own, or may take it over.
// The agent does not read the device_owner.
func (p Port) namesDHCPAgent() bool {
	return p.DeviceID == ReservedDHCPDevice ||
		strings.HasPrefix(p.DeviceID, dhcpDevicePrefix) && strings.Contains(p.DeviceID, p.Network.String())
}

// belongsToRouter reports whether OpenDaylight connects the port to the router, or to the floating IP, that
// is its device.
func (p Port) belongsToRouter() bool {
	for _, owner := range []string{"network:router", "network:ha_router", "network:floatingip"} {
		if strings.HasPrefix(p.DeviceOwner, owner) {
			return true
		}
	}
	return false
}
