package rpc

import "berth/internal/network"

func groupObject(g network.SecurityGroup, version string) object {
	data := object{"id": g.ID, "name": g.Name, "project_id": g.Project, "shared": false, "stateful": g.Stateful,
		"is_default": g.Name == network.DefaultGroup,
		"rules":      versioned(g.Rules, func(r network.SecurityRule) object { return ruleObject(r, olderRule) })}
	return inVersion(typeGroup, version, stamped(data, g.Description, g.Revision, moment(g.CreatedAt), moment(g.UpdatedAt)))
}

// olderRule is the version of the rules inside a group: what agents of every age understand.
const olderRule = "1.2"

func ruleObject(r network.SecurityRule, version string) object {
	data := object{"id": r.ID, "project_id": r.Project, "security_group_id": r.Group, "remote_group_id": r.RemoteGroup, "direction": r.Direction,
		"ethertype": r.EtherType, "protocol": orNull(r.Protocol), "port_range_min": r.PortMin, "port_range_max": r.PortMax,
		"remote_ip_prefix": nil, "normalized_cidr": nil, "remote_address_group_id": nil}
	if r.RemoteIP.IsValid() {
		data["remote_ip_prefix"], data["normalized_cidr"] = r.RemoteIP, r.RemoteIP.Masked()
	}
	return inVersion(typeRule, version, stamped(data, r.Description, r.Revision, moment(r.CreatedAt), moment(r.UpdatedAt)))
}
