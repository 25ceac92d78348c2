package rpc

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/google/uuid"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/db"
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
	where, err := h.conditions(a.Filters, fieldOf)
	if err != nil {
		return nil, err
	}
	switch a.Type {
	case typePort:
		return h.portObjects(ctx, where, a.Version)
	case typeNetwork:
		found, err := requireReadable(
			ctx, h.sender, h.Store.Networks, h.Store.NetworkIDs, where, networkstore.OnHost,
		)
		return versionedObjects(found, func(n network.Network) object {
			return networkObject(n, a.Version)
		}), err
	case typeSubnet:
		found, err := requireReadable(
			ctx, h.sender, h.Store.Subnets, h.Store.SubnetIDs, where, networkstore.OnHost,
		)
		return versionedObjects(found, func(s network.Subnet) object {
			return subnetObject(s, a.Version)
		}), err
	case typeSecurityGroup:
		found, err := requireReadable(
			ctx, h.sender, h.Store.SecurityGroups, h.Store.SecurityGroupIDs, where, networkstore.OnHost,
			networkstore.RemoteGroupsOf,
		)
		return versionedObjects(found, func(g network.SecurityGroup) object {
			return securityGroupObject(g, a.Version)
		}), err
	default:
		found, err := requireReadable(
			ctx, h.sender, h.Store.SecurityRules, h.Store.SecurityRuleIDs, where, networkstore.OnHost,
		)
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
	if err != nil {
		return nil, err
	}
	switch all := found.(type) {
	case []object:
		if len(all) == 1 {
			return all[0], nil
		}
	case []json.RawMessage:
		if len(all) == 1 {
			return all[0], nil
		}
	}
	return nil, nil
}

// portObjects returns the ports that match the conditions as versioned objects, with the segments of the
// ports' networks.
func (h *handlers) portObjects(
	ctx context.Context,
	where []db.Condition,
	version string,
) ([]json.RawMessage, error) {
	found, err := h.readablePorts(ctx, where...)
	if err != nil {
		return nil, err
	}
	members, err := h.groupMembers(ctx, where, found)
	if err != nil {
		return nil, err
	}
	list := portList{ports: []json.RawMessage{}}
	add := func(ports []network.Port) error {
		networks, err := h.networksOf(ctx, ports)
		if err != nil {
			return err
		}
		return list.add(ctx, ports, func(p network.Port) object {
			return attribute.PortVersioned(p, networks[p.Network], version)
		})
	}
	if err := h.eachPortPage(ctx, found, withoutLargeFields, add); err != nil {
		return nil, err
	}
	err = h.eachPortPage(ctx, members, withoutLargeFields, func(ports []network.Port) error {
		for i, p := range ports {
			ports[i] = reducedPort(p)
		}
		return add(ports)
	})
	return list.ports, err
}
