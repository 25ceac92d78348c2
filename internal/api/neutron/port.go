package neutron

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
)

type portChange = network.PortChange

func ports(s *networkstore.Store) resource[network.Port, portChange] {
	return resource[network.Port, portChange]{
		singular: "port", notFoundType: string(network.PortNotFound), attributes: attribute.Ports,
		filters: map[string]func([]string) ([]db.Condition, error){"fixed_ips": fixedIPFilter, "security_groups": securityGroupFilter},
		quota:   s.Quota, project: func(c portChange) *string { return c.Project },
		id: func(p network.Port) uuid.UUID { return p.ID }, view: func(p network.Port, requester identity.Caller) object {
			return attribute.PortREST(p, requester.Admin())
		}, addSingleOnly: addWhy,
		revision: func(p network.Port) int64 { return p.Revision },
		tags: tagAccess[network.Port, portChange]{read: func(p network.Port) []string { return p.Tags },
			write: func(c *portChange, tags *[]string) { c.Tags = tags }},
		list: func(ctx context.Context, l db.Listing) ([]network.Port, error) {
			found, err := s.Ports(ctx, l)
			return found, errors.Join(err, addTrunkDetails(ctx, s, found))
		},
		update: func(ctx context.Context, id uuid.UUID, c portChange, expect *int64) (network.Port, error) {
			after, err := s.UpdatePort(ctx, id, c, expect)
			if err != nil {
				return after, err
			}
			updated := []network.Port{after}
			err = addTrunkDetails(ctx, s, updated)
			return updated[0], err
		},
		create: s.CreatePorts, remove: s.DeletePort,
		prepareCreate: func(r *http.Request, c *portChange) error {
			if err := authorizePortCreate(r, s, *c); err != nil {
				return err
			}
			if c.SecurityGroups != nil {
				if err := requireVisibleGroups(r, s, *c.SecurityGroups); err != nil {
					return err
				}
			}
			return fillProject(r, &c.Project)
		},
		authorizeChange: func(r *http.Request, p network.Port, c *portChange) error { return authorizePortChange(r, s, p, c) },
	}
}

// authorizePortChange checks whether a caller who can see the port may change or delete the port. If the parameter c is nil, the request
// deletes the port.
func authorizePortChange(r *http.Request, s *networkstore.Store, p network.Port, c *portChange) error {
	if c == nil {
		return nil // a caller who sees the port owns the port or its network, and may delete the port
	}
	if err := authorizeProject(r, p.Project, c, "port"); err != nil {
		return err
	}
	if c.MAC != nil && *c.MAC != p.MAC && !caller(r).Admin() {
		return forbidden("update_port:mac_address")
	}
	if c.SecurityGroups != nil {
		if err := requireVisibleGroups(r, s, *c.SecurityGroups); err != nil {
			return err
		}
	}
	name := ownerOnlyAttribute(*c, p)
	if name == "" {
		return nil
	}
	n, err := findNetwork(r, s, p.Network)
	if err == nil && !ownsNetwork(caller(r), n) {
		err = forbidden("update_port:" + name)
	}
	return err
}

// addTrunkDetails adds the details of a trunk to each port that is the parent port of a trunk.
func addTrunkDetails(ctx context.Context, s *networkstore.Store, ports []network.Port) error {
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

// authorizePortCreate refuses a port on a network that the caller does not see. authorizePortCreate also refuses attribute values that
// only the network's owner may choose. If the caller is an administrator, authorizePortCreate allows everything and does not read the
// network.
func authorizePortCreate(r *http.Request, s *networkstore.Store, c portChange) error {
	if caller(r).Admin() {
		return nil
	}
	n, err := findNetwork(r, s, *c.Network)
	if err != nil {
		return err
	}
	if name := ownerOnlyAttribute(c, network.Port{PortSecurity: true}); name != "" && !ownsNetwork(caller(r), n) {
		return forbidden("create_port:" + name)
	}
	return nil
}

// ownsNetwork reports whether the caller is the owner of the network or an administrator.
func ownsNetwork(requester identity.Caller, n network.Network) bool {
	return requester.Admin() || n.Project == requester.Project
}

// ownerOnlyAttribute returns the first attribute of the change that only the network's owner may set, or "". On a shared network only the
// network's owner may choose fixed IPs, MAC addresses and address pairs, disable port security, and create ports of network services. If
// every project could choose MAC addresses and fixed IPs on a shared network, a project could take over the address of another port, for
// example the address of the gateway.
func ownerOnlyAttribute(c portChange, p network.Port) string {
	address := func(f network.FixedIP) bool {
		return f.IP.IsValid() && !slices.ContainsFunc(p.Addresses, func(a network.Address) bool { return a.IP == f.IP })
	}
	pair := func(a network.AddressPair) bool {
		return !slices.ContainsFunc(p.AddressPairs, func(o network.AddressPair) bool { return o.IP == a.IP && (a.MAC == "" || o.MAC == a.MAC) })
	}
	switch {
	case c.DeviceOwner != nil && *c.DeviceOwner != p.DeviceOwner && strings.HasPrefix(*c.DeviceOwner, "network:"):
		return "device_owner"
	case c.MAC != nil && *c.MAC != p.MAC:
		return "mac_address"
	case c.FixedIPs != nil && slices.ContainsFunc(*c.FixedIPs, address):
		return "fixed_ips:ip_address"
	case c.PortSecurity != nil && *c.PortSecurity != p.PortSecurity && !*c.PortSecurity:
		return "port_security_enabled"
	case c.AddressPairs != nil && slices.ContainsFunc(*c.AddressPairs, pair):
		return "allowed_address_pairs"
	default:
		return ""
	}
}

// fixedIPFilter reads the values of the filter fixed_ips, which have the forms ip_address=A, subnet_id=S and ip_address_substr=T.
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
			return nil, badRequest("Invalid filter for fixed_ips: '%s' is none of ip_address, subnet_id and ip_address_substr", excerpt(key))
		}
		if in[key] == nil {
			in[key] = []string{}
		}
		if err == nil {
			in[key] = append(in[key], value)
		}
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

// addWhy adds berth:why, which lists the entities for whose reports the port waits. For a caller who is not an administrator, addWhy
// leaves out the names of hosts.
func addWhy(p network.Port, requester identity.Caller, o object) {
	s := p.WithAgentHosts().StatusView()
	if !requester.Admin() {
		s = p.Redacted().StatusView()
	}
	list := []waiting{}
	for _, w := range s.Waiting {
		list = append(list, waiting{For: w.Entity, Since: w.Since.UTC(), Deadline: w.Deadline, Fatal: w.Fatal, Sentence: w.Sentence})
	}
	o[attribute.Why] = object{"sentence": s.Sentence(), "reason": s.Reason, "waiting": list, "ignored_messages": s.IgnoredReports}
}
