package rpc

import (
	"slices"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/network/attribute"
)

// viewPort returns a port in the form that Neutron's SecurityGroupAgentRpc uses. The parameter `rules` is a
// list of rules.
func (f filteredPorts) viewPort(device string, p network.Port, rules any) object {
	v := attribute.PortRPC(p)
	fixedIPs, remoteGroups := []string{}, []uuid.UUID{}
	for _, a := range p.Addresses {
		fixedIPs = append(fixedIPs, a.IP.String())
	}
	for _, id := range p.SecurityGroups {
		for _, r := range f.groups[id].Rules {
			if r.RemoteGroup != nil && !slices.Contains(remoteGroups, *r.RemoteGroup) {
				remoteGroups = append(remoteGroups, *r.RemoteGroup)
			}
		}
	}
	v["device"], v["fixed_ips"], v["security_group_source_groups"] = device, fixedIPs, remoteGroups
	v["security_group_remote_address_groups"], v["security_group_rules"] = []string{}, rules
	return v
}

// viewRule adds the attributes of a security group rule to the object o, in the form that Neutron's
// SecurityGroupAgentRpc uses. viewRule leaves out attributes that the rule does not set.
func viewRule(r network.SecurityRule, o object) object {
	o["direction"], o["ethertype"] = r.Direction, r.EtherType
	if r.Protocol != "" {
		o["protocol"] = r.Protocol
	}
	if r.PortMin != nil {
		o["port_range_min"] = *r.PortMin
	}
	if r.PortMax != nil {
		o["port_range_max"] = *r.PortMax
	}
	if r.RemoteIP.IsValid() {
		o[prefixKey(r)] = r.RemoteIP.Masked()
	}
	if r.RemoteGroup != nil {
		o["remote_group_id"] = *r.RemoteGroup
	}
	return o
}

// prefixKey returns the JSON key for a rule's remote prefix: the prefix is the source of ingress traffic and
// the destination of egress traffic.
func prefixKey(r network.SecurityRule) string {
	if r.Direction == network.Ingress {
		return "source_ip_prefix"
	}
	return "dest_ip_prefix"
}

// providerRules returns the rules of a port that do not come from a security group (provider rules in
// Neutron). The provider rules allow replies of DHCP servers and IPv6 router advertisements.
func providerRules(p network.Port) []object {
	rules := []object{}
	ipv4, ipv6 := []string{}, []string{}
	for _, m := range membersOf(network.Port{Addresses: p.Addresses}) {
		if m.etherType() == network.IPv4 {
			ipv4 = append(ipv4, m.prefix.String())
		} else {
			ipv6 = append(ipv6, m.prefix.String())
		}
	}
	if len(ipv6) > 0 {
		rules = append(rules, object{
			"direction":             network.Ingress,
			"ethertype":             network.IPv6,
			"protocol":              "ipv6-icmp",
			"source_port_range_min": 134,
		})
	}
	allowDHCP := func(etherType, destination string, sourcePort, port int) {
		rules = append(rules, object{
			"direction":             network.Ingress,
			"ethertype":             etherType,
			"protocol":              "udp",
			"port_range_min":        port,
			"port_range_max":        port,
			"source_port_range_min": sourcePort,
			"source_port_range_max": sourcePort,
			"dest_ip_prefix":        destination,
		})
	}
	for _, destination := range append(ipv4, "255.255.255.255/32") {
		allowDHCP(network.IPv4, destination, 67, 68)
	}
	for _, destination := range append(ipv6, "fe80::/64") {
		allowDHCP(network.IPv6, destination, 547, 546)
	}
	return rules
}
