package neutron

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"berth/internal/identity/policy"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/db"
	"berth/internal/store/portstore"
)

type portChange = network.PortChange

func ports(s *portstore.Store) resource[network.Port, portChange] {
	return resource[network.Port, portChange]{
		singular:     "port",
		notFoundType: string(network.PortNotFound),
		attributes:   attribute.Ports,
		filters: map[string]func([]string) ([]db.Condition, error){
			"fixed_ips":       fixedIPFilter,
			"security_groups": securityGroupFilter,
		},
		quota:         s.Quota,
		project:       func(c portChange) *string { return c.Project },
		id:            func(p network.Port) uuid.UUID { return p.ID },
		view:          viewPort,
		addSingleOnly: addPortWhy,
		revision:      func(p network.Port) int64 { return p.Revision },
		tags: tagAccess[network.Port, portChange]{read: func(p network.Port) []string { return p.Tags },
			write: func(c *portChange, tags *[]string) { c.Tags = tags }},
		list: func(ctx context.Context, l db.Listing) ([]network.Port, error) {
			found, err := s.Ports(ctx, l)
			return found, errors.Join(err, addTrunkDetails(ctx, s, found))
		},
		ids: s.PortIDs,
		update: func(ctx context.Context, id uuid.UUID, c portChange, expect *int64) (network.Port, error) {
			after, err := s.UpdatePort(ctx, id, c, expect)
			if err != nil {
				return after, err
			}
			updated := []network.Port{after}
			err = addTrunkDetails(ctx, s, updated)
			return updated[0], err
		},
		create: s.CreatePorts,
		remove: s.DeletePort,
		target: targetRule[network.Port]{
			of: targetOfPort,
			outside: func(project string) policy.Target {
				return outside(project, "network:project_id", "network:tenant_id")
			},
			parent:    func(p network.Port) uuid.UUID { return p.Network },
			addParent: networkParents(s),
		},
		prepareCreate: func(r *http.Request, c *portChange, rules []string) error {
			c.Member = accessOf(r).memberProject()
			if err := authorizePortCreate(r, s, c, rules); err != nil {
				return err
			}
			return fillProject(r, &c.Project)
		},
		authorizeChange: func(r *http.Request, p network.Port, c *portChange) error { return authorizePortChange(r, s, p, c) },
	}
}

// viewPort returns the port with the attributes that the caller may see.
func viewPort(p network.Port, requester *access) object {
	return attribute.PortView(p, func(name string) bool {
		return requester.visible("get_port:"+name, func() policy.Target { return targetOfPort(p) })
	})
}

func targetOfPort(p network.Port) policy.Target {
	t := owned(p.Project)
	t["device_owner"] = p.DeviceOwner
	return t
}

// authorizePortChange checks whether a caller who may change the port may set the attributes of the change.
// If the parameter c is nil, the request deletes the port.
func authorizePortChange(r *http.Request, s *portstore.Store, p network.Port, c *portChange) error {
	if c == nil {
		return nil
	}
	c.Member = accessOf(r).memberProject()
	after := p
	if c.DeviceOwner != nil {
		after.DeviceOwner = *c.DeviceOwner
	}
	if err := ports(s).require(r, after, attributeRuleNames("update_port", ownerAttributes(*c, p))...); err != nil {
		return err
	}
	return authorizeGroups(r, s, c.SecurityGroups, p.SecurityGroups, func(project string) error {
		inProject := after
		inProject.Project = project
		return ports(s).require(r, inProject, "update_port")
	})
}

// authorizeGroups returns an error if the caller does not see one of a port's new security groups, or if the
// function `require` refuses the project of such a group. `require` decides as if this project were the
// project of the port: a caller who only sees a group may not make others trust the port, as the rules for
// the members of the group do. The groups `present` are those that the port has already.
func authorizeGroups(
	r *http.Request,
	s *portstore.Store,
	groups *[]uuid.UUID,
	present []uuid.UUID,
	require func(project string) error,
) error {
	if groups == nil {
		return nil
	}
	found, err := visibleGroups(r, s, *groups)
	if err != nil {
		return err
	}
	decided := map[string]bool{}
	for _, g := range found {
		if decided[g.Project] || slices.Contains(present, g.ID) {
			continue
		}
		if err := require(g.Project); err != nil {
			return err
		}
		decided[g.Project] = true
	}
	return nil
}

// attributeRuleNames returns the names of the rules of the attributes.
func attributeRuleNames(operation string, attributes []string) []string {
	names := make([]string, len(attributes))
	for i, name := range attributes {
		names[i] = operation + ":" + name
	}
	return names
}

// addTrunkDetails adds the details of a trunk to each port that is the parent port of a trunk.
func addTrunkDetails(ctx context.Context, s *portstore.Store, ports []network.Port) error {
	if len(ports) == 0 {
		return nil
	}
	ids := make([]uuid.UUID, len(ports))
	for i, p := range ports {
		ids[i] = p.ID
	}
	trunks, err := s.TrunksOfPorts(ctx, ids)
	for i := range ports {
		ports[i].TrunkDetails = trunks[ports[i].ID]
	}
	return err
}

// authorizePortCreate refuses a port on a network that the caller does not see, and attribute values and
// security groups that the caller may not choose. If the decisions do not depend on the network, as for an
// administrator, authorizePortCreate does not read the network.
func authorizePortCreate(r *http.Request, s *portstore.Store, c *portChange, rules []string) error {
	a, t := accessOf(r), newOwner(r, c.Project)
	t["device_owner"] = ""
	if c.DeviceOwner != nil {
		t["device_owner"] = *c.DeviceOwner
	}
	find := func(t policy.Target) error {
		n, err := findNetwork(r, s, *c.Network)
		addNetwork(t, n)
		c.NeedsOpenNetwork = n.OpenToAllProjects() && n.Project != a.caller.Project
		return err
	}
	if !a.forAll("get_network") {
		if err := find(t); err != nil {
			return err
		}
		find = nil
	}
	rules = append(rules, attributeRuleNames("create_port", ownerAttributes(*c, network.Port{PortSecurity: true}))...)
	if err := a.require(rules, t, find); err != nil {
		return err
	}
	return authorizeGroups(r, s, c.SecurityGroups, nil, func(project string) error {
		inProject := maps.Clone(t)
		inProject["project_id"], inProject["tenant_id"] = project, project
		return a.require([]string{"create_port"}, inProject, find)
	})
}

// ownerAttributes returns those changed attributes that by default only the network's owner may set. On a
// shared network only the network's owner may choose fixed IPs, MAC addresses, address pairs and client IDs,
// disable port security, and create ports of network services. If every project could choose MAC addresses
// and fixed IPs on a shared network, a project could take over the address of another port, for example the
// address of the gateway; with the client ID of another port, it could choose the DHCP options of this port.
func ownerAttributes(c portChange, p network.Port) (names []string) {
	address := func(f network.FixedIP) bool {
		return f.IP.IsValid() &&
			!slices.ContainsFunc(p.Addresses, func(a network.Address) bool { return a.IP == f.IP })
	}
	pair := func(a network.AddressPair) bool {
		return !slices.ContainsFunc(p.AddressPairs,
			func(o network.AddressPair) bool { return o.IP == a.IP && o.MAC == cmp.Or(a.MAC, p.MAC) })
	}
	clientID := func(o network.DHCPOption) bool {
		same := func(present network.DHCPOption) bool {
			return present.IsClientID() && *present.Value == *o.Value
		}
		return o.IsClientID() && o.Value != nil && !slices.ContainsFunc(p.DHCPOptions, same)
	}
	for _, a := range []struct {
		name    string
		changed bool
	}{
		{"device_owner", c.DeviceOwner != nil && *c.DeviceOwner != p.DeviceOwner},
		{"mac_address", c.MAC != nil && *c.MAC != p.MAC},
		{"fixed_ips:ip_address", c.FixedIPs != nil && slices.ContainsFunc(*c.FixedIPs, address)},
		{"port_security_enabled", c.PortSecurity != nil && *c.PortSecurity != p.PortSecurity && !*c.PortSecurity},
		{"allowed_address_pairs", c.AddressPairs != nil && slices.ContainsFunc(*c.AddressPairs, pair)},
		{"extra_dhcp_opts:client-id", c.DHCPOptions != nil && slices.ContainsFunc(*c.DHCPOptions, clientID)},
	} {
		if a.changed {
			names = append(names, a.name)
		}
	}
	return names
}

// maxAddressParts is the maximum number of different values of ip_address_substr in a filter. PostgreSQL
// searches the text of each address for each of them.
const maxAddressParts = 16

// fixedIPFilter reads the values of the filter fixed_ips, which have the forms ip_address=A, subnet_id=S and
// ip_address_substr=T.
func fixedIPFilter(values []string) ([]db.Condition, error) {
	in := map[string][]string{}
	for _, v := range values {
		key, value, _ := strings.Cut(v, "=")
		var err error
		switch key {
		case "ip_address":
			key = "ip"
			if value, err = attribute.FilterIP(value); value == "" {
				err = attribute.ErrNoMatch
			}
		case "subnet_id":
			key = "subnet"
			value, err = attribute.FilterUUID(value)
		case "ip_address_substr":
			key = "ip_part"
		default:
			return nil, badRequest(
				"Invalid filter for fixed_ips: '%s' is none of ip_address, subnet_id and ip_address_substr",
				excerpt(key),
			)
		}
		if in[key] == nil {
			in[key] = []string{}
		}
		if err == nil && !slices.Contains(in[key], value) {
			in[key] = append(in[key], value)
		}
	}
	if n := len(in["ip_part"]); n > maxAddressParts {
		return nil, badRequest("Invalid filter for fixed_ips: %d values of ip_address_substr are more than %d",
			n, maxAddressParts)
	}
	var conditions []db.Condition
	for _, field := range []string{"ip", "subnet", "ip_part"} {
		if values, ok := in[field]; ok {
			conditions = append(conditions, db.Condition{Field: field, In: values})
		}
	}
	return conditions, nil
}

// securityGroupFilter selects the ports that are in one of the groups.
func securityGroupFilter(values []string) ([]db.Condition, error) {
	c := db.Condition{Field: "security_group", In: []string{}}
	for _, v := range values {
		if id, err := attribute.FilterUUID(v); err == nil {
			c.In = append(c.In, id)
		}
	}
	return []db.Condition{c}, nil
}

// waiting is the JSON format of one entity (such as an agent) for whose report a port waits.
type waiting struct {
	For      string     `json:"for"`
	Since    time.Time  `json:"since"`
	Deadline *time.Time `json:"deadline"`
	Fatal    bool       `json:"fatal"` // the port's status becomes ERROR after the deadline
	Sentence string     `json:"sentence"`
}

// addPortWhy adds berth:why, which lists the entities for whose reports the port waits.
func addPortWhy(p network.Port, requester *access, o object) {
	o[attribute.Why] = viewWhy(withVisibleHosts(p, requester).StatusViewAt(time.Now()))
}

// withVisibleHosts returns the port with the hosts of the agents for which it waits. For a caller who does
// not see the host of the port, withVisibleHosts replaces the names of all hosts.
func withVisibleHosts(p network.Port, requester *access) network.Port {
	if !requester.visible(getPortHost, func() policy.Target { return targetOfPort(p) }) {
		return p.Redacted()
	}
	return p.WithAgentHosts()
}

// viewWhy returns the explanation of the status of a port or a trunk.
func viewWhy(s network.StatusView) object {
	list := []waiting{}
	for _, w := range s.Waiting {
		list = append(list, waiting{
			For:      w.Entity,
			Since:    w.Since.UTC(),
			Deadline: w.Deadline,
			Fatal:    w.Fatal,
			Sentence: w.Sentence,
		})
	}
	return object{
		"sentence":         s.Sentence(),
		"reason":           s.Reason,
		"waiting":          list,
		"ignored_messages": s.IgnoredReports,
	}
}
