package neutron

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/store"
)

type portChange = network.PortChange

func ports(s *store.Store) resource[network.Port, portChange] {
	return resource[network.Port, portChange]{
		one: "port", missing: string(network.PortNotFound), attributes: portAttributes,
		filters: map[string]func([]string) ([]store.Condition, error){"fixed_ips": fixedIPFilter, "security_groups": securityGroupFilter},
		id:      func(p network.Port) uuid.UUID { return p.ID }, view: viewPort, shown: addWhy,
		revision: func(p network.Port) int64 { return p.Revision },
		tags: tagging[network.Port, portChange]{of: func(p network.Port) []string { return p.Tags },
			set: func(c *portChange, tags *[]string) { c.Tags = tags }},
		list: func(ctx context.Context, l store.Listing) ([]network.Port, error) {
			found, err := s.Ports(ctx, l)
			return found, errors.Join(err, carrying(ctx, s, found))
		},
		update: func(ctx context.Context, id uuid.UUID, c portChange, expect *int64) (network.Port, error) {
			after, err := s.UpdatePort(ctx, id, c, expect)
			if err != nil {
				return after, err
			}
			one := []network.Port{after}
			err = carrying(ctx, s, one)
			return one[0], err
		},
		create: s.CreatePorts, remove: s.DeletePort,
		prepare: func(r *http.Request, c *portChange) error {
			if err := mayPlug(r, s, *c); err != nil {
				return err
			}
			if c.SecurityGroups != nil {
				if err := mayJoin(r, s, *c.SecurityGroups); err != nil {
					return err
				}
			}
			return own(r, &c.Project, "create_port")
		},
		may: func(r *http.Request, p network.Port, c *portChange) error {
			if c == nil {
				return nil // who sees a port that is another project's owns its network
			}
			if err := mayChange(r, p.Project, c, "port"); err != nil {
				return err
			}
			if c.MAC != nil && *c.MAC != p.MAC && !caller(r).Admin() {
				return forbidden("update_port:mac_address")
			}
			if c.SecurityGroups != nil {
				if err := mayJoin(r, s, *c.SecurityGroups); err != nil {
					return err
				}
			}
			named := theNetworks(*c, p)
			if named == "" {
				return nil
			}
			n, err := onNetwork(r, s, p.Network)
			if err == nil && !owns(caller(r), n) {
				err = forbidden("update_port:" + named)
			}
			return err
		},
	}
}

// carrying adds to ports the trunks that they are parents of.
func carrying(ctx context.Context, s *store.Store, ports []network.Port) error {
	if len(ports) == 0 {
		return nil
	}
	ids := make([]uuid.UUID, len(ports))
	for i, p := range ports {
		ids[i] = p.ID
	}
	of, err := s.Carrying(ctx, ids)
	for i := range ports {
		ports[i].Carrying = of[ports[i].ID]
	}
	return err
}

// mayPlug refuses a new port on a network that the caller does not see, or one that only the network's owner may make. An
// administrator may do both, so that the network is not read for him before the port's creation does.
func mayPlug(r *http.Request, s *store.Store, c portChange) error {
	if caller(r).Admin() {
		return nil
	}
	n, err := onNetwork(r, s, *c.Network)
	if err != nil {
		return err
	}
	if named := theNetworks(c, network.Port{PortSecurity: true}); named != "" && !owns(caller(r), n) {
		return forbidden("create_port:" + named)
	}
	return nil
}

// owns tells whether what happens on the network is the caller's business.
func owns(who identity.Caller, n network.Network) bool {
	return who.Admin() || n.Project == who.Project
}

// theNetworks names what a request newly says about a port, and only the network's owner may say: that the port is the network's own, for
// which nobody has to report, or that it passes for something else than it was given to be. Others who share the network could be whom
// they like otherwise, its gateway for one.
func theNetworks(c portChange, p network.Port) string {
	address := func(f network.Fixed) bool {
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
	case c.Fixed != nil && slices.ContainsFunc(*c.Fixed, address):
		return "fixed_ips:ip_address"
	case c.PortSecurity != nil && *c.PortSecurity != p.PortSecurity && !*c.PortSecurity:
		return "port_security_enabled"
	case c.AddressPairs != nil && slices.ContainsFunc(*c.AddressPairs, pair):
		return "allowed_address_pairs"
	default:
		return ""
	}
}

var portAttributes = []attribute[portChange]{
	{name: "id", field: "id", read: asUUID, sorts: true},
	{name: "network_id", on: onCreate | required, set: as(func(c *portChange) **uuid.UUID { return &c.Network }, id), field: "network", read: asUUID, sorts: true},
	{name: "project_id", on: onCreate, set: project(func(c *portChange) **string { return &c.Project }), field: "project", sorts: true},
	{name: "tenant_id", on: onCreate, set: project(func(c *portChange) **string { return &c.Project }), field: "project", sorts: true},
	{name: "name", on: anytime, set: as(func(c *portChange) **string { return &c.Name }, text(255)), field: "name", sorts: true},
	{name: "description", on: anytime, set: as(func(c *portChange) **string { return &c.Description }, text(255)), field: "description"},
	{name: "admin_state_up", on: anytime, set: as(func(c *portChange) **bool { return &c.AdminUp }, boolean), field: "admin_up", read: asBool, sorts: true},
	{name: "mac_address", on: anytime, set: as(func(c *portChange) **string { return &c.MAC }, macOrNew), field: "mac", read: asMAC, sorts: true},
	{name: "fixed_ips", on: anytime, set: as(func(c *portChange) **[]network.Fixed { return &c.Fixed }, listOf(fixedIP))},
	{name: "device_id", on: anytime, set: as(func(c *portChange) **string { return &c.DeviceID }, text(255)), field: "device_id", sorts: true},
	{name: "device_owner", on: anytime, set: as(func(c *portChange) **string { return &c.DeviceOwner }, text(255)), field: "device_owner", sorts: true},
	{name: "port_security_enabled", on: anytime, set: as(func(c *portChange) **bool { return &c.PortSecurity }, boolean), field: "port_security", read: asBool},
	{name: "binding:host_id", on: anytime, admin: true, veil: true, set: as(func(c *portChange) **string { return &c.Host }, orEmpty(text(255))), field: "host", sorts: true},
	{name: "binding:vnic_type", on: anytime, set: as(func(c *portChange) **string { return &c.VNIC }, vnicType), field: "vnic"},
	{name: "binding:profile", on: anytime, admin: true, veil: true, set: setProfile},
	{name: "binding:vif_type", veil: true, field: "vif"},
	{name: "binding:vif_details", veil: true},
	{name: "security_groups", on: anytime, set: as(func(c *portChange) **[]uuid.UUID { return &c.SecurityGroups }, orNone(listOf(id)))},
	{name: "allowed_address_pairs", on: anytime, set: as(func(c *portChange) **[]network.AddressPair { return &c.AddressPairs }, orNone(listOf(addressPair)))},
	{name: "extra_dhcp_opts", on: anytime, set: as(func(c *portChange) **[]network.DHCPOption { return &c.DHCPOptions }, orNone(listOf(dhcpOption)))},
	{name: "status", field: "status", sorts: true},
	{name: "revision_number", field: "revision", read: asInt},
	{name: "tags", on: onCreate, set: as(func(c *portChange) **[]string { return &c.Tags }, tagList)},
	{name: "trunk_details"}, {name: "created_at"}, {name: "updated_at"}, {name: why},
}

// macOrNew reads a MAC, or null for one by chance.
func macOrNew(raw json.RawMessage) (string, error) {
	if isNull(raw) {
		return network.NewMAC(), nil
	}
	return mac(raw)
}

// why is the attribute that tells what a port waits for.
const why = "berth:why"

var vnicType = filled(oneOf("normal", "direct", "macvtap", "baremetal", "direct-physical", "virtio-forwarder", "smart-nic", "vdpa",
	"accelerator-direct", "accelerator-direct-physical", "remote-managed"))

func orEmpty(read func(json.RawMessage) (string, error)) func(json.RawMessage) (string, error) {
	return func(raw json.RawMessage) (string, error) {
		if isNull(raw) {
			return "", nil
		}
		return read(raw)
	}
}

func setProfile(c *portChange, raw json.RawMessage) (err error) {
	c.Profile, err = profile(raw)
	return err
}

// fixedIPFilter reads fixed_ips=ip_address=A, fixed_ips=subnet_id=S and fixed_ips=ip_address_substr=T.
func fixedIPFilter(values []string) ([]store.Condition, error) {
	in := map[string][]string{}
	for _, v := range values {
		key, value, _ := strings.Cut(v, "=")
		var err error
		switch key {
		case "ip_address":
			key = "ip"
			if value, err = asIPText(value); value == "" {
				err = errNothing
			}
		case "subnet_id":
			key = "subnet"
			value, err = asUUID(value)
		case "ip_address_substr":
			key = "ip_part"
		default:
			return nil, bad("Invalid filter for fixed_ips: '%s' is none of ip_address, subnet_id and ip_address_substr", clean(key))
		}
		if in[key] == nil {
			in[key] = []string{}
		}
		if err == nil {
			in[key] = append(in[key], value)
		}
	}
	var conditions []store.Condition
	for _, field := range []string{"ip", "subnet", "ip_part"} {
		if values, ok := in[field]; ok {
			conditions = append(conditions, store.Condition{Field: field, In: values})
		}
	}
	return conditions, nil
}

// securityGroupFilter finds the ports that are in one of the groups.
func securityGroupFilter(values []string) ([]store.Condition, error) {
	c := store.Condition{Field: "security_group", In: []string{}}
	for _, v := range values {
		if id, err := asUUID(v); err == nil {
			c.In = append(c.In, id)
		}
	}
	return []store.Condition{c}, nil
}

func viewPort(p network.Port, who identity.Caller) object {
	fixed := make([]object, len(p.Addresses))
	for i, a := range p.Addresses {
		fixed[i] = object{"subnet_id": a.Subnet, "ip_address": a.IP}
	}
	o := object{
		"id": p.ID, "network_id": p.Network, "name": p.Name, "description": p.Description, "project_id": p.Project,
		"tenant_id": p.Project, "admin_state_up": p.AdminUp, "mac_address": p.MAC, "fixed_ips": fixed, "device_id": p.DeviceID,
		"device_owner": p.DeviceOwner, "status": p.Status, "port_security_enabled": p.PortSecurity, "binding:vnic_type": p.VNIC,
		"security_groups": p.SecurityGroups, "allowed_address_pairs": viewPairs(p), "extra_dhcp_opts": viewOptions(p),
	}
	if p.Carrying != nil {
		o["trunk_details"] = object{"trunk_id": p.Carrying.Trunk, "sub_ports": p.Carrying.Subports}
	}
	if who.Admin() {
		o["binding:host_id"], o["binding:profile"], o["binding:vif_type"] = p.Host, p.Profile, p.VIF
		o["binding:vif_details"] = vifDetails(p)
	}
	stamp(o, p.Revision, p.CreatedAt, p.UpdatedAt, p.Tags)
	return o
}

// vifDetails is what whoever plugs something into the port has to know.
func vifDetails(p network.Port) any {
	if p.ByController() {
		return p.Details
	}
	driver := p.Driver()
	switch {
	case driver == "":
		return object{}
	default:
		details := p.VIFDetails()
		if details == nil {
			details = object{"connectivity": "l2", "port_filter": false}
		}
		details["bound_drivers"] = object{"0": driver}
		return details
	}
}

// waiting is one party that a port waits for.
type waiting struct {
	For      string     `json:"for"`
	Since    time.Time  `json:"since"`
	Deadline *time.Time `json:"deadline"`
	Fatal    bool       `json:"fatal"` // past the deadline the port is in ERROR
	Sentence string     `json:"sentence"`
}

// addWhy tells what the port waits for. Only administrators read the names of hosts.
func addWhy(p network.Port, who identity.Caller, o object) {
	s := p.Located().Standing()
	if !who.Admin() {
		s = p.Veiled().Standing()
	}
	list := []waiting{}
	for _, w := range s.Waiting {
		list = append(list, waiting{For: w.Entity, Since: w.Since.UTC(), Deadline: w.Deadline, Fatal: w.Fatal, Sentence: w.Sentence})
	}
	o[why] = object{"sentence": s.Sentence(), "reason": s.Reason, "waiting": list, "ignored_messages": s.Ignored}
}

// ipVersion reads 4 or 6.
func ipVersion(raw json.RawMessage) (int, error) {
	n, err := integer(4, 6)(raw)
	if err == nil && n == 5 {
		return 0, errors.New("'5' is not in [4, 6]")
	}
	return n, err
}
