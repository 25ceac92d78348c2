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
	return h.versionedObjects(ctx, a)
}

// versionedObjects returns the objects that match the filters of a call as encoded versioned objects.
func (h *handlers) versionedObjects(ctx context.Context, a pullArgs) ([]json.RawMessage, error) {
	list := newEncodedList()
	fieldOf, ok := objectFilters[a.Type]
	if !ok && !emptyTypes[a.Type] {
		return nil, oslomsg.NewFailure("neutron.api.rpc.callbacks.exceptions",
			"CallbackNotFound", "Callback for %s not found", oslomsg.Excerpt(a.Type))
	}
	if !ok {
		return list.objects, nil
	}
	where, err := h.conditions(a.Filters, fieldOf)
	if err != nil {
		return nil, err
	}
	switch a.Type {
	case typePort:
		err = h.addPorts(ctx, list, where, a.Version)
	case typeNetwork:
		err = eachReadable(ctx, h.sender, h.networks(), where, func(n network.Network) error {
			return list.add(ctx, networkObject(n, a.Version))
		})
	case typeSubnet:
		err = eachReadable(ctx, h.sender, h.subnets(), where, func(s network.Subnet) error {
			return list.add(ctx, subnetObject(s, a.Version))
		})
	case typeSecurityGroup:
		err = eachReadable(ctx, h.sender, h.securityGroups(), where, func(g network.SecurityGroup) error {
			return list.addGroup(ctx, g, a.Version)
		})
	default:
		err = eachReadable(ctx, h.sender, h.securityRules(), where, func(r network.SecurityRule) error {
			return list.add(ctx, securityGroupRuleObject(r, a.Version))
		})
	}
	return list.objects, err
}

func (h *handlers) networks() source[network.Network] {
	return source[network.Network]{
		list:   h.Store.Networks,
		ids:    h.Store.NetworkIDs,
		pages:  allFields,
		scopes: []scope{networkstore.OnHost},
	}
}

func (h *handlers) subnets() source[network.Subnet] {
	return source[network.Subnet]{
		list:   h.Store.Subnets,
		ids:    h.Store.SubnetIDs,
		pages:  allFields,
		scopes: []scope{networkstore.OnHost},
	}
}

func (h *handlers) securityGroups() source[network.SecurityGroup] {
	return source[network.SecurityGroup]{
		list:   h.Store.SecurityGroups,
		ids:    h.Store.SecurityGroupIDs,
		pages:  allFields,
		scopes: []scope{networkstore.OnHost, networkstore.RemoteGroupsOf},
	}
}

func (h *handlers) securityRules() source[network.SecurityRule] {
	return source[network.SecurityRule]{
		list:   h.Store.SecurityRules,
		ids:    h.Store.SecurityRuleIDs,
		pages:  smallObjects,
		scopes: []scope{networkstore.OnHost},
	}
}

// pull returns one versioned object. If the object does not exist, pull returns null.
func (h *handlers) pull(ctx context.Context, a pullArgs) (any, error) {
	if parseUUID(a.ID) == uuid.Nil {
		return nil, nil
	}
	a.Filters = filters{"id": []byte(strconv.Quote(a.ID))}
	found, err := h.versionedObjects(ctx, a)
	if err != nil || len(found) != 1 {
		return nil, err
	}
	return found[0], nil
}

// maxPushedRules is the maximum number of rules in the push of a security group, which needs at most 3 MB for
// them. The limit keeps the message below RabbitMQ's max_message_size, also if the quota of the project
// allows tens of thousands of rules: RabbitMQ would otherwise close the connection, for every agent and every
// retry.
const maxPushedRules = 1000

// pushedRules returns the rules that the push of a security group contains. Agents add these rules to those
// that they know, because a group is created with rules that have no push of their own; each later rule has
// one. Therefore the push of a larger group contains no rules.
func pushedRules(g network.SecurityGroup) []object {
	rules := []object{}
	if len(g.Rules) > maxPushedRules {
		return rules
	}
	for _, r := range g.Rules {
		rules = append(rules, securityGroupRuleObject(r, nestedRuleVersion))
	}
	return rules
}

// pushedObject returns a network, a subnet, a security group or a rule as a versioned object without a
// version, for a push. If the object does not exist, pushedObject returns nil.
func (h *handlers) pushedObject(ctx context.Context, objectType string, id uuid.UUID) (object, error) {
	switch objectType {
	case typeNetwork:
		return viewByID(ctx, h.Store.Networks, id, func(n network.Network) object { return networkObject(n, "") })
	case typeSubnet:
		return viewByID(ctx, h.Store.Subnets, id, func(s network.Subnet) object { return subnetObject(s, "") })
	case typeSecurityGroup:
		return viewByID(ctx, h.Store.SecurityGroups, id, func(g network.SecurityGroup) object {
			return securityGroupObject(g, pushedRules(g), "")
		})
	default:
		return viewByID(ctx, h.Store.SecurityRules, id, func(r network.SecurityRule) object {
			return securityGroupRuleObject(r, "")
		})
	}
}

// viewByID reads one object with the function `list` and returns it in the form that the function `view`
// returns. If the object does not exist, viewByID returns nil.
func viewByID[T any](
	ctx context.Context,
	list func(context.Context, db.Listing) ([]T, error),
	id uuid.UUID,
	view func(T) object,
) (object, error) {
	found, err := list(ctx, db.Listing{Where: []db.Condition{db.OneOfIDs("id", []uuid.UUID{id})}})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return view(found[0]), nil
}

// addPorts adds the ports that match the conditions to the list as versioned objects, with the segments of
// the ports' networks.
func (h *handlers) addPorts(
	ctx context.Context,
	list *encodedList,
	where []db.Condition,
	version string,
) error {
	found, err := h.readablePorts(ctx, where...)
	if err != nil {
		return err
	}
	members, err := h.groupMembers(ctx, where, found)
	if err != nil {
		return err
	}
	add := func(ports []network.Port) error {
		networks, err := h.networksOf(ctx, ports)
		if err != nil {
			return err
		}
		return addAll(ctx, list, ports, func(p network.Port) object {
			return attribute.PortVersioned(p, networks[p.Network], version)
		})
	}
	if err := h.eachPortPage(ctx, found, withoutLargeFields, add); err != nil {
		return err
	}
	return h.eachPortPage(ctx, members, withoutLargeFields, func(ports []network.Port) error {
		for i, p := range ports {
			ports[i] = reducedPort(p)
		}
		return add(ports)
	})
}
