package neutron

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/store"
)

// agents are the routes of agents and of what they host. All are for administrators.
type agents struct{ store *store.Store }

type agentChange = network.AgentChange

func (a agents) resource() resource[network.Agent, agentChange] {
	return resource[network.Agent, agentChange]{
		one: "agent", missing: string(network.AgentNotFound), attributes: agentAttributes,
		id: func(n network.Agent) uuid.UUID { return n.ID }, view: viewAgent, list: a.store.Agents,
		update: func(ctx context.Context, id uuid.UUID, c agentChange, _ *int64) (network.Agent, error) {
			return a.store.UpdateAgent(ctx, id, c)
		},
		remove: func(ctx context.Context, id uuid.UUID, _ *int64) error { return a.store.DeleteAgent(ctx, id) },
		may:    func(*http.Request, network.Agent, *agentChange) error { return nil },
	}
}

var agentAttributes = []attribute[agentChange]{
	{name: "id", field: "id", read: asUUID, sorts: true},
	{name: "agent_type", field: "type", sorts: true},
	{name: "host", field: "host", sorts: true},
	{name: "binary", field: "binary", sorts: true},
	{name: "topic", field: "topic", sorts: true},
	{name: "admin_state_up", on: onUpdate, set: as(func(c *agentChange) **bool { return &c.AdminUp }, boolean), field: "admin_up", read: asBool, sorts: true},
	{name: "description", on: onUpdate, set: as(func(c *agentChange) **string { return &c.Description }, orEmpty(text(255))), field: "description"},
	{name: "alive", field: "alive", read: asBool},
	{name: "configurations"}, {name: "availability_zone"}, {name: "resources_synced"},
	{name: "created_at"}, {name: "started_at"}, {name: "heartbeat_timestamp"},
	{name: held}, {name: awaited},
}

// Attributes that say what an agent has in hand: its networks or ports, and how many ports wait for its word.
const (
	held    = "berth:held"
	awaited = "berth:awaited"
)

func viewAgent(a network.Agent, _ identity.Caller) object {
	moment := func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000000") }
	return object{
		"id": a.ID, "agent_type": a.Type, "host": a.Host, "binary": a.Binary, "topic": a.Topic, "description": orNull(a.Description),
		"admin_state_up": a.AdminUp, "alive": a.Alive, "configurations": a.Configurations, "availability_zone": nil,
		"resources_synced": nil, "created_at": moment(a.CreatedAt), "started_at": moment(a.StartedAt),
		"heartbeat_timestamp": moment(a.HeartbeatAt), held: a.Held, awaited: a.Awaited,
	}
}

func (a agents) routes() []osapi.Route {
	res := a.resource()
	routes := []osapi.Route{
		{Method: http.MethodGet, Path: "/v2.0/agents", Handle: res.serveList},
		{Method: http.MethodGet, Path: "/v2.0/agents/{id}", Handle: res.serveShow},
		{Method: http.MethodPut, Path: "/v2.0/agents/{id}", Handle: res.serveUpdate},
		{Method: http.MethodDelete, Path: "/v2.0/agents/{id}", Handle: res.serveDelete},
		{Method: http.MethodGet, Path: "/v2.0/agents/{id}/dhcp-networks", Handle: a.hosted},
		{Method: http.MethodPost, Path: "/v2.0/agents/{id}/dhcp-networks", Handle: a.host},
		{Method: http.MethodDelete, Path: "/v2.0/agents/{id}/dhcp-networks/{network}", Handle: a.release},
		{Method: http.MethodGet, Path: "/v2.0/networks/{id}/dhcp-agents", Handle: a.hosting},
	}
	for i, r := range routes {
		routes[i].Handle = func(req *http.Request) (int, any, error) {
			if !caller(req).Admin() {
				return 0, nil, forbidden("get_agent")
			}
			return r.Handle(req)
		}
	}
	return routes
}

func (a agents) hosted(r *http.Request) (int, any, error) {
	_, id, err := a.resource().find(r, value(r, "id"))
	if err != nil {
		return 0, nil, err
	}
	found, err := a.store.HostedNetworks(r.Context(), id)
	if err != nil {
		return 0, nil, err
	}
	names, list := chosen(r), make([]object, len(found))
	for i, n := range found {
		list[i] = fields(names, viewNetwork(n, caller(r)))
	}
	return http.StatusOK, object{"networks": list}, nil
}

func (a agents) host(r *http.Request) (int, any, error) {
	envelope, err := readEnvelope(r)
	if err != nil {
		return 0, nil, err
	}
	raw, ok := envelope["network_id"]
	if !ok || len(envelope) != 1 {
		return 0, nil, bad("The body has to be {\"network_id\": …}")
	}
	n, err := id(raw)
	if err != nil {
		return 0, nil, invalid("network_id", err)
	}
	_, agent, err := a.resource().find(r, value(r, "id"))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, []byte("null"), a.store.ScheduleNetwork(r.Context(), agent, n)
}

func (a agents) release(r *http.Request) (int, any, error) {
	_, agent, err := a.resource().find(r, value(r, "id"))
	if err != nil {
		return 0, nil, err
	}
	n, ok := osapi.UUID(strings.ToLower(value(r, "network")))
	if !ok {
		return 0, nil, osapi.Fault(http.StatusNotFound, string(network.NetworkNotFound), "Network %s could not be found.", clean(value(r, "network")))
	}
	return http.StatusNoContent, nil, a.store.UnscheduleNetwork(r.Context(), agent, n)
}

func (a agents) hosting(r *http.Request) (int, any, error) {
	_, id, err := networks(a.store).find(r, value(r, "id"))
	if err != nil {
		return 0, nil, err
	}
	found, err := a.store.Agents(r.Context(), store.Listing{Where: []store.Condition{{Field: "network", In: []string{id.String()}}}})
	if err != nil {
		return 0, nil, err
	}
	names, list := chosen(r), make([]object, len(found))
	for i, n := range found {
		list[i] = fields(names, viewAgent(n, caller(r)))
	}
	return http.StatusOK, object{"agents": list}, nil
}
