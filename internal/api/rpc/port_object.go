package rpc

import (
	"encoding/json"

	"berth/internal/network"
)

// portObject is a port as a versioned object, with the attributes that an L2 agent needs. An older version leaves out the
// attributes that Neutron added later.
func portObject(p network.Port, n network.Network, version string) object {
	data := object{"id": p.ID, "project_id": p.Project, "name": p.Name, "network_id": p.Network, "mac_address": p.MAC,
		"admin_state_up": p.AdminUp, "device_id": p.DeviceID, "device_owner": p.DeviceOwner, "status": p.Status,
		"allowed_address_pairs": addressPairObjects(p), "bindings": bindingObjects(p), "binding_levels": bindingLevelObjects(p, n),
		"data_plane_status": nil, "dhcp_options": dhcpOptionObjects(p), "distributed_bindings": distributedBindingObjects(p), "dns": nil,
		"fixed_ips": ipAllocationObjects(p), "security_group_ids": p.SecurityGroups, "qos_policy_id": nil, "qos_network_policy_id": nil,
		"security": versionedObject("PortSecurity", "1.0", object{"id": p.ID, "port_security_enabled": p.PortSecurity})}
	if atLeast(version, 8) {
		data["hints"] = nil
	}
	if atLeast(version, 9) {
		data["hardware_offload_type"] = nil
	}
	if atLeast(version, 10) {
		data["trusted"] = nil
	}
	return versionedObject(typePort, version, withStandardAttributes(data, p.Description, p.Revision, formatTime(p.CreatedAt), formatTime(p.UpdatedAt)))
}

func addressPairObjects(p network.Port) []object {
	all := []object{}
	for _, a := range p.AddressPairs {
		all = append(all, versionedObject("AllowedAddressPair", "1.0", object{"port_id": p.ID, "mac_address": a.MAC, "ip_address": a.Block()}))
	}
	return all
}

func dhcpOptionObjects(p network.Port) []object {
	all := []object{}
	for _, o := range p.DHCPOptions {
		all = append(all, versionedObject("ExtraDhcpOpt", "1.0", object{"id": p.ID, "port_id": p.ID, "opt_name": o.Name, "opt_value": o.Value, "ip_version": o.IPVersion}))
	}
	return all
}

func ipAllocationObjects(p network.Port) []object {
	all := []object{}
	for _, a := range p.Addresses {
		all = append(all, versionedObject("IPAllocation", "1.0", object{"port_id": p.ID, "subnet_id": a.Subnet, "network_id": p.Network, "ip_address": a.IP}))
	}
	return all
}

// bindingObjects are the port's bindings, active and inactive. Dictionaries in them are JSON strings.
func bindingObjects(p network.Port) []object {
	all := []object{}
	if p.Distributed() {
		return all
	}
	for _, b := range p.Tied() {
		var details any
		if b.Host == p.Host && b.VIF != network.VIFUnbound && b.VIF != network.VIFFailed {
			details = jsonString(viewVIFDetails(p))
		}
		all = append(all, versionedObject("PortBinding", "1.0", object{"port_id": p.ID, "host": b.Host, "profile": jsonString(b.Profile),
			"vif_type": b.VIF, "vif_details": details, "vnic_type": b.VNIC, "status": b.Status}))
	}
	return all
}

func distributedBindingObjects(p network.Port) []object {
	all := []object{}
	if !p.Distributed() {
		return all
	}
	for _, b := range p.Bindings {
		all = append(all, versionedObject("DistributedPortBinding", "1.0", object{"port_id": p.ID, "host": b.Host, "profile": jsonString(b.Profile),
			"vif_type": b.VIF, "vif_details": nil, "vnic_type": b.VNIC, "status": b.Status, "router_id": p.DeviceID}))
	}
	return all
}

// bindingLevelObjects name the mechanism driver and the segment of each binding.
func bindingLevelObjects(p network.Port, n network.Network) []object {
	all := []object{}
	for _, b := range p.Tied() {
		if b.Host == "" || b.VIF == network.VIFUnbound || b.VIF == network.VIFFailed {
			continue
		}
		driver := network.Port{VIF: b.VIF}.Driver()
		if b.VIF == network.VIFDistributed {
			driver = network.Port{VIF: network.VIFOVS}.Driver()
		}
		all = append(all, versionedObject("PortBindingLevel", "1.1", object{"port_id": p.ID, "host": b.Host, "level": 0, "driver": driver,
			"segment": segmentObject(n), "segment_id": n.ID}))
	}
	return all
}

// jsonString encodes a dictionary as JSON.
func jsonString(v any) string {
	raw, err := json.Marshal(v)
	if err != nil || string(raw) == "null" {
		return "{}"
	}
	return string(raw)
}
