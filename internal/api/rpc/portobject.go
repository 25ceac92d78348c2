package rpc

import (
	"encoding/json"

	"berth/internal/network"
)

// portObject is a port as a versioned object, as far as an agent that wires it needs it. Its fields grew with the
// versions; an agent of an older one does not get those that it does not know.
func portObject(p network.Port, n network.Network, version string) object {
	data := object{"id": p.ID, "project_id": p.Project, "name": p.Name, "network_id": p.Network, "mac_address": p.MAC,
		"admin_state_up": p.AdminUp, "device_id": p.DeviceID, "device_owner": p.DeviceOwner, "status": p.Status,
		"allowed_address_pairs": pairObjects(p), "bindings": bindingObjects(p), "binding_levels": levelObjects(p, n),
		"data_plane_status": nil, "dhcp_options": optionObjects(p), "distributed_bindings": distributedObjects(p), "dns": nil,
		"fixed_ips": allocationObjects(p), "security_group_ids": p.SecurityGroups, "qos_policy_id": nil, "qos_network_policy_id": nil,
		"security": inVersion("PortSecurity", "1.0", object{"id": p.ID, "port_security_enabled": p.PortSecurity})}
	if since(version, 8) {
		data["hints"] = nil
	}
	if since(version, 9) {
		data["hardware_offload_type"] = nil
	}
	if since(version, 10) {
		data["trusted"] = nil
	}
	return inVersion(typePort, version, stamped(data, p.Description, p.Revision, moment(p.CreatedAt), moment(p.UpdatedAt)))
}

func pairObjects(p network.Port) []object {
	all := []object{}
	for _, a := range p.AddressPairs {
		all = append(all, inVersion("AllowedAddressPair", "1.0", object{"port_id": p.ID, "mac_address": a.MAC, "ip_address": a.Block()}))
	}
	return all
}

func optionObjects(p network.Port) []object {
	all := []object{}
	for _, o := range p.DHCPOptions {
		all = append(all, inVersion("ExtraDhcpOpt", "1.0", object{"id": p.ID, "port_id": p.ID, "opt_name": o.Name, "opt_value": o.Value, "ip_version": o.IPVersion}))
	}
	return all
}

func allocationObjects(p network.Port) []object {
	all := []object{}
	for _, a := range p.Addresses {
		all = append(all, inVersion("IPAllocation", "1.0", object{"port_id": p.ID, "subnet_id": a.Subnet, "network_id": p.Network, "ip_address": a.IP}))
	}
	return all
}

// bindingObjects are the port's ties to hosts, its own and those it may move to. Dictionaries stand in them as texts.
func bindingObjects(p network.Port) []object {
	all := []object{}
	if p.Distributed() {
		return all
	}
	for _, b := range p.Tied() {
		var details any
		if b.Host == p.Host && b.VIF != network.VIFUnbound && b.VIF != network.VIFFailed {
			details = text(vifDetails(p))
		}
		all = append(all, inVersion("PortBinding", "1.0", object{"port_id": p.ID, "host": b.Host, "profile": text(b.Profile),
			"vif_type": b.VIF, "vif_details": details, "vnic_type": b.VNIC, "status": b.Status}))
	}
	return all
}

func distributedObjects(p network.Port) []object {
	all := []object{}
	if !p.Distributed() {
		return all
	}
	for _, b := range p.Bindings {
		all = append(all, inVersion("DistributedPortBinding", "1.0", object{"port_id": p.ID, "host": b.Host, "profile": text(b.Profile),
			"vif_type": b.VIF, "vif_details": nil, "vnic_type": b.VNIC, "status": b.Status, "router_id": p.DeviceID}))
	}
	return all
}

// levelObjects say by whom and on which segment the port is wired: for each host where it is bound.
func levelObjects(p network.Port, n network.Network) []object {
	all := []object{}
	for _, b := range p.Tied() {
		if b.Host == "" || b.VIF == network.VIFUnbound || b.VIF == network.VIFFailed {
			continue
		}
		driver := network.Port{VIF: b.VIF}.Driver()
		if b.VIF == network.VIFDistributed {
			driver = network.Port{VIF: network.VIFOVS}.Driver()
		}
		all = append(all, inVersion("PortBindingLevel", "1.1", object{"port_id": p.ID, "host": b.Host, "level": 0, "driver": driver,
			"segment": segmentObject(n), "segment_id": n.ID}))
	}
	return all
}

// text is a dictionary as JSON in a text.
func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil || string(raw) == "null" {
		return "{}"
	}
	return string(raw)
}
