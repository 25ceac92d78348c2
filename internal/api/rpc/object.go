package rpc

import (
	"context"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store"
)

// objectMethods are how agents fetch versioned objects.
var objectMethods = map[string]method{
	"pull":      with(pull),
	"bulk_pull": with(bulkPull),
}

// Types of versioned objects of which berth has any, and those of which agents ask though it has none.
const (
	typePort    = "Port"
	typeNetwork = "Network"
	typeSubnet  = "Subnet"
	typeGroup   = "SecurityGroup"
	typeRule    = "SecurityGroupRule"
)

var empty = map[string]bool{"AddressGroup": true, "QosPolicy": true, "Trunk": true,
	"SubPort": true, "PortForwarding": true, "ConntrackHelper": true, "Log": true, "LocalIPAssociation": true, "NDPProxy": true}

type pullArgs struct {
	Type    string  `json:"resource_type"`
	Version string  `json:"version"`
	ID      string  `json:"resource_id"`
	Filters filters `json:"filter_kwargs"`
}

func bulkPull(ctx context.Context, d *Desk, a pullArgs) (any, error) {
	names, ok := pulled[a.Type]
	if !ok && !empty[a.Type] {
		return nil, failuref("neutron.api.rpc.callbacks.exceptions", "CallbackNotFound", "Callback for %s not found", short(a.Type))
	}
	if !ok {
		return []object{}, nil
	}
	where, err := a.Filters.where(names)
	if err != nil {
		return nil, err
	}
	l := store.Listing{Where: where}
	switch a.Type {
	case typePort:
		found, err := d.Store.Ports(ctx, l)
		if err != nil {
			return nil, err
		}
		return d.portObjects(ctx, found, a.Version)
	case typeNetwork:
		found, err := d.Store.Networks(ctx, l)
		return versioned(found, func(n network.Network) object { return networkObject(n, a.Version) }), err
	case typeSubnet:
		found, err := d.Store.Subnets(ctx, l)
		return versioned(found, func(s network.Subnet) object { return subnetObject(s, a.Version) }), err
	case typeGroup:
		found, err := d.Store.SecurityGroups(ctx, l)
		return versioned(found, func(g network.SecurityGroup) object { return groupObject(g, a.Version) }), err
	default:
		found, err := d.Store.SecurityRules(ctx, l)
		return versioned(found, func(r network.SecurityRule) object { return ruleObject(r, a.Version) }), err
	}
}

// pulled are the types of which there are objects, and what those are found by.
var pulled = map[string]map[string]string{
	typePort:    portFilters,
	typeNetwork: networkFilters,
	typeSubnet:  {"id": "id", "network_id": "network"},
	typeGroup:   {"id": "id", "project_id": "project", "name": "name"},
	typeRule:    {"id": "id", "security_group_id": "group"},
}

// pull is one object; null says that there is none.
func pull(ctx context.Context, d *Desk, a pullArgs) (any, error) {
	if idOf(a.ID) == uuid.Nil {
		return nil, nil
	}
	a.Filters = filters{"id": []byte(strconv.Quote(a.ID))}
	found, err := bulkPull(ctx, d, a)
	if all, ok := found.([]object); err == nil && ok && len(all) == 1 {
		return all[0], nil
	}
	return nil, err
}

// portObjects are ports as versioned objects, with the segments of their networks.
func (d *Desk) portObjects(ctx context.Context, ports []network.Port, version string) ([]object, error) {
	of := map[string]uuid.UUID{}
	for _, p := range ports {
		of[p.ID.String()] = p.ID
	}
	_, networks, err := d.wired(ctx, of)
	return versioned(ports, func(p network.Port) object { return portObject(p, networks[p.Network], version) }), err
}

func versioned[T any](all []T, as func(T) object) []object {
	objects := make([]object, len(all))
	for i, v := range all {
		objects[i] = as(v)
	}
	return objects
}

// inVersion wraps the data of a versioned object.
func inVersion(name, version string, data object) object {
	return object{"versioned_object.name": name, "versioned_object.namespace": "versionedobjects",
		"versioned_object.version": version, "versioned_object.data": data}
}

// since tells whether a version is 1.minor or newer.
func since(version string, minor int) bool {
	_, after, ok := strings.Cut(version, ".")
	n, err := strconv.Atoi(after)
	return ok && err == nil && n >= minor
}

func stamped(o object, description string, revision int64, created, updated string) object {
	o["description"], o["revision_number"], o["created_at"], o["updated_at"] = description, revision, created, updated
	return o
}

// segmentObject is where a network's frames are; berth's networks have one segment, which goes by the network's own ID.
func segmentObject(n network.Network) object {
	return inVersion("NetworkSegment", "1.0", stamped(object{"id": n.ID, "network_id": n.ID, "name": nil, "network_type": n.Type,
		"physical_network": orNull(n.PhysicalNetwork), "segmentation_id": n.Segment, "is_dynamic": false, "segment_index": 0, "hosts": []string{}},
		"", n.Revision, moment(n.CreatedAt), moment(n.UpdatedAt)))
}

func networkObject(n network.Network, version string) object {
	return inVersion(typeNetwork, version, stamped(object{"id": n.ID, "project_id": n.Project, "name": n.Name, "status": network.Active,
		"admin_state_up": n.AdminUp, "shared": n.Shared, "mtu": n.MTU, "dns_domain": nil, "qos_policy_id": nil,
		"security": inVersion("NetworkPortSecurity", "1.0", object{"id": n.ID, "port_security_enabled": n.PortSecurity}),
		"segments": []object{segmentObject(n)}}, n.Description, n.Revision, moment(n.CreatedAt), moment(n.UpdatedAt)))
}

func subnetObject(s network.Subnet, version string) object {
	pools, routes := []object{}, []object{}
	for _, p := range s.Pools {
		pools = append(pools, inVersion("IPAllocationPool", "1.0", object{"id": s.ID, "subnet_id": s.ID, "start": p.Start, "end": p.End}))
	}
	for _, r := range s.Routes {
		routes = append(routes, inVersion("Route", "1.0", object{"subnet_id": s.ID, "destination": r.Destination, "nexthop": r.NextHop}))
	}
	names := []object{}
	for i, a := range s.DNS {
		names = append(names, inVersion("DNSNameServer", "1.0", object{"address": a, "subnet_id": s.ID, "order": i}))
	}
	return inVersion(typeSubnet, version, stamped(object{"id": s.ID, "project_id": s.Project, "name": s.Name, "network_id": s.Network,
		"segment_id": nil, "subnetpool_id": nil, "ip_version": s.Version(), "cidr": s.CIDR, "gateway_ip": ipOrNull(s.Gateway), "allocation_pools": pools,
		"enable_dhcp": s.DHCP, "shared": false, "dns_nameservers": names, "dns_publish_fixed_ip": false, "host_routes": routes,
		"ipv6_ra_mode": orNull(s.RAMode), "ipv6_address_mode": orNull(s.AddressMode), "service_types": []string{}},
		s.Description, s.Revision, moment(s.CreatedAt), moment(s.UpdatedAt)))
}
