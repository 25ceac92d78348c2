package rpc

import (
	"net/netip"
	"time"

	"berth/internal/network"
)

// object is a JSON object in a message.
type object = map[string]any

// addStandardAttributes adds Neutron's standard attributes to the JSON object of a resource.
func addStandardAttributes(o object, revision int64, created, updated time.Time, tags []string) object {
	o["revision_number"], o["tags"] = revision, tags
	o["created_at"], o["updated_at"] = formatTime(created), formatTime(updated)
	return o
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// nullIfEmpty returns nil (JSON null) for the empty string.
func nullIfEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func nullIfInvalid(a netip.Addr) any {
	if !a.IsValid() {
		return nil
	}
	return a
}

func viewNetwork(n network.Network) object {
	return addStandardAttributes(object{
		"id":                        n.ID,
		"name":                      n.Name,
		"description":               n.Description,
		"project_id":                n.Project,
		"tenant_id":                 n.Project,
		"admin_state_up":            n.AdminUp,
		"status":                    network.Active,
		"shared":                    n.Shared,
		"mtu":                       n.MTU,
		"router:external":           n.External,
		"port_security_enabled":     n.PortSecurity,
		"subnets":                   n.Subnets,
		"provider:network_type":     n.Type,
		"provider:physical_network": nullIfEmpty(n.PhysicalNetwork),
		"provider:segmentation_id":  n.Segment,
		"availability_zone_hints":   n.ZoneHints,
		"availability_zones":        n.Zones,
	}, n.Revision, n.CreatedAt, n.UpdatedAt, n.Tags)
}

func viewSubnet(s network.Subnet) object {
	pools, routes := []object{}, []object{}
	for _, p := range s.Pools {
		pools = append(pools, object{"start": p.Start, "end": p.End})
	}
	for _, r := range s.Routes {
		routes = append(routes, object{"destination": r.Destination, "nexthop": r.NextHop})
	}
	return addStandardAttributes(object{
		"id":                s.ID,
		"name":              s.Name,
		"description":       s.Description,
		"project_id":        s.Project,
		"tenant_id":         s.Project,
		"network_id":        s.Network,
		"ip_version":        s.Version(),
		"cidr":              s.CIDR,
		"gateway_ip":        nullIfInvalid(s.Gateway),
		"enable_dhcp":       s.DHCP,
		"allocation_pools":  pools,
		"host_routes":       routes,
		"dns_nameservers":   emptyIfNil(s.DNS),
		"ipv6_ra_mode":      nullIfEmpty(s.RAMode),
		"ipv6_address_mode": nullIfEmpty(s.AddressMode),
		"subnetpool_id":     nil,
		"shared":            false,
		"service_types":     s.ServiceTypes,
	}, s.Revision, s.CreatedAt, s.UpdatedAt, s.Tags)
}

// emptyIfNil replaces a nil slice by an empty slice, because JSON encodes an empty slice as [] and a nil
// slice as null.
func emptyIfNil[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}
