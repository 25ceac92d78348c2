package rpc

import (
	"fmt"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/network"
	"berth/internal/network/attribute"
)

// maxObjectMinor is the newest minor version in which berth pushes versioned objects. The newest one of
// Neutron's agents is 1.10, of the type Port. Each version has an exchange of its own, so a host must not
// choose versions freely.
const maxObjectMinor = 20

// isUnknownVersion reports whether berth pushes no object in the version that an agent has registered.
func isUnknownVersion(version string) bool {
	major, minor, ok := oslomsg.ParseVersion(version)
	return !ok || major != 1 || minor > maxObjectMinor || version != fmt.Sprintf("1.%d", minor)
}

// withStandardAttributes adds Neutron's standard attributes to the data of a versioned object.
func withStandardAttributes(o object, description string, revision int64, created, updated string) object {
	o["description"], o["revision_number"], o["created_at"], o["updated_at"] = description, revision, created, updated
	return o
}

func networkObject(n network.Network, version string) object {
	return attribute.Versioned(typeNetwork, version, withStandardAttributes(object{
		"id":             n.ID,
		"project_id":     n.Project,
		"name":           n.Name,
		"status":         network.Active,
		"admin_state_up": n.AdminUp,
		"shared":         n.Shared,
		"mtu":            n.MTU,
		"dns_domain":     nil,
		"qos_policy_id":  nil,
		"security": attribute.Versioned(
			"NetworkPortSecurity", "1.0", object{"id": n.ID, "port_security_enabled": n.PortSecurity},
		),
		"segments": []object{attribute.SegmentVersioned(n)},
	}, n.Description, n.Revision, formatTime(n.CreatedAt), formatTime(n.UpdatedAt)))
}

func subnetObject(s network.Subnet, version string) object {
	pools, routes := []object{}, []object{}
	for _, p := range s.Pools {
		pools = append(pools, attribute.Versioned("IPAllocationPool", "1.0", object{
			"id":        s.ID,
			"subnet_id": s.ID,
			"start":     p.Start,
			"end":       p.End,
		}))
	}
	for _, r := range s.Routes {
		routes = append(routes, attribute.Versioned(
			"Route",
			"1.0",
			object{"subnet_id": s.ID, "destination": r.Destination, "nexthop": r.NextHop},
		))
	}
	nameservers := []object{}
	for i, a := range s.DNS {
		nameservers = append(
			nameservers,
			attribute.Versioned("DNSNameServer", "1.0", object{"address": a, "subnet_id": s.ID, "order": i}),
		)
	}
	return attribute.Versioned(typeSubnet, version,
		withStandardAttributes(object{
			"id":                   s.ID,
			"project_id":           s.Project,
			"name":                 s.Name,
			"network_id":           s.Network,
			"segment_id":           nil,
			"subnetpool_id":        nil,
			"ip_version":           s.Version(),
			"cidr":                 s.CIDR,
			"gateway_ip":           nullIfInvalid(s.Gateway),
			"allocation_pools":     pools,
			"enable_dhcp":          s.DHCP,
			"shared":               false,
			"dns_nameservers":      nameservers,
			"dns_publish_fixed_ip": false,
			"host_routes":          routes,
			"ipv6_ra_mode":         nullIfEmpty(s.RAMode),
			"ipv6_address_mode":    nullIfEmpty(s.AddressMode),
			"service_types":        s.ServiceTypes,
		}, s.Description, s.Revision, formatTime(s.CreatedAt), formatTime(s.UpdatedAt)))
}
