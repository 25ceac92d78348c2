package neutron

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/store"
)

type (
	groupChange = network.SecurityGroupChange
	ruleChange  = network.SecurityRuleChange
)

func securityGroups(s *store.Store) resource[network.SecurityGroup, groupChange] {
	return resource[network.SecurityGroup, groupChange]{
		one: "security_group", missing: string(network.SecurityGroupNotFound), attributes: groupAttributes,
		id: func(g network.SecurityGroup) uuid.UUID { return g.ID }, view: viewGroup,
		revision: func(g network.SecurityGroup) int64 { return g.Revision },
		tags: tagging[network.SecurityGroup, groupChange]{of: func(g network.SecurityGroup) []string { return g.Tags },
			set: func(c *groupChange, tags *[]string) { c.Tags = tags }},
		list: func(ctx context.Context, l store.Listing) ([]network.SecurityGroup, error) {
			// Clients expect the default group of their project to be there before anybody has used it.
			named := slices.ContainsFunc(l.Where, func(c store.Condition) bool { return c.Field == "id" })
			if project := identity.From(ctx).Project; project != "" && !named {
				if err := s.EnsureDefaultGroup(ctx, project); err != nil {
					return nil, err
				}
			}
			return s.SecurityGroups(ctx, l)
		},
		create: s.CreateSecurityGroups, update: s.UpdateSecurityGroup, remove: s.DeleteSecurityGroup,
		prepare: func(r *http.Request, c *groupChange) error { return own(r, &c.Project, "create_security_group") },
		may: func(r *http.Request, g network.SecurityGroup, c *groupChange) error {
			if c == nil && g.Name == network.DefaultGroup && !caller(r).Admin() {
				return network.Faultf(network.GroupIsDefault, "Insufficient rights for removing default security group.")
			}
			return nil
		},
	}
}

var groupAttributes = []attribute[groupChange]{
	{name: "id", field: "id", read: asUUID, sorts: true},
	{name: "project_id", on: onCreate, set: project(func(c *groupChange) **string { return &c.Project }), field: "project", sorts: true},
	{name: "tenant_id", on: onCreate, set: project(func(c *groupChange) **string { return &c.Project }), field: "project", sorts: true},
	{name: "name", on: anytime, set: as(func(c *groupChange) **string { return &c.Name }, groupName), field: "name", sorts: true},
	{name: "description", on: anytime, set: as(func(c *groupChange) **string { return &c.Description }, text(255)), field: "description", sorts: true},
	{name: "stateful", on: anytime, set: as(func(c *groupChange) **bool { return &c.Stateful }, boolean), field: "stateful", read: asBool},
	{name: "revision_number", field: "revision", read: asInt},
	{name: "security_group_rules"}, {name: "shared"}, {name: "tags"}, {name: "created_at"}, {name: "updated_at"},
}

func viewGroup(g network.SecurityGroup, who identity.Caller) object {
	rules := make([]object, len(g.Rules))
	for i, r := range g.Rules {
		rules[i] = viewRule(r, who)
	}
	o := object{"id": g.ID, "name": g.Name, "description": g.Description, "project_id": g.Project, "tenant_id": g.Project,
		"stateful": g.Stateful, "shared": false, "security_group_rules": rules}
	stamp(o, g.Revision, g.CreatedAt, g.UpdatedAt, g.Tags)
	return o
}

func securityRules(s *store.Store) resource[network.SecurityRule, ruleChange] {
	return resource[network.SecurityRule, ruleChange]{
		one: "security_group_rule", missing: string(network.RuleNotFound), attributes: ruleAttributes,
		id: func(r network.SecurityRule) uuid.UUID { return r.ID }, view: viewRule,
		revision: func(r network.SecurityRule) int64 { return r.Revision },
		list:     s.SecurityRules, create: s.CreateSecurityRules, update: s.UpdateSecurityRule, remove: s.DeleteSecurityRule,
		prepare: func(r *http.Request, c *ruleChange) error {
			groups := []uuid.UUID{*c.Group}
			if c.RemoteGroup != nil {
				groups = append(groups, *c.RemoteGroup)
			}
			if err := mayJoin(r, s, groups); err != nil {
				return err
			}
			return own(r, &c.Project, "create_security_group_rule")
		},
		may: func(r *http.Request, rule network.SecurityRule, c *ruleChange) error {
			return mayChange(r, rule.Project, c, "security_group_rule")
		},
	}
}

// mayJoin tells whether the caller may use these security groups: it sees them.
func mayJoin(r *http.Request, s *store.Store, ids []uuid.UUID) error {
	for _, id := range ids {
		if _, _, err := securityGroups(s).find(r, id.String()); err != nil {
			return err
		}
	}
	return nil
}

var ruleAttributes = []attribute[ruleChange]{
	{name: "id", field: "id", read: asUUID, sorts: true},
	{name: "security_group_id", on: onCreate | required, set: as(func(c *ruleChange) **uuid.UUID { return &c.Group }, id), field: "group", read: asUUID, sorts: true},
	{name: "project_id", on: onCreate, set: project(func(c *ruleChange) **string { return &c.Project }), field: "project", sorts: true},
	{name: "tenant_id", on: onCreate, set: project(func(c *ruleChange) **string { return &c.Project }), field: "project", sorts: true},
	{name: "direction", on: onCreate | required, set: as(func(c *ruleChange) **string { return &c.Direction }, filled(oneOf(network.Ingress, network.Egress))), field: "direction", sorts: true},
	{name: "ethertype", on: onCreate, set: as(func(c *ruleChange) **string { return &c.EtherType }, etherType), field: "ethertype", sorts: true},
	{name: "protocol", on: onCreate, set: as(func(c *ruleChange) **string { return &c.Protocol }, protocol), field: "protocol", sorts: true},
	{name: "port_range_min", on: onCreate, set: orAbsent(as(func(c *ruleChange) **int { return &c.PortMin }, portNumber)), field: "port_min", read: asInt},
	{name: "port_range_max", on: onCreate, set: orAbsent(as(func(c *ruleChange) **int { return &c.PortMax }, portNumber)), field: "port_max", read: asInt},
	{name: "remote_ip_prefix", on: onCreate, set: orAbsent(as(func(c *ruleChange) **netip.Prefix { return &c.RemoteIP }, ipPrefix)), field: "remote_ip", read: asCIDR, sorts: true},
	{name: "remote_group_id", on: onCreate, set: orAbsent(as(func(c *ruleChange) **uuid.UUID { return &c.RemoteGroup }, id)), field: "remote_group", read: asUUID},
	{name: "remote_address_group_id", on: onCreate, set: nothing[ruleChange]},
	{name: "description", on: anytime, set: as(func(c *ruleChange) **string { return &c.Description }, text(255)), field: "description"},
	{name: "revision_number", field: "revision", read: asInt},
	{name: "normalized_cidr"}, {name: "created_at"}, {name: "updated_at"},
}

// etherType reads IPv4 or IPv6, in any case.
func etherType(raw json.RawMessage) (string, error) {
	for _, kind := range []string{network.IPv4, network.IPv6} {
		if strings.EqualFold(strings.Trim(string(raw), `"`), kind) {
			return kind, nil
		}
	}
	return "", network.Faultf(network.RuleNoEtherType, "Security group rule for ethertype '%s' not supported. Allowed values are ['%s', '%s'].",
		brief(raw), network.IPv4, network.IPv6)
}

// protocol reads the name or the number of a protocol; null and "any" are any.
func protocol(raw json.RawMessage) (string, error) {
	var number int
	if isNull(raw) {
		return "", nil
	}
	if json.Unmarshal(raw, &number) == nil {
		return fmt.Sprint(number), nil
	}
	s, err := text(40)(raw)
	if s = strings.ToLower(s); s == "any" {
		s = ""
	}
	return s, err
}

// ipPrefix reads an address or a block of addresses.
func ipPrefix(raw json.RawMessage) (netip.Prefix, error) {
	s, _ := text(64)(raw)
	if p, err := netip.ParsePrefix(s); err == nil && !p.Addr().Is4In6() {
		return p.Masked(), nil
	}
	a, err := address(raw)
	if err != nil {
		err = network.Faultf(network.RuleCIDR, "Invalid CIDR %s given as IP prefix.", brief(raw))
	}
	return netip.PrefixFrom(a, a.BitLen()), err
}

// groupName reads a name that is not the one of the group that every project has anyway.
func groupName(raw json.RawMessage) (string, error) {
	s, err := text(255)(raw)
	if strings.EqualFold(s, network.DefaultGroup) {
		err = network.Faultf(network.DefaultExists, "Default security group already exists.")
	}
	return s, err
}

// portNumber reads a port, or a type or code of ICMP.
func portNumber(raw json.RawMessage) (int, error) {
	n, err := integer(-1, 65535)(raw)
	if err != nil {
		err = network.Faultf(network.RulePort, "Invalid value for port %s", brief(raw))
	}
	return n, err
}

func viewRule(r network.SecurityRule, _ identity.Caller) object {
	const layout = "2006-01-02T15:04:05Z"
	o := object{"id": r.ID, "security_group_id": r.Group, "project_id": r.Project, "tenant_id": r.Project, "description": r.Description,
		"direction": r.Direction, "ethertype": r.EtherType, "protocol": orNull(r.Protocol), "port_range_min": r.PortMin, "port_range_max": r.PortMax,
		"remote_ip_prefix": nil, "normalized_cidr": nil, "remote_group_id": r.RemoteGroup, "remote_address_group_id": nil,
		"revision_number": r.Revision, "created_at": r.CreatedAt.UTC().Format(layout), "updated_at": r.UpdatedAt.UTC().Format(layout)}
	if r.RemoteIP.IsValid() {
		o["remote_ip_prefix"], o["normalized_cidr"] = r.RemoteIP, r.RemoteIP
	}
	return o
}
