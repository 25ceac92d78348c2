package rpc

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store"
)

// securityMethods are what agents with a firewall of the older kind call, which do not fetch security groups as objects.
var securityMethods = map[string]method{
	"security_group_info_for_devices":  with(groupInfo),
	"security_group_rules_for_devices": with(groupRules),
}

type groupArgs struct {
	Devices []device `json:"devices"`
	Version string   `json:"call_version"`
}

// guarded are ports whose traffic is filtered, with the groups that they are in and who is in the groups that those name.
type guarded struct {
	ports   map[string]network.Port // by the name of the device
	groups  map[uuid.UUID]network.SecurityGroup
	members map[uuid.UUID][]member
}

// member is an address that belongs to a group: of a port, or one that a port may use.
type member struct {
	block netip.Prefix
	mac   any // null for a port's own
}

// guarded reads all of that. What belongs to the network itself is trusted.
func (d *Desk) guarded(ctx context.Context, devices []device) (guarded, error) {
	g := guarded{ports: map[string]network.Port{}, groups: map[uuid.UUID]network.SecurityGroup{}, members: map[uuid.UUID][]member{}}
	of, err := d.resolve(ctx, devices)
	if err != nil || len(of) == 0 {
		return g, err
	}
	ports, _, err := d.wired(ctx, of)
	if err != nil {
		return g, err
	}
	var in []string
	for name, id := range of {
		if p, ok := ports[id]; ok && !strings.HasPrefix(p.DeviceOwner, "network:") {
			g.ports[name] = p
			in = append(in, texts(p.SecurityGroups)...)
		}
	}
	if len(in) == 0 {
		return g, nil
	}
	groups, err := d.Store.SecurityGroups(ctx, store.Listing{Where: []store.Condition{{Field: "id", In: in}}})
	if err != nil {
		return g, err
	}
	for _, group := range groups {
		g.groups[group.ID] = group
		for _, r := range group.Rules {
			if r.RemoteGroup != nil {
				g.members[*r.RemoteGroup] = nil
			}
		}
	}
	return g, d.gather(ctx, g.members)
}

// gather finds who is in groups.
func (d *Desk) gather(ctx context.Context, members map[uuid.UUID][]member) error {
	if len(members) == 0 {
		return nil
	}
	var ids []string
	for id := range members {
		ids = append(ids, id.String())
	}
	ports, err := d.Store.Ports(ctx, store.Listing{Where: []store.Condition{{Field: "security_group", In: ids}}})
	for _, p := range ports {
		for _, id := range p.SecurityGroups {
			if _, asked := members[id]; asked {
				members[id] = append(members[id], membersOf(p)...)
			}
		}
	}
	return err
}

func membersOf(p network.Port) (all []member) {
	for _, a := range p.Addresses {
		all = append(all, member{netip.PrefixFrom(a.IP, a.IP.BitLen()), nil})
	}
	for _, pair := range p.AddressPairs {
		if block, err := netip.ParsePrefix(pair.Block()); err == nil {
			all = append(all, member{block, pair.MAC})
		} else if ip, err := netip.ParseAddr(pair.Block()); err == nil {
			all = append(all, member{netip.PrefixFrom(ip, ip.BitLen()), pair.MAC})
		}
	}
	return all
}

// text is the member as agents read it: an address, or a block if it is one.
func (m member) text() string {
	if m.block.IsSingleIP() {
		return m.block.Addr().String()
	}
	return m.block.String()
}

func (m member) kind() string {
	if m.block.Addr().Is4() {
		return network.IPv4
	}
	return network.IPv6
}

func texts(ids []uuid.UUID) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = id.String()
	}
	return all
}

// groupInfo tells the groups that devices are in, each once, and the members of those that their rules name.
func groupInfo(ctx context.Context, d *Desk, a groupArgs) (any, error) {
	g, err := d.guarded(ctx, a.Devices)
	if err != nil {
		return nil, err
	}
	_, minor, _ := versionOf(a.Version)
	devices, groups, members := object{}, object{}, object{}
	for name, p := range g.ports {
		devices[p.ID.String()] = g.view(name, p, firewallRules(p))
	}
	for id, group := range g.groups {
		rules := []object{}
		for _, r := range group.Rules {
			if r.RemoteGroup != nil {
				addMembers(members, r, g.members[*r.RemoteGroup], a.Version != "" && minor >= 3)
			}
			rules = append(rules, ruleView(r, object{"stateful": group.Stateful}))
		}
		groups[id.String()] = rules
	}
	return object{"devices": devices, "security_groups": groups, "sg_member_ips": members}, nil
}

// addMembers adds the members that a rule means to those of its remote group. Since 1.3 agents want each with the MAC that goes with it.
func addMembers(into object, r network.SecurityRule, all []member, paired bool) {
	id := r.RemoteGroup.String()
	kinds, ok := into[id].(object)
	if !ok {
		kinds = object{}
		if !paired {
			kinds = object{network.IPv4: []any{}, network.IPv6: []any{}}
		}
		into[id] = kinds
	}
	addresses := []any{}
	seen := map[member]bool{}
	for _, m := range all {
		if m.kind() != r.EtherType || seen[m] {
			continue
		}
		seen[m] = true
		if paired {
			addresses = append(addresses, []any{m.text(), m.mac})
		} else {
			addresses = append(addresses, m.text())
		}
	}
	kinds[r.EtherType] = addresses
}

// groupRules tells for each device the rules that it is under, those that name a group as one for each of its members.
func groupRules(ctx context.Context, d *Desk, a groupArgs) (any, error) {
	g, err := d.guarded(ctx, a.Devices)
	if err != nil {
		return nil, err
	}
	devices := object{}
	for name, p := range g.ports {
		rules := []object{}
		for _, id := range p.SecurityGroups {
			for _, r := range g.groups[id].Rules {
				view := ruleView(r, object{"security_group_id": id})
				if r.RemoteGroup == nil {
					rules = append(rules, view)
					continue
				}
				rules = append(rules, each(view, r, p, g.members[*r.RemoteGroup])...)
			}
		}
		devices[p.ID.String()] = g.view(name, p, append(rules, firewallRules(p)...))
	}
	return devices, nil
}

// each is a rule for each member of the group that it names, but for the port's own addresses.
func each(view object, r network.SecurityRule, p network.Port, all []member) (rules []object) {
	own := membersOf(network.Port{Addresses: p.Addresses})
	for _, m := range all {
		if m.kind() != r.EtherType || slices.ContainsFunc(own, func(o member) bool { return o.block == m.block }) {
			continue
		}
		rule := object{prefixOf(r): m.block.String()}
		for k, v := range view {
			rule[k] = v
		}
		rules = append(rules, rule)
	}
	return rules
}

// view is a port as those agents read it.
func (g guarded) view(name string, p network.Port, rules []object) object {
	v := viewPort(p)
	fixed, remote := []string{}, []uuid.UUID{}
	for _, a := range p.Addresses {
		fixed = append(fixed, a.IP.String())
	}
	for _, id := range p.SecurityGroups {
		for _, r := range g.groups[id].Rules {
			if r.RemoteGroup != nil && !slices.Contains(remote, *r.RemoteGroup) {
				remote = append(remote, *r.RemoteGroup)
			}
		}
	}
	v["device"], v["fixed_ips"], v["security_group_source_groups"] = name, fixed, remote
	v["security_group_remote_address_groups"], v["security_group_rules"] = []string{}, rules
	return v
}

// ruleView is a rule as those agents read it; what it does not say is left out.
func ruleView(r network.SecurityRule, o object) object {
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
		o[prefixOf(r)] = r.RemoteIP.Masked()
	}
	if r.RemoteGroup != nil {
		o["remote_group_id"] = *r.RemoteGroup
	}
	return o
}

// prefixOf is where a rule's remote addresses stand: whence what comes, or whither what goes.
func prefixOf(r network.SecurityRule) string {
	if r.Direction == network.Ingress {
		return "source_ip_prefix"
	}
	return "dest_ip_prefix"
}

// firewallRules let through what a port needs to come up at all, whatever groups it is in: the answers of DHCP servers, and
// the advertisements of routers.
func firewallRules(p network.Port) []object {
	rules := []object{}
	to4, to6 := []string{}, []string{}
	for _, m := range membersOf(network.Port{Addresses: p.Addresses}) {
		if m.kind() == network.IPv4 {
			to4 = append(to4, m.block.String())
		} else {
			to6 = append(to6, m.block.String())
		}
	}
	if len(to6) > 0 {
		rules = append(rules, object{"direction": network.Ingress, "ethertype": network.IPv6, "protocol": "ipv6-icmp", "source_port_range_min": 134})
	}
	dhcp := func(kind, to string, from, port int) {
		rules = append(rules, object{"direction": network.Ingress, "ethertype": kind, "protocol": "udp", "port_range_min": port, "port_range_max": port,
			"source_port_range_min": from, "source_port_range_max": from, "dest_ip_prefix": to})
	}
	for _, to := range append(to4, "255.255.255.255/32") {
		dhcp(network.IPv4, to, 67, 68)
	}
	for _, to := range append(to6, "fe80::/64") {
		dhcp(network.IPv6, to, 547, 546)
	}
	return rules
}
