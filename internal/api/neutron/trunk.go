package neutron

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/networkstore"
)

type trunkChange = network.TrunkChange

func trunks(s *networkstore.Store) resource[network.Trunk, trunkChange] {
	return resource[network.Trunk, trunkChange]{
		singular: "trunk", notFoundType: string(network.TrunkNotFound), attributes: trunkAttributes,
		id: func(t network.Trunk) uuid.UUID { return t.ID }, view: viewTrunk,
		revision: func(t network.Trunk) int64 { return t.Revision },
		tags: tagAccess[network.Trunk, trunkChange]{read: func(t network.Trunk) []string { return t.Tags },
			write: func(c *trunkChange, tags *[]string) { c.Tags = tags }},
		list: s.Trunks, create: s.CreateTrunks, update: s.UpdateTrunk, remove: s.DeleteTrunk,
		prepareCreate: func(r *http.Request, c *trunkChange) error {
			seen := []uuid.UUID{*c.Port}
			if c.Subports != nil {
				seen = append(seen, portIDs(*c.Subports)...)
			}
			if err := authorizeTrunkPorts(r, s, seen); err != nil {
				return err
			}
			return fillProject(r, &c.Project, "create_trunk")
		},
		authorizeChange: func(r *http.Request, t network.Trunk, c *trunkChange) error {
			return authorizeProject(r, t.Project, c, "trunk")
		},
	}
}

// authorizeTrunkPorts returns an error if a port belongs to another project than the caller's and the caller is not an administrator.
func authorizeTrunkPorts(r *http.Request, s *networkstore.Store, ids []uuid.UUID) error {
	for _, id := range ids {
		p, _, err := ports(s).find(r, id.String())
		if err != nil {
			return err
		}
		if requester := caller(r); !requester.Admin() && p.Project != requester.Project {
			return forbidden("create_trunk")
		}
	}
	return nil
}

func portIDs(subports []network.Subport) []uuid.UUID {
	ids := make([]uuid.UUID, len(subports))
	for i, s := range subports {
		ids[i] = s.Port
	}
	return ids
}

var trunkAttributes = []attribute.Definition[network.Trunk, trunkChange]{
	{Name: "id", FilterField: "id", FilterValue: attribute.FilterUUID, Sortable: true},
	{Name: "port_id", SettableOn: attribute.OnCreate | attribute.Required, Set: attribute.Into(func(c *trunkChange) **uuid.UUID { return &c.Port }, attribute.UUID), FilterField: "port", FilterValue: attribute.FilterUUID, Sortable: true},
	{Name: "project_id", SettableOn: attribute.OnCreate, Set: attribute.ProjectInto(func(c *trunkChange) **string { return &c.Project }), FilterField: "project", Sortable: true},
	{Name: "tenant_id", SettableOn: attribute.OnCreate, Set: attribute.ProjectInto(func(c *trunkChange) **string { return &c.Project }), FilterField: "project", Sortable: true},
	{Name: "name", SettableOn: attribute.OnWrite, Set: attribute.Into(func(c *trunkChange) **string { return &c.Name }, attribute.Text(255)), FilterField: "name", Sortable: true},
	{Name: "description", SettableOn: attribute.OnWrite, Set: attribute.Into(func(c *trunkChange) **string { return &c.Description }, attribute.Text(255)), FilterField: "description"},
	{Name: "admin_state_up", SettableOn: attribute.OnWrite, Set: attribute.Into(func(c *trunkChange) **bool { return &c.AdminUp }, attribute.Bool), FilterField: "admin_up", FilterValue: attribute.FilterBool, Sortable: true},
	{Name: "sub_ports", SettableOn: attribute.OnCreate, Set: attribute.Into(func(c *trunkChange) **[]network.Subport { return &c.Subports }, attribute.List(subport))},
	{Name: "revision_number", FilterField: "revision", FilterValue: attribute.FilterInt},
	{Name: "status", FilterField: "status"}, {Name: "tags"}, {Name: "created_at"}, {Name: "updated_at"},
}

// maxVLAN is the largest VLAN ID (IEEE 802.1Q).
const maxVLAN = 4094

// subport reads the port of a subport, and the subport's segmentation type and ID on the trunk.
func subport(raw json.RawMessage) (s network.Subport, err error) {
	m, err := attribute.Dict(raw, "port_id", "segmentation_type", "segmentation_id")
	if err != nil {
		return s, err
	}
	v, ok := m["port_id"]
	if !ok {
		return s, fmt.Errorf("a subport has a port_id")
	}
	if s.Port, err = attribute.UUID(v); err != nil {
		return s, err
	}
	s.Type = network.VLAN
	if v, ok := m["segmentation_type"]; ok {
		if s.Type, err = attribute.NotEmpty(attribute.OneOf(network.VLAN, network.InheritSegmentation))(v); err != nil {
			return s, err
		}
	}
	if v, ok = m["segmentation_id"]; s.Type == network.InheritSegmentation {
		return s, nil
	}
	if !ok {
		return s, fmt.Errorf("a subport has a segmentation_id")
	}
	s.Segment, err = attribute.Int(1, maxVLAN)(v)
	return s, err
}

// removedSubport reads the ID of the port that is removed from the trunk. If the client also sends the subport's segmentation,
// removedSubport ignores the segmentation.
func removedSubport(raw json.RawMessage) (uuid.UUID, error) {
	m, err := attribute.Dict(raw, "port_id", "segmentation_type", "segmentation_id")
	if err != nil {
		return uuid.Nil, err
	}
	if _, ok := m["port_id"]; !ok {
		return uuid.Nil, fmt.Errorf("a subport has a port_id")
	}
	return attribute.UUID(m["port_id"])
}

func viewTrunk(t network.Trunk, _ identity.Caller) object {
	o := object{"id": t.ID, "name": t.Name, "description": t.Description, "project_id": t.Project, "tenant_id": t.Project,
		"admin_state_up": t.AdminUp, "port_id": t.Port, "status": t.Status, "sub_ports": t.Subports}
	addStandardAttributes(o, t.Revision, t.CreatedAt, t.UpdatedAt, t.Tags)
	return o
}

// subports handles the subports of a trunk.
type subports struct{ store *networkstore.Store }

func (s subports) routes() []osapi.Route {
	const memberPath = "/v2.0/trunks/{id}/"
	return []osapi.Route{
		{Method: http.MethodGet, Path: memberPath + "get_subports", Handle: s.list},
		{Method: http.MethodPut, Path: memberPath + "add_subports", Handle: s.add},
		{Method: http.MethodPut, Path: memberPath + "remove_subports", Handle: s.remove},
	}
}

func (s subports) list(r *http.Request) (int, any, error) {
	t, _, err := trunks(s.store).find(r, pathValue(r, "id"))
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
	if err := authorizeTrunkPorts(r, s.store, portIDs(list)); err != nil {
		return 0, nil, err
	}
	return trunkResponse(r)(s.store.AddSubports(r.Context(), id, list))
}

func (s subports) remove(r *http.Request) (int, any, error) {
	list, id, err := changeSubports(s, r, removedSubport)
	if err != nil {
		return 0, nil, err
	}
	return trunkResponse(r)(s.store.RemoveSubports(r.Context(), id, list))
}

// changeSubports reads {"sub_ports": […]} and finds the trunk. changeSubports returns an error if the caller may not change the trunk.
func changeSubports[T any](s subports, r *http.Request, read func(json.RawMessage) (T, error)) ([]T, uuid.UUID, error) {
	envelope, err := readEnvelope(r)
	if err != nil {
		return nil, uuid.Nil, err
	}
	raw, ok := envelope["sub_ports"]
	if !ok || len(envelope) != 1 {
		return nil, uuid.Nil, badRequest("Unable to find 'sub_ports' in request body")
	}
	list, err := attribute.List(read)(raw)
	if err != nil {
		return nil, uuid.Nil, invalid("sub_ports", err)
	}
	res := trunks(s.store)
	t, id, err := res.find(r, pathValue(r, "id"))
	if err == nil {
		err = res.authorizeChange(r, t, &trunkChange{})
	}
	return list, id, err
}

// trunkResponse answers with the trunk, without the envelope {"trunk": …}.
func trunkResponse(r *http.Request) func(network.Trunk, error) (int, any, error) {
	return func(t network.Trunk, err error) (int, any, error) {
		if err != nil {
			return 0, nil, err
		}
		return http.StatusOK, viewTrunk(t, caller(r)), nil
	}
}
