package neutron

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/store"
)

type trunkChange = network.TrunkChange

func trunks(s *store.Store) resource[network.Trunk, trunkChange] {
	return resource[network.Trunk, trunkChange]{
		one: "trunk", missing: string(network.TrunkNotFound), attributes: trunkAttributes,
		id: func(t network.Trunk) uuid.UUID { return t.ID }, view: viewTrunk,
		revision: func(t network.Trunk) int64 { return t.Revision },
		tags: tagging[network.Trunk, trunkChange]{of: func(t network.Trunk) []string { return t.Tags },
			set: func(c *trunkChange, tags *[]string) { c.Tags = tags }},
		list: s.Trunks, create: s.CreateTrunks, update: s.UpdateTrunk, remove: s.DeleteTrunk,
		prepare: func(r *http.Request, c *trunkChange) error {
			seen := []uuid.UUID{*c.Port}
			if c.Subports != nil {
				seen = append(seen, portsOf(*c.Subports)...)
			}
			if err := mayUse(r, s, seen); err != nil {
				return err
			}
			return own(r, &c.Project, "create_trunk")
		},
		may: func(r *http.Request, t network.Trunk, c *trunkChange) error {
			return mayChange(r, t.Project, c, "trunk")
		},
	}
}

// mayUse tells whether the caller may put these ports on a trunk: they are its own.
func mayUse(r *http.Request, s *store.Store, ids []uuid.UUID) error {
	for _, id := range ids {
		p, _, err := ports(s).find(r, id.String())
		if err != nil {
			return err
		}
		if who := caller(r); !who.Admin() && p.Project != who.Project {
			return forbidden("create_trunk")
		}
	}
	return nil
}

func portsOf(subports []network.Subport) []uuid.UUID {
	ids := make([]uuid.UUID, len(subports))
	for i, s := range subports {
		ids[i] = s.Port
	}
	return ids
}

var trunkAttributes = []attribute[trunkChange]{
	{name: "id", field: "id", read: asUUID, sorts: true},
	{name: "port_id", on: onCreate | required, set: as(func(c *trunkChange) **uuid.UUID { return &c.Port }, id), field: "port", read: asUUID, sorts: true},
	{name: "project_id", on: onCreate, set: project(func(c *trunkChange) **string { return &c.Project }), field: "project", sorts: true},
	{name: "tenant_id", on: onCreate, set: project(func(c *trunkChange) **string { return &c.Project }), field: "project", sorts: true},
	{name: "name", on: anytime, set: as(func(c *trunkChange) **string { return &c.Name }, text(255)), field: "name", sorts: true},
	{name: "description", on: anytime, set: as(func(c *trunkChange) **string { return &c.Description }, text(255)), field: "description"},
	{name: "admin_state_up", on: anytime, set: as(func(c *trunkChange) **bool { return &c.AdminUp }, boolean), field: "admin_up", read: asBool, sorts: true},
	{name: "sub_ports", on: onCreate, set: as(func(c *trunkChange) **[]network.Subport { return &c.Subports }, listOf(subport))},
	{name: "revision_number", field: "revision", read: asInt},
	{name: "status", field: "status"}, {name: "tags"}, {name: "created_at"}, {name: "updated_at"},
}

// maxVLAN is the last VLAN ID that frames can carry.
const maxVLAN = 4094

// subport reads a port and by what it is told apart on a trunk.
func subport(raw json.RawMessage) (s network.Subport, err error) {
	m, err := dict(raw, "port_id", "segmentation_type", "segmentation_id")
	if err != nil {
		return s, err
	}
	v, ok := m["port_id"]
	if !ok {
		return s, fmt.Errorf("a subport has a port_id")
	}
	if s.Port, err = id(v); err != nil {
		return s, err
	}
	s.Type = network.VLAN
	if v, ok := m["segmentation_type"]; ok {
		if s.Type, err = filled(oneOf(network.VLAN, network.Inherit))(v); err != nil {
			return s, err
		}
	}
	if v, ok = m["segmentation_id"]; s.Type == network.Inherit {
		return s, nil
	}
	if !ok {
		return s, fmt.Errorf("a subport has a segmentation_id")
	}
	s.Segment, err = integer(1, maxVLAN)(v)
	return s, err
}

// leaving reads a subport that leaves its trunk; what else a client says about it, it has kept from before.
func leaving(raw json.RawMessage) (uuid.UUID, error) {
	m, err := dict(raw, "port_id", "segmentation_type", "segmentation_id")
	if err != nil {
		return uuid.Nil, err
	}
	if _, ok := m["port_id"]; !ok {
		return uuid.Nil, fmt.Errorf("a subport has a port_id")
	}
	return id(m["port_id"])
}

func viewTrunk(t network.Trunk, _ identity.Caller) object {
	o := object{"id": t.ID, "name": t.Name, "description": t.Description, "project_id": t.Project, "tenant_id": t.Project,
		"admin_state_up": t.AdminUp, "port_id": t.Port, "status": t.Status, "sub_ports": t.Subports}
	stamp(o, t.Revision, t.CreatedAt, t.UpdatedAt, t.Tags)
	return o
}

// subports are the routes of what is on a trunk.
type subports struct{ store *store.Store }

func (s subports) routes() []osapi.Route {
	const one = "/v2.0/trunks/{id}/"
	return []osapi.Route{
		{Method: http.MethodGet, Path: one + "get_subports", Handle: s.list},
		{Method: http.MethodPut, Path: one + "add_subports", Handle: s.add},
		{Method: http.MethodPut, Path: one + "remove_subports", Handle: s.remove},
	}
}

func (s subports) list(r *http.Request) (int, any, error) {
	t, _, err := trunks(s.store).find(r, value(r, "id"))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, object{"sub_ports": t.Subports}, nil
}

func (s subports) add(r *http.Request) (int, any, error) {
	list, id, err := changeSubports(s, r, subport)
	if err != nil {
		return 0, nil, err
	}
	if err := mayUse(r, s.store, portsOf(list)); err != nil {
		return 0, nil, err
	}
	return shownTrunk(r)(s.store.AddSubports(r.Context(), id, list))
}

func (s subports) remove(r *http.Request) (int, any, error) {
	list, id, err := changeSubports(s, r, leaving)
	if err != nil {
		return 0, nil, err
	}
	return shownTrunk(r)(s.store.RemoveSubports(r.Context(), id, list))
}

// changeSubports reads {"sub_ports": […]} and finds the trunk, which the caller may change.
func changeSubports[T any](s subports, r *http.Request, read func(json.RawMessage) (T, error)) ([]T, uuid.UUID, error) {
	envelope, err := readEnvelope(r)
	if err != nil {
		return nil, uuid.Nil, err
	}
	raw, ok := envelope["sub_ports"]
	if !ok || len(envelope) != 1 {
		return nil, uuid.Nil, bad("Unable to find 'sub_ports' in request body")
	}
	list, err := listOf(read)(raw)
	if err != nil {
		return nil, uuid.Nil, invalid("sub_ports", err)
	}
	res := trunks(s.store)
	t, id, err := res.find(r, value(r, "id"))
	if err == nil {
		err = res.may(r, t, &trunkChange{})
	}
	return list, id, err
}

// shownTrunk answers with the trunk, without an envelope.
func shownTrunk(r *http.Request) func(network.Trunk, error) (int, any, error) {
	return func(t network.Trunk, err error) (int, any, error) {
		if err != nil {
			return 0, nil, err
		}
		return http.StatusOK, viewTrunk(t, caller(r)), nil
	}
}
