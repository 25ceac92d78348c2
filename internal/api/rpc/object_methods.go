package rpc

import (
	"context"
	"strconv"

	"github.com/google/uuid"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/networkstore"
)

// objectMethods are the methods with which agents fetch versioned objects (ResourcesPullRpcApi).
func (h *handlers) objectMethods() map[string]oslomsg.Method {
	return map[string]oslomsg.Method{
		"pull":      oslomsg.WithArgs(h.pull),
		"bulk_pull": oslomsg.WithArgs(h.bulkPull),
	}
}

// The types of versioned objects that berth stores.
const (
	typePort              = "Port"
	typeNetwork           = "Network"
	typeSubnet            = "Subnet"
	typeSecurityGroup     = "SecurityGroup"
	typeSecurityGroupRule = "SecurityGroupRule"
)

// objectFilters contains the types of versioned objects that berth stores. For each type, objectFilters maps
// the name of a filter to the field of the store.
var objectFilters = map[string]map[string]string{
	typePort:              portFilters,
	typeNetwork:           networkFilters,
	typeSubnet:            {"id": "id", "network_id": "network"},
	typeSecurityGroup:     {"id": "id", "project_id": "project", "name": "name"},
	typeSecurityGroupRule: {"id": "id", "security_group_id": "group"},
}

// emptyTypes are types of versioned objects that agents fetch but that berth does not store. If an agent
// fetches objects of a type in emptyTypes, berth answers with an empty list.
var emptyTypes = map[string]bool{
	"AddressGroup":       true,
	"QosPolicy":          true,
	"Trunk":              true,
	"SubPort":            true,
	"PortForwarding":     true,
	"ConntrackHelper":    true,
	"Log":                true,
	"LocalIPAssociation": true,
	"NDPProxy":           true,
}

type pullArgs struct {
	Type    string  `json:"resource_type"`
	Version string  `json:"version"`
	ID      string  `json:"resource_id"`
	Filters filters `json:"filter_kwargs"`
}

func (h *handlers) bulkPull(ctx context.Context, a pullArgs) (any, error) {
	fieldOf, ok := objectFilters[a.Type]
	if !ok && !emptyTypes[a.Type] {
		return nil, oslomsg.NewFailure("neutron.api.rpc.callbacks.exceptions",
			"CallbackNotFound", "Callback for %s not found", oslomsg.Excerpt(a.Type))
	}
	if !ok {
		return []object{}, nil
	}
	where, err := a.Filters.conditions(fieldOf)
	if err != nil {
		return nil, err
	}
	switch a.Type {
	case typePort:
		found, err := h.readablePorts(ctx, where...)
		if err != nil {
			return nil, err
		}
		members, err := h.groupMembers(ctx, where, found)
		if err != nil {
			return nil, err
		}
		return h.portObjects(ctx, append(found, members...), a.Version)
	case typeNetwork:
		found, err := requireReadable(ctx, h.sender, h.Store.Networks, networkID, where, networkstore.OnHost)
		return versionedObjects(found, func(n network.Network) object {
			return networkObject(n, a.Version)
		}), err
	case typeSubnet:
		found, err := requireReadable(ctx, h.sender, h.Store.Subnets, subnetID, where, networkstore.OnHost)
		return versionedObjects(found, func(s network.Subnet) object {
			return subnetObject(s, a.Version)
		}), err
	case typeSecurityGroup:
		found, err := requireReadable(
			ctx, h.sender, h.Store.SecurityGroups, groupID, where, networkstore.OnHost,
			networkstore.RemoteGroupsOf,
		)
		return versionedObjects(found, func(g network.SecurityGroup) object {
			return securityGroupObject(g, a.Version)
		}), err
	default:
		found, err := requireReadable(ctx, h.sender,
			h.Store.SecurityRules, ruleID, where, networkstore.OnHost)
		return versionedObjects(found, func(r network.SecurityRule) object {
			return securityGroupRuleObject(r, a.Version)
		}), err
	}
}

// pull returns one versioned object. If the object does not exist, pull returns null.
func (h *handlers) pull(ctx context.Context, a pullArgs) (any, error) {
	if parseUUID(a.ID) == uuid.Nil {
		return nil, nil
	}
	a.Filters = filters{"id": []byte(strconv.Quote(a.ID))}
	found, err := h.bulkPull(ctx, a)
	if all, ok := found.([]object); err == nil && ok && len(all) == 1 {
		return all[0], nil
	}
	return nil, err
}

// portObjects returns ports as versioned objects, with the segments of the ports' networks.
func (h *handlers) portObjects(ctx context.Context, ports []network.Port, version string) ([]object, error) {
	ids := make([]uuid.UUID, len(ports))
	for i, p := range ports {
		ids[i] = p.ID
	}
	_, networks, err := h.portsWithNetworks(ctx, ids)
	return versionedObjects(ports, func(p network.Port) object {
		return attribute.PortVersioned(p, networks[p.Network], version)
	}), err
}
