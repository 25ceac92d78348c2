package rpc

import (
	"berth/internal/network"
	"berth/internal/network/attribute"
)

// securityGroupObject returns a security group as a versioned object. The parameter `rules` is a list of the
// group's rules as versioned objects.
func securityGroupObject(g network.SecurityGroup, rules any, version string) object {
	data := object{
		"id":         g.ID,
		"name":       g.Name,
		"project_id": g.Project,
		"shared":     false,
		"stateful":   g.Stateful,
		"is_default": g.Name == network.DefaultGroup,
		"rules":      rules,
	}
	return attribute.Versioned(typeSecurityGroup, version, withStandardAttributes(
		data, g.Description, g.Revision, formatTime(g.CreatedAt), formatTime(g.UpdatedAt),
	))
}

// nestedRuleVersion is the object version of the rules inside a security group object. All supported agents
// accept version 1.2 of the rule object.
const nestedRuleVersion = "1.2"

func securityGroupRuleObject(r network.SecurityRule, version string) object {
	data := object{
		"id":                      r.ID,
		"project_id":              r.Project,
		"security_group_id":       r.Group,
		"remote_group_id":         r.RemoteGroup,
		"direction":               r.Direction,
		"ethertype":               r.EtherType,
		"protocol":                nullIfEmpty(r.Protocol),
		"port_range_min":          r.PortMin,
		"port_range_max":          r.PortMax,
		"remote_ip_prefix":        nil,
		"normalized_cidr":         nil,
		"remote_address_group_id": nil,
	}
	if r.RemoteIP.IsValid() {
		data["remote_ip_prefix"], data["normalized_cidr"] = r.RemoteIP, r.RemoteIP.Masked()
	}
	return attribute.Versioned(typeSecurityGroupRule, version, withStandardAttributes(
		data, r.Description, r.Revision, formatTime(r.CreatedAt), formatTime(r.UpdatedAt),
	))
}
