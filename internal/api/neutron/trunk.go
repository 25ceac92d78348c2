package neutron

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/identity/policy"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/portstore"
)

type trunkChange = network.TrunkChange

func trunks(s *portstore.Store) resource[network.Trunk, trunkChange] {
	return resource[network.Trunk, trunkChange]{
		singular:      "trunk",
		notFoundType:  string(network.TrunkNotFound),
		attributes:    trunkAttributes,
		quota:         s.Quota,
		project:       func(c trunkChange) *string { return c.Project },
		id:            func(t network.Trunk) uuid.UUID { return t.ID },
		view:          viewTrunk,
		addSingleOnly: addTrunkWhy,
		revision:      func(t network.Trunk) int64 { return t.Revision },
		tags: tagAccess[network.Trunk, trunkChange]{read: func(t network.Trunk) []string { return t.Tags },
			write: func(c *trunkChange, tags *[]string) { c.Tags = tags }},
		list:   s.Trunks,
		ids:    s.TrunkIDs,
		create: s.CreateTrunks,
		update: s.UpdateTrunk,
		remove: s.DeleteTrunk,
		target: targetRule[network.Trunk]{of: func(t network.Trunk) policy.Target { return owned(t.Project) },
			outside: func(project string) policy.Target { return outside(project) }},
		prepareCreate: func(r *http.Request, c *trunkChange, rules []string) error {
			seen := []uuid.UUID{*c.Port}
			if c.Subports != nil {
				seen = append(seen, portIDs(*c.Subports)...)
			}
			if err := authorizeTrunkPorts(r, s, seen, "create_trunk"); err != nil {
				return err
			}
			return createOwned(r, &c.Project, rules)
		},
	}
}

// authorizeTrunkPorts returns an error unless the rule allows the caller to use the ports in a trunk, as if
// the project of each port were the project of the trunk.
func authorizeTrunkPorts(r *http.Request, s *portstore.Store, ids []uuid.UUID, rule string) error {
	found, err := ports(s).findAll(r, ids)
	if err != nil {
		return err
	}
	for _, p := range found {
		if err := accessOf(r).require([]string{rule}, owned(p.Project), nil); err != nil {
			return err
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
	{
		Name:        "id",
		FilterField: "id",
		FilterValue: attribute.FilterUUID,
		Sortable:    true,
	},
	{
		Name:        "port_id",
		SettableOn:  attribute.OnCreate | attribute.Required,
		Set:         attribute.Into(func(c *trunkChange) **uuid.UUID { return &c.Port }, attribute.UUID),
		FilterField: "port",
		FilterValue: attribute.FilterUUID,
		Sortable:    true,
	},
	{
		Name:        "project_id",
		SettableOn:  attribute.OnCreate,
		Set:         attribute.ProjectInto(func(c *trunkChange) **string { return &c.Project }),
		FilterField: "project",
		Sortable:    true,
	},
	{
		Name:        "tenant_id",
		SettableOn:  attribute.OnCreate,
		Set:         attribute.ProjectInto(func(c *trunkChange) **string { return &c.Project }),
		FilterField: "project",
		Sortable:    true,
	},
	{
		Name:        "name",
		SettableOn:  attribute.OnWrite,
		Set:         attribute.Into(func(c *trunkChange) **string { return &c.Name }, attribute.Text(255)),
		FilterField: "name",
		Sortable:    true,
	},
	{
		Name:       "description",
		SettableOn: attribute.OnWrite,
		Set: attribute.Into(
			func(c *trunkChange) **string { return &c.Description },
			attribute.Text(255),
		),
		FilterField: "description",
	},
	{
		Name:        "admin_state_up",
		SettableOn:  attribute.OnWrite,
		Set:         attribute.Into(func(c *trunkChange) **bool { return &c.AdminUp }, attribute.Bool),
		FilterField: "admin_up",
		FilterValue: attribute.FilterBool,
		Sortable:    true,
	},
	{
		Name:       "sub_ports",
		SettableOn: attribute.OnCreate,
		Set: attribute.Into(
			func(c *trunkChange) **[]network.Subport { return &c.Subports },
			newSubports,
		),
	},
	{Name: "revision_number", FilterField: "revision", FilterValue: attribute.FilterInt},
	{Name: "status", FilterField: "status"}, {Name: "tags"}, {Name: "created_at"}, {Name: "updated_at"},
}

// subports reads a list of subports, at most one for each VLAN. subports returns an error if two subports of
// the list have the same port or the same segmentation.
func subports(raw json.RawMessage) ([]network.Subport, error) {
	type segmentation struct {
		kind string
		id   int
	}
	list, err := attribute.ListUpTo(network.MaxVLAN, subport)(raw)
	ports, segments := map[uuid.UUID]bool{}, map[segmentation]bool{}
	for _, s := range list {
		segment := segmentation{s.Type, s.Segment}
		switch {
		case ports[s.Port]:
			return nil, attribute.Refusal("Non unique UUID for subport: '%s'", s.Port)
		case s.Segment != 0 && segments[segment]:
			return nil, attribute.Refusal("Segmentation ID '%d' for '%s' is not unique", s.Segment, s.Port)
		}
		ports[s.Port], segments[segment] = true, true
	}
	return list, err
}

// subport reads the port of a subport, and the subport's segmentation type and ID on the trunk. If the
// request names only the port, the segmentation type is empty.
func subport(raw json.RawMessage) (s network.Subport, err error) {
	m, err := attribute.Dict(raw, "port_id", "segmentation_type", "segmentation_id")
	if err != nil {
		return s, err
	}
	if _, ok := m["port_id"]; !ok {
		return s, attribute.Refusal("A valid port UUID must be specified")
	}
	if s.Port, err = attribute.UUID(m["port_id"]); err != nil {
		return s, attribute.Refusal("Invalid UUID for subport: '%s'", attribute.Excerpt(m["port_id"]))
	}
	if len(m) == 1 {
		return s, nil
	}
	if s.Type, err = attribute.NullIsEmpty(attribute.Text(32))(m["segmentation_type"]); s.Type == network.InheritSegmentation {
		return s, nil
	}
	if err != nil || s.Type == "" || m["segmentation_id"] == nil || attribute.IsNull(m["segmentation_id"]) {
		return s, attribute.Refusal(missingSegmentation, attribute.Excerpt(raw))
	}
	if s.Segment, err = attribute.Int(math.MinInt, math.MaxInt)(m["segmentation_id"]); err != nil {
		return s, invalidInput(
			"Invalid subport details: segmentation_id '%s' is not an integer",
			attribute.Excerpt(m["segmentation_id"]),
		)
	}
	if s.Type != network.VLAN {
		return s, invalidInput("Unknown segmentation_type '%s'", s.Type)
	}
	if s.Segment < 1 || s.Segment > network.MaxVLAN {
		return s, invalidInput("Segmentation ID '%d' is not in range", s.Segment)
	}
	return s, nil
}

const missingSegmentation = "Invalid subport details '%s': missing segmentation information. Must specify both segmentation_id and segmentation_type"

// newSubports reads the subports that a request adds to a trunk. Each new subport needs a segmentation type
// and ID.
func newSubports(raw json.RawMessage) ([]network.Subport, error) {
	list, err := subports(raw)
	for _, s := range list {
		if err == nil && s.Type == "" {
			err = invalidInput(missingSegmentation, s.Port)
		}
	}
	return list, err
}

// invalidInput returns the error that Neutron returns if a plugin refuses a value that the validation of the
// attributes has accepted.
func invalidInput(format string, args ...any) error {
	return network.Faultf(network.InvalidInput, "Invalid input for operation: "+format+".", args...)
}

func viewTrunk(t network.Trunk, _ *access) object {
	o := object{
		"id":             t.ID,
		"name":           t.Name,
		"description":    t.Description,
		"project_id":     t.Project,
		"tenant_id":      t.Project,
		"admin_state_up": t.AdminUp,
		"port_id":        t.Port,
		"status":         t.Status,
		"sub_ports":      t.Subports,
	}
	addStandardAttributes(o, t.Revision, t.CreatedAt, t.UpdatedAt, t.Tags)
	return o
}

// addTrunkWhy adds berth:why, which says which ports and entities keep the trunk from becoming ACTIVE. For a
// caller who does not see the hosts of ports, addTrunkWhy leaves out the names of hosts.
func addTrunkWhy(t network.Trunk, requester *access, o object) {
	o[attribute.Why] = viewWhy(withVisibleTrunkHosts(t, requester).StatusViewAt(time.Now()))
}

// withVisibleTrunkHosts returns the trunk without the names of hosts, unless the requester sees the hosts of
// ports.
func withVisibleTrunkHosts(t network.Trunk, requester *access) network.Trunk {
	if !requester.visible(getPortHost, func() policy.Target { return owned(t.Project) }) {
		return t.Redacted()
	}
	return t
}

// trunkSubports handles the subports of a trunk.
type trunkSubports struct{ store *portstore.Store }

func (s trunkSubports) routes() []osapi.Route {
	const memberPath = "/v2.0/trunks/{id}/"
	return []osapi.Route{
		{Method: http.MethodGet, Path: memberPath + "get_subports", Handle: s.list},
		{Method: http.MethodPut, Path: memberPath + "add_subports", Handle: s.add},
		{Method: http.MethodPut, Path: memberPath + "remove_subports", Handle: s.remove},
	}
}

func (s trunkSubports) list(r *http.Request) (int, any, error) {
	res := trunks(s.store)
	t, _, err := res.find(r, pathValue(r, "id"))
	if err == nil {
		err = res.require(r, t, "get_subports")
	}
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, object{"sub_ports": t.Subports}, nil
}

func (s trunkSubports) add(r *http.Request) (int, any, error) {
	list, id, err := s.decode(r, newSubports, addSubportsRule)
	if err != nil {
		return 0, nil, err
	}
	if err := authorizeTrunkPorts(r, s.store, portIDs(list), addSubportsRule); err != nil {
		return 0, nil, err
	}
	return trunkResponse(r)(s.store.AddSubports(r.Context(), id, list))
}

func (s trunkSubports) remove(r *http.Request) (int, any, error) {
	list, id, err := s.decode(r, subports, dropSubportsRule)
	if err != nil {
		return 0, nil, err
	}
	return trunkResponse(r)(s.store.RemoveSubports(r.Context(), id, portIDs(list)))
}

// decode reads {"sub_ports": […]} and finds the trunk. decode returns an error if the rule does not allow the
// caller to change the trunk.
func (s trunkSubports) decode(
	r *http.Request,
	read func(json.RawMessage) ([]network.Subport, error),
	rule string,
) ([]network.Subport, uuid.UUID, error) {
	envelope, err := readEnvelope(r)
	if err != nil {
		return nil, uuid.Nil, err
	}
	raw, ok := envelope["sub_ports"]
	if !ok || len(envelope) != 1 {
		return nil, uuid.Nil, badRequest("Unable to find 'sub_ports' in request body")
	}
	list, err := read(raw)
	var fault *network.Fault
	var tooLong *attribute.LengthError
	switch {
	case errors.As(err, &tooLong):
		return nil, uuid.Nil, invalid("sub_ports", err)
	case errors.As(err, &fault):
		return nil, uuid.Nil, err
	case err != nil:
		return nil, uuid.Nil, invalidInput("%s", err)
	}
	res := trunks(s.store)
	t, id, err := res.find(r, pathValue(r, "id"))
	if err == nil {
		err = res.require(r, t, rule)
	}
	return list, id, err
}

// trunkResponse answers with the trunk, without the envelope {"trunk": …}.
func trunkResponse(r *http.Request) func(network.Trunk, error) (int, any, error) {
	return func(t network.Trunk, err error) (int, any, error) {
		if err != nil {
			return 0, nil, err
		}
		return http.StatusOK, viewTrunk(t, accessOf(r)), nil
	}
}
