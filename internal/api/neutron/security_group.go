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
	"berth/internal/identity/policy"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/db"
	"berth/internal/store/portstore"
)

type (
	securityGroupChange = network.SecurityGroupChange
	securityRuleChange  = network.SecurityRuleChange
)

func securityGroups(s *portstore.Store) resource[network.SecurityGroup, securityGroupChange] {
	return resource[network.SecurityGroup, securityGroupChange]{
		singular:     "security_group",
		notFoundType: string(network.SecurityGroupNotFound),
		notFoundText: "does not exist",
		attributes:   securityGroupAttributes,
		quota:        s.Quota,
		project:      func(c securityGroupChange) *string { return c.Project },
		id:           func(g network.SecurityGroup) uuid.UUID { return g.ID },
		view:         viewSecurityGroup,
		revision:     func(g network.SecurityGroup) int64 { return g.Revision },
		tags: tagAccess[network.SecurityGroup, securityGroupChange]{
			read:  func(g network.SecurityGroup) []string { return g.Tags },
			write: func(c *securityGroupChange, tags *[]string) { c.Tags = tags },
		},
		list: func(ctx context.Context, l db.Listing) ([]network.SecurityGroup, error) {
			// If the caller's project has no default security group yet, berth creates this group before it
			// lists security groups, because clients expect that every project has a default security group.
			named := slices.ContainsFunc(l.Where, func(c db.Condition) bool { return c.Field == "id" })
			if project := identity.From(ctx).Project; project != "" && !named {
				if err := s.EnsureDefaultGroup(ctx, project); err != nil {
					return nil, err
				}
			}
			return s.SecurityGroups(ctx, l)
		},
		ids:    s.SecurityGroupIDs,
		create: s.CreateSecurityGroups,
		update: s.UpdateSecurityGroup,
		remove: s.DeleteSecurityGroup,
		target: targetRule[network.SecurityGroup]{
			of:      func(g network.SecurityGroup) policy.Target { return owned(g.Project) },
			outside: func(project string) policy.Target { return outside(project) },
		},
		prepareCreate: func(r *http.Request, c *securityGroupChange, rules []string) error {
			return createOwned(r, &c.Project, rules)
		},
		authorizeChange: func(r *http.Request, g network.SecurityGroup, c *securityGroupChange) error {
			if c == nil && g.Name == network.DefaultGroup && !accessOf(r).forAll(contextIsAdmin) {
				return network.Faultf(network.CannotRemoveDefaultGroup,
					"Insufficient rights for removing default security group.")
			}
			return nil
		},
	}
}

var securityGroupAttributes = []attribute.Definition[network.SecurityGroup, securityGroupChange]{
	{
		Name:        "id",
		FilterField: "id",
		FilterValue: attribute.FilterUUID,
		Sortable:    true,
	},
	{
		Name:        "project_id",
		SettableOn:  attribute.OnCreate,
		Set:         attribute.ProjectInto(func(c *securityGroupChange) **string { return &c.Project }),
		FilterField: "project",
		Sortable:    true,
	},
	{
		Name:        "tenant_id",
		SettableOn:  attribute.OnCreate,
		Set:         attribute.ProjectInto(func(c *securityGroupChange) **string { return &c.Project }),
		FilterField: "project",
		Sortable:    true,
	},
	{
		Name:        "name",
		SettableOn:  attribute.OnWrite,
		Set:         attribute.Into(func(c *securityGroupChange) **string { return &c.Name }, groupName),
		FilterField: "name",
		Sortable:    true,
	},
	{
		Name:       "description",
		SettableOn: attribute.OnWrite,
		Set: attribute.Into(
			func(c *securityGroupChange) **string { return &c.Description },
			attribute.Text(255),
		),
		FilterField: "description",
		Sortable:    true,
	},
	{
		Name:        "stateful",
		SettableOn:  attribute.OnWrite,
		Set:         attribute.Into(func(c *securityGroupChange) **bool { return &c.Stateful }, attribute.Bool),
		FilterField: "stateful",
		FilterValue: attribute.FilterBool,
	},
	{Name: "revision_number", FilterField: "revision", FilterValue: attribute.FilterInt},
	{
		Name: "security_group_rules",
	}, {Name: "shared"}, {Name: "tags"}, {Name: "created_at"}, {Name: "updated_at"},
}

func viewSecurityGroup(g network.SecurityGroup, requester *access) object {
	rules := make([]object, len(g.Rules))
	for i, r := range g.Rules {
		rules[i] = viewSecurityRule(r, requester)
	}
	o := object{
		"id":                   g.ID,
		"name":                 g.Name,
		"description":          g.Description,
		"project_id":           g.Project,
		"tenant_id":            g.Project,
		"stateful":             g.Stateful,
		"shared":               false,
		"security_group_rules": rules,
	}
	addStandardAttributes(o, g.Revision, g.CreatedAt, g.UpdatedAt, g.Tags)
	return o
}

func securityRules(s *portstore.Store) resource[network.SecurityRule, securityRuleChange] {
	return resource[network.SecurityRule, securityRuleChange]{
		singular:     "security_group_rule",
		notFoundType: string(network.RuleNotFound),
		notFoundText: "does not exist",
		attributes:   securityRuleAttributes,
		quota:        s.Quota,
		project:      func(c securityRuleChange) *string { return c.Project },
		id:           func(r network.SecurityRule) uuid.UUID { return r.ID },
		view:         viewSecurityRule,
		revision:     func(r network.SecurityRule) int64 { return r.Revision },
		list:         s.SecurityRules,
		ids:          s.SecurityRuleIDs,
		create:       s.CreateSecurityRules,
		update:       s.UpdateSecurityRule,
		remove:       s.DeleteSecurityRule,
		target: targetRule[network.SecurityRule]{
			of: func(r network.SecurityRule) policy.Target { return owned(r.Project) },
			outside: func(project string) policy.Target {
				return outside(project, "security_group:project_id", "security_group:tenant_id")
			},
			parent:    func(r network.SecurityRule) uuid.UUID { return r.Group },
			addParent: groupParents(s),
		},
		prepareCreate: func(r *http.Request, c *securityRuleChange, rules []string) error {
			groups := []uuid.UUID{*c.Group}
			if c.RemoteGroup != nil {
				groups = append(groups, *c.RemoteGroup)
			}
			found, err := visibleGroups(r, s, groups)
			if err != nil {
				return err
			}
			t := newOwner(r, c.Project)
			for _, g := range found {
				if g.ID == *c.Group {
					addGroup(t, g)
				}
			}
			if err := accessOf(r).require(rules, t, nil); err != nil {
				return err
			}
			return fillProject(r, &c.Project)
		},
	}
}

// visibleGroups reads security groups, and refuses those that the caller does not see.
func visibleGroups(r *http.Request, s *portstore.Store, ids []uuid.UUID) ([]network.SecurityGroup, error) {
	return securityGroups(s).findAll(r, ids)
}

// addGroup adds to the target of a rule the project of the rule's security group.
func addGroup(t policy.Target, g network.SecurityGroup) {
	t["security_group:project_id"], t["security_group:tenant_id"] = g.Project, g.Project
}

func groupParents(
	s *portstore.Store,
) func(context.Context, []uuid.UUID) (map[uuid.UUID]func(policy.Target), error) {
	return func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]func(policy.Target), error) {
		found, err := s.SecurityGroups(ctx,
			db.Listing{Where: []db.Condition{db.OneOfIDs("id", ids)}, Fields: []string{"project_id"}})
		add := map[uuid.UUID]func(policy.Target){}
		for _, g := range found {
			add[g.ID] = func(t policy.Target) { addGroup(t, g) }
		}
		return add, err
	}
}

var securityRuleAttributes = []attribute.Definition[network.SecurityRule, securityRuleChange]{
	{
		Name:        "id",
		FilterField: "id",
		FilterValue: attribute.FilterUUID,
		Sortable:    true,
	},
	{
		Name:        "security_group_id",
		SettableOn:  attribute.OnCreate | attribute.Required,
		Set:         attribute.Into(func(c *securityRuleChange) **uuid.UUID { return &c.Group }, groupID),
		FilterField: "group",
		FilterValue: attribute.FilterUUID,
		Sortable:    true,
	},
	{
		Name:        "project_id",
		SettableOn:  attribute.OnCreate,
		Set:         attribute.ProjectInto(func(c *securityRuleChange) **string { return &c.Project }),
		FilterField: "project",
		Sortable:    true,
	},
	{
		Name:        "tenant_id",
		SettableOn:  attribute.OnCreate,
		Set:         attribute.ProjectInto(func(c *securityRuleChange) **string { return &c.Project }),
		FilterField: "project",
		Sortable:    true,
	},
	{
		Name:       "direction",
		SettableOn: attribute.OnCreate | attribute.Required,
		Set: attribute.Into(
			func(c *securityRuleChange) **string { return &c.Direction },
			attribute.NotEmpty(attribute.OneOf(network.Ingress, network.Egress)),
		),
		FilterField: "direction",
		Sortable:    true,
	},
	{
		Name:        "ethertype",
		SettableOn:  attribute.OnCreate,
		Set:         attribute.Into(func(c *securityRuleChange) **string { return &c.EtherType }, etherType),
		FilterField: "ethertype",
		Sortable:    true,
	},
	{
		Name:        "protocol",
		SettableOn:  attribute.OnCreate,
		Set:         attribute.Into(func(c *securityRuleChange) **string { return &c.Protocol }, protocol),
		FilterField: "protocol",
		Sortable:    true,
	},
	{
		Name:       "port_range_min",
		SettableOn: attribute.OnCreate,
		Set: attribute.NullIsAbsent(
			attribute.Into(func(c *securityRuleChange) **int { return &c.PortMin }, portNumber),
		),
		FilterField: "port_min",
		FilterValue: attribute.FilterInt,
	},
	{
		Name:       "port_range_max",
		SettableOn: attribute.OnCreate,
		Set: attribute.NullIsAbsent(
			attribute.Into(func(c *securityRuleChange) **int { return &c.PortMax }, portNumber),
		),
		FilterField: "port_max",
		FilterValue: attribute.FilterInt,
	},
	{
		Name:       "remote_ip_prefix",
		SettableOn: attribute.OnCreate,
		Set: attribute.NullIsAbsent(
			attribute.Into(func(c *securityRuleChange) **netip.Prefix { return &c.RemoteIP }, ipPrefix),
		),
		FilterField: "remote_ip",
		FilterValue: attribute.FilterCIDR,
		Sortable:    true,
	},
	{
		Name:       "remote_group_id",
		SettableOn: attribute.OnCreate,
		Set: attribute.NullIsAbsent(
			attribute.Into(func(c *securityRuleChange) **uuid.UUID { return &c.RemoteGroup }, groupID),
		),
		FilterField: "remote_group",
		FilterValue: attribute.FilterUUID,
	},
	{
		Name:       "remote_address_group_id",
		SettableOn: attribute.OnCreate,
		Set:        attribute.OnlyEmpty[securityRuleChange],
	},
	{
		Name:       "description",
		SettableOn: attribute.OnWrite,
		Set: attribute.Into(
			func(c *securityRuleChange) **string { return &c.Description },
			attribute.Text(255),
		),
		FilterField: "description",
	},
	{Name: "revision_number", FilterField: "revision", FilterValue: attribute.FilterInt},
	{Name: "normalized_cidr"}, {Name: "created_at"}, {Name: "updated_at"},
}

// groupID reads the ID of a security group. A text that is not a UUID is the ID of no security group.
func groupID(raw json.RawMessage) (uuid.UUID, error) {
	if _, err := attribute.Text(255)(raw); err != nil {
		return uuid.Nil, err
	}
	id, err := attribute.UUID(raw)
	if err != nil {
		err = network.Faultf(network.SecurityGroupNotFound, "Security group %s does not exist",
			attribute.Excerpt(raw))
	}
	return id, err
}

// etherType reads the text IPv4 or IPv6 in upper or lower case.
func etherType(raw json.RawMessage) (string, error) {
	for _, kind := range []string{network.IPv4, network.IPv6} {
		if strings.EqualFold(strings.Trim(string(raw), `"`), kind) {
			return kind, nil
		}
	}
	return "", network.Faultf(
		network.RuleNoEtherType,
		"Security group rule for ethertype '%s' not supported. Allowed values are ['%s', '%s'].",
		attribute.Excerpt(raw), network.IPv4, network.IPv6,
	)
}

// protocol reads the name or the number of an IP protocol; null and "any" match every protocol.
func protocol(raw json.RawMessage) (string, error) {
	var number int
	if attribute.IsNull(raw) {
		return "", nil
	}
	if json.Unmarshal(raw, &number) == nil {
		return fmt.Sprint(number), nil
	}
	s, err := attribute.Text(40)(raw)
	if s = strings.ToLower(s); s == "any" {
		s = ""
	}
	return s, err
}

// ipPrefix reads an IP address or an address block in CIDR notation.
func ipPrefix(raw json.RawMessage) (netip.Prefix, error) {
	s, _ := attribute.Text(64)(raw)
	if p, err := netip.ParsePrefix(s); err == nil && !p.Addr().Is4In6() {
		return p.Masked(), nil
	}
	a, err := attribute.Address(raw)
	if err != nil {
		err = network.Faultf(network.RuleCIDR, "Invalid CIDR %s given as IP prefix.", attribute.Excerpt(raw))
	}
	return netip.PrefixFrom(a, a.BitLen()), err
}

// groupName reads the name of a security group. groupName refuses the name "default", because every project
// already has a default security group.
func groupName(raw json.RawMessage) (string, error) {
	s, err := attribute.Text(255)(raw)
	if strings.EqualFold(s, network.DefaultGroup) {
		err = network.Faultf(network.DefaultExists, "Default security group already exists.")
	}
	return s, err
}

// portNumber reads a port number, or an ICMP type or code.
func portNumber(raw json.RawMessage) (int, error) {
	n, err := attribute.Int(0, 65535)(raw)
	if err != nil {
		err = network.Faultf(network.RulePort, "Invalid value for port %s", attribute.Excerpt(raw))
	}
	return n, err
}

func viewSecurityRule(r network.SecurityRule, _ *access) object {
	const layout = "2006-01-02T15:04:05Z"
	o := object{
		"id":                      r.ID,
		"security_group_id":       r.Group,
		"project_id":              r.Project,
		"tenant_id":               r.Project,
		"description":             r.Description,
		"direction":               r.Direction,
		"ethertype":               r.EtherType,
		"protocol":                nullIfEmpty(r.Protocol),
		"port_range_min":          r.PortMin,
		"port_range_max":          r.PortMax,
		"remote_ip_prefix":        nil,
		"normalized_cidr":         nil,
		"remote_group_id":         r.RemoteGroup,
		"remote_address_group_id": nil,
		"revision_number":         r.Revision,
		"created_at":              r.CreatedAt.UTC().Format(layout),
		"updated_at":              r.UpdatedAt.UTC().Format(layout),
	}
	if r.RemoteIP.IsValid() {
		o["remote_ip_prefix"], o["normalized_cidr"] = r.RemoteIP, r.RemoteIP
	}
	return o
}
