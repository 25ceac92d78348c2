package rpc

import (
	"context"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/network"
	"berth/internal/store/db"
)

// securityGroupMethods are the methods for agents that do not fetch security groups as versioned objects. In
// Neutron, the security group methods belong to SecurityGroupAgentRpc.
func (h *handlers) securityGroupMethods() map[string]oslomsg.Method {
	return map[string]oslomsg.Method{
		"security_group_info_for_devices":  oslomsg.WithArgs(h.securityGroupInfoForDevices),
		"security_group_rules_for_devices": oslomsg.WithArgs(h.securityGroupRulesForDevices),
	}
}

type securityGroupArgs struct {
	Devices []device `json:"devices"`
	Version string   `json:"call_version"`
}

// filteredPorts holds ports and the data for the packet filters of these ports: the ports' security groups
// and the members of remote groups.
type filteredPorts struct {
	ports   map[string]network.Port // by device name
	groups  map[uuid.UUID]network.SecurityGroup
	members map[uuid.UUID][]groupMember // of the remote groups of all rules
}

// groupMember is an address of a port in a security group, or an allowed address pair of the port.
type groupMember struct {
	prefix netip.Prefix
	mac    any // of an allowed address pair; nil for a port's own address
}

// filteredPorts reads the ports of the given devices, the ports' security groups and the members of the
// remote groups. filteredPorts leaves out the ports of network services (device_owner network:*), because
// these ports are trusted and need no security groups, and the ports that the sender does not wire.
func (h *handlers) filteredPorts(ctx context.Context, devices []device) (filteredPorts, error) {
	f := filteredPorts{
		ports:   map[string]network.Port{},
		groups:  map[uuid.UUID]network.SecurityGroup{},
		members: map[uuid.UUID][]groupMember{},
	}
	ids, err := h.portIDs(ctx, h.sender.host(""), devices)
	if err != nil || len(ids) == 0 {
		return f, err
	}
	names := map[uuid.UUID]string{} // a call can name one port by many devices
	for _, d := range devices {
		if id, ok := ids[d.Device]; ok {
			names[id] = d.Name
		}
	}
	groupIDs := map[uuid.UUID]bool{}
	read := func(ports []network.Port) error {
		for _, p := range ports {
			if h.sender.wires(p) && !strings.HasPrefix(p.DeviceOwner, "network:") {
				f.ports[names[p.ID]] = p
				for _, group := range p.SecurityGroups {
					groupIDs[group] = true
				}
			}
		}
		return nil
	}
	err = h.eachPortPage(ctx, slices.Collect(maps.Keys(names)), withoutLargeFields, read)
	if err != nil || len(groupIDs) == 0 {
		return f, err
	}
	return f, h.readGroups(ctx, f, slices.Collect(maps.Keys(groupIDs)))
}

// readGroups reads security groups, and the members of the remote groups of their rules.
func (h *handlers) readGroups(ctx context.Context, f filteredPorts, ids []uuid.UUID) error {
	err := eachPage(ctx, h.Store.SecurityGroups, ids, allFields, func(page []network.SecurityGroup) error {
		for _, group := range page {
			group.Tags = nil // the answer has no tags
			f.groups[group.ID] = group
			for _, r := range group.Rules {
				if r.RemoteGroup != nil {
					f.members[*r.RemoteGroup] = nil
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return h.readMembers(ctx, f.members)
}

// readMembers reads the members of the security groups that are keys of the map.
func (h *handlers) readMembers(ctx context.Context, members map[uuid.UUID][]groupMember) error {
	if len(members) == 0 {
		return nil
	}
	groups := slices.Collect(maps.Keys(members))
	ids, err := h.Store.PortIDs(ctx,
		db.Listing{Where: []db.Condition{db.OneOfIDs("security_group", groups)}})
	if err != nil {
		return err
	}
	return h.eachPortPage(ctx, ids, withoutLargeFields, func(ports []network.Port) error {
		for _, p := range ports {
			for _, id := range p.SecurityGroups {
				if _, wanted := members[id]; wanted {
					members[id] = append(members[id], membersOf(p)...)
				}
			}
		}
		return nil
	})
}

func membersOf(p network.Port) (all []groupMember) {
	for _, a := range p.Addresses {
		all = append(all, groupMember{netip.PrefixFrom(a.IP, a.IP.BitLen()), nil})
	}
	for _, pair := range p.AddressPairs {
		if prefix, err := netip.ParsePrefix(pair.CIDR()); err == nil {
			all = append(all, groupMember{prefix, pair.MAC})
		} else if ip, err := netip.ParseAddr(pair.CIDR()); err == nil {
			all = append(all, groupMember{netip.PrefixFrom(ip, ip.BitLen()), pair.MAC})
		}
	}
	return all
}

// String returns the member in the form that agents expect: a single address, or a CIDR for more than one
// address.
func (m groupMember) String() string {
	if m.prefix.IsSingleIP() {
		return m.prefix.Addr().String()
	}
	return m.prefix.String()
}

func (m groupMember) etherType() string {
	if m.prefix.Addr().Is4() {
		return network.IPv4
	}
	return network.IPv6
}

// securityGroupInfoForDevices returns the devices, the security groups of the devices, and the members of the
// remote groups that the rules name. If several devices have the same security group, the result of
// securityGroupInfoForDevices contains the group only once.
func (h *handlers) securityGroupInfoForDevices(ctx context.Context, a securityGroupArgs) (any, error) {
	f, err := h.filteredPorts(ctx, a.Devices)
	if err != nil {
		return nil, err
	}
	_, minor, _ := oslomsg.ParseVersion(a.Version)
	devices, groups := object{}, object{}
	members := memberLists{withMAC: a.Version != "" && minor >= 3, byGroup: object{}}
	for name, p := range f.ports {
		raw, err := members.encode(ctx, f.viewPort(name, p, providerRules(p)))
		if err != nil {
			return nil, err
		}
		devices[p.ID.String()] = raw
	}
	for id, group := range f.groups {
		rules := []object{}
		for _, r := range group.Rules {
			if r.RemoteGroup != nil {
				if err := members.add(ctx, r, f.members[*r.RemoteGroup]); err != nil {
					return nil, err
				}
			}
			rules = append(rules, viewRule(r, object{"stateful": group.Stateful}))
		}
		raw, err := members.encode(ctx, rules)
		if err != nil {
			return nil, err
		}
		groups[id.String()] = raw
	}
	return object{"devices": devices, "security_groups": groups, "sg_member_ips": members.byGroup}, nil
}

// memberLists are the members of remote groups in a reply, by the ID of the group and by ethertype.
type memberLists struct {
	encodedObjects
	withMAC bool // each member has its MAC, as agents expect since RPC version 1.3
	byGroup object
}

// add adds the members of a rule's remote group that have the ethertype of the rule, unless an earlier rule
// has added them.
func (l *memberLists) add(ctx context.Context, r network.SecurityRule, members []groupMember) error {
	id := r.RemoteGroup.String()
	byEtherType, ok := l.byGroup[id].(object)
	if !ok {
		byEtherType = object{}
		if !l.withMAC {
			byEtherType = object{network.IPv4: []any{}, network.IPv6: []any{}}
		}
		l.byGroup[id] = byEtherType
	}
	if _, added := byEtherType[r.EtherType].(json.RawMessage); added {
		return nil
	}
	addresses := []any{}
	seen := map[groupMember]bool{}
	for _, m := range members {
		if m.etherType() != r.EtherType || seen[m] {
			continue
		}
		seen[m] = true
		if l.withMAC {
			addresses = append(addresses, []any{m.String(), m.mac})
		} else {
			addresses = append(addresses, m.String())
		}
	}
	raw, err := l.encode(ctx, addresses)
	byEtherType[r.EtherType] = raw
	return err
}

// securityGroupRulesForDevices returns the rules of each device. If a rule has a remote group,
// securityGroupRulesForDevices returns one rule for each member of the remote group instead of the rule.
func (h *handlers) securityGroupRulesForDevices(ctx context.Context, a securityGroupArgs) (any, error) {
	f, err := h.filteredPorts(ctx, a.Devices)
	if err != nil {
		return nil, err
	}
	devices, encoded := object{}, encodedObjects{}
	for name, p := range f.ports {
		rules := []json.RawMessage{}
		add := func(rule object) error {
			raw, err := encoded.encode(ctx, rule)
			rules = append(rules, raw)
			return err
		}
		for _, id := range p.SecurityGroups {
			for _, r := range f.groups[id].Rules {
				view := viewRule(r, object{"security_group_id": id})
				if r.RemoteGroup == nil {
					err = add(view)
				} else {
					err = expandRule(view, r, p, f.members[*r.RemoteGroup], add)
				}
				if err != nil {
					return nil, err
				}
			}
		}
		for _, rule := range providerRules(p) {
			if err := add(rule); err != nil {
				return nil, err
			}
		}
		devices[p.ID.String()] = f.viewPort(name, p, rules)
	}
	return devices, nil
}

// expandRule adds one rule for each member of the rule's remote group, except for the addresses of the port
// itself.
func expandRule(
	view object,
	r network.SecurityRule,
	p network.Port,
	members []groupMember,
	add func(rule object) error,
) error {
	own := membersOf(network.Port{Addresses: p.Addresses})
	for _, m := range members {
		if m.etherType() != r.EtherType ||
			slices.ContainsFunc(own, func(o groupMember) bool { return o.prefix == m.prefix }) {
			continue
		}
		rule := maps.Clone(view)
		rule[prefixKey(r)] = m.prefix.String()
		if err := add(rule); err != nil {
			return err
		}
	}
	return nil
}
