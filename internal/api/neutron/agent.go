package neutron

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/identity/policy"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/db"
	"berth/internal/store/portstore"
)

// agents handles agents and the networks that DHCP agents host. By default, other callers than administrators
// and services see no agents.
type agents struct{ store *portstore.Store }

type agentChange = network.AgentChange

func (a agents) resource() resource[network.Agent, agentChange] {
	return resource[network.Agent, agentChange]{
		singular:     "agent",
		notFoundType: string(network.AgentNotFound),
		attributes:   agentAttributes,
		id:           func(n network.Agent) uuid.UUID { return n.ID },
		view:         viewAgent,
		list: func(ctx context.Context, l db.Listing) ([]network.Agent, error) {
			return a.store.Agents(ctx, l)
		},
		update: func(ctx context.Context, id uuid.UUID, c agentChange, _ *int64) (network.Agent, error) {
			return a.store.UpdateAgent(ctx, id, c)
		},
		remove: func(ctx context.Context, id uuid.UUID, _ *int64) error { return a.store.DeleteAgent(ctx, id) },
		target: targetRule[network.Agent]{of: func(n network.Agent) policy.Target {
			return policy.Target{"host": n.Host, "agent_type": n.Type}
		}},
	}
}

var agentAttributes = []attribute.Definition[network.Agent, agentChange]{
	{
		Name:        "id",
		FilterField: "id",
		FilterValue: attribute.FilterUUID,
		Sortable:    true,
	},
	{Name: "agent_type", FilterField: "type", Sortable: true},
	{Name: "host", FilterField: "host", Sortable: true},
	{Name: "binary", FilterField: "binary", Sortable: true},
	{Name: "topic", FilterField: "topic", Sortable: true},
	{
		Name:        "admin_state_up",
		SettableOn:  attribute.OnUpdate,
		Set:         attribute.Into(func(c *agentChange) **bool { return &c.AdminUp }, attribute.Bool),
		FilterField: "admin_up",
		FilterValue: attribute.FilterBool,
		Sortable:    true,
	},
	{
		Name:       "description",
		SettableOn: attribute.OnUpdate,
		Set: attribute.Into(
			func(c *agentChange) **string { return &c.Description },
			attribute.NullIsEmpty(attribute.Text(255)),
		),
		FilterField: "description",
	},
	{Name: "availability_zone", FilterField: "zone"},
	{Name: "alive", FilterField: "alive", FilterValue: attribute.FilterBool},
	{Name: "configurations"}, {Name: "resources_synced"},
	{Name: "created_at"}, {Name: "started_at"}, {Name: "heartbeat_timestamp"},
	{Name: heldAttribute}, {Name: awaitedAttribute},
}

// Attributes of an agent that berth has in addition to Neutron's: berth:held is the number of networks or
// ports that the agent serves; berth:awaited is the number of ports that wait for a report of the agent.
const (
	heldAttribute    = "berth:held"
	awaitedAttribute = "berth:awaited"
)

func viewAgent(a network.Agent, _ *access) object {
	moment := func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000000") }
	return object{
		"id":                  a.ID,
		"agent_type":          a.Type,
		"host":                a.Host,
		"binary":              a.Binary,
		"topic":               a.Topic,
		"description":         nullIfEmpty(a.Description),
		"admin_state_up":      a.AdminUp,
		"alive":               a.Alive,
		"configurations":      a.Configurations,
		"availability_zone":   nullIfEmpty(a.Zone),
		"resources_synced":    nil,
		"created_at":          moment(a.CreatedAt),
		"started_at":          moment(a.StartedAt),
		"heartbeat_timestamp": moment(a.HeartbeatAt),
		heldAttribute:         a.ServedCount,
		awaitedAttribute:      a.AwaitingPorts,
	}
}

func (a agents) routes() []osapi.Route {
	res := a.resource()
	return []osapi.Route{
		{Method: http.MethodGet, Path: "/v2.0/agents/{id}/dhcp-networks", Handle: a.listNetworks},
		{Method: http.MethodPost, Path: "/v2.0/agents/{id}/dhcp-networks", Handle: a.scheduleNetwork},
		{
			Method: http.MethodDelete,
			Path:   "/v2.0/agents/{id}/dhcp-networks/{network}",
			Handle: a.unscheduleNetwork,
		},
		{Method: http.MethodGet, Path: "/v2.0/networks/{id}/dhcp-agents", Handle: a.listHostingAgents},
		{Method: http.MethodGet, Path: res.path(), Handle: res.serveList},
		{Method: http.MethodGet, Path: res.path() + "/{id}", Handle: res.serveShow},
		{Method: http.MethodPut, Path: res.path() + "/{id}", Handle: res.serveUpdate},
		{Method: http.MethodDelete, Path: res.path() + "/{id}", Handle: res.serveDelete},
	}
}

// find finds the agent in the path, and refuses a caller whom the rule does not allow the request.
func (a agents) find(r *http.Request, rule string) (uuid.UUID, error) {
	n, id, err := a.resource().find(r, pathValue(r, "id"))
	if err == nil {
		err = a.resource().require(r, n, rule)
	}
	return id, err
}

func (a agents) listNetworks(r *http.Request) (int, any, error) {
	id, err := a.find(r, "get_dhcp-networks")
	if err != nil {
		return 0, nil, err
	}
	found, err := a.store.HostedNetworks(r.Context(), id)
	if err != nil {
		return 0, nil, err
	}
	names, list := requestedFields(r), make([]object, len(found))
	for i, n := range found {
		list[i] = attribute.Select(viewNetwork(n, accessOf(r)), names)
	}
	return http.StatusOK, object{"networks": list}, nil
}

func (a agents) scheduleNetwork(r *http.Request) (int, any, error) {
	envelope, err := readEnvelope(r)
	if err != nil {
		return 0, nil, err
	}
	raw, ok := envelope["network_id"]
	if !ok || len(envelope) != 1 {
		return 0, nil, badRequest("The body has to be {\"network_id\": …}")
	}
	n, err := attribute.UUID(raw)
	if err != nil {
		return 0, nil, invalid("network_id", err)
	}
	agent, err := a.find(r, "create_dhcp-network")
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, []byte("null"), a.store.ScheduleNetwork(r.Context(), agent, n)
}

func (a agents) unscheduleNetwork(r *http.Request) (int, any, error) {
	agent, err := a.find(r, "delete_dhcp-network")
	if err != nil {
		return 0, nil, err
	}
	n, ok := osapi.UUID(strings.ToLower(pathValue(r, "network")))
	if !ok {
		return 0, nil, osapi.Fault(http.StatusNotFound, string(network.NetworkNotFound),
			"Network %s could not be found.", excerpt(pathValue(r, "network")))
	}
	return http.StatusNoContent, nil, a.store.UnscheduleNetwork(r.Context(), agent, n)
}

func (a agents) listHostingAgents(r *http.Request) (int, any, error) {
	res := networks(a.store)
	found, id, err := res.find(r, pathValue(r, "id"))
	if err == nil {
		err = res.require(r, found, "get_dhcp-agents")
	}
	if err != nil {
		return 0, nil, err
	}
	names := requestedFields(r)
	hosting, err := a.store.Agents(r.Context(),
		db.Listing{Where: []db.Condition{{Field: "network", In: []string{id.String()}}}, Fields: names})
	if err != nil {
		return 0, nil, err
	}
	list := make([]object, len(hosting))
	for i, n := range hosting {
		list[i] = attribute.Select(viewAgent(n, accessOf(r)), names)
	}
	return http.StatusOK, object{"agents": list}, nil
}
