package operator

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/store/agentstore"
	"berth/internal/store/db"
)

// maxAgentTypes is the maximum number of types of agents that a host may report.
const maxAgentTypes = 20

// agentVirtualHosts handles the requests about the virtual hosts of RabbitMQ that only the agents of one host
// use.
type agentVirtualHosts struct{ store *agentstore.Store }

// routes returns the routes below the path of the virtual hosts.
func (a agentVirtualHosts) routes(path string) []osapi.Route {
	return []osapi.Route{
		{Method: http.MethodGet, Path: path, Handle: adminRoleOnly(a.list)},
		{Method: http.MethodPost, Path: path, Handle: adminRoleOnly(a.add)},
		{Method: http.MethodDelete, Path: path + "/{id}", Handle: adminRoleOnly(a.remove)},
	}
}

// agentVirtualHost is the JSON format of a virtual host.
type agentVirtualHost struct {
	ID         string    `json:"id"`
	Host       string    `json:"host"`
	Name       string    `json:"name"`
	AgentTypes []string  `json:"agent_types"`
	CreatedAt  time.Time `json:"created_at"`
}

func viewVirtualHost(v agentstore.VirtualHost) agentVirtualHost {
	return agentVirtualHost{
		ID:         v.ID.String(),
		Host:       v.Host,
		Name:       v.Name,
		AgentTypes: v.AgentTypes,
		CreatedAt:  v.CreatedAt,
	}
}

// list lists the virtual hosts. The query ?host=HOST selects the virtual host of one host.
func (a agentVirtualHosts) list(r *http.Request) (int, any, error) {
	host, err := hostQuery(r)
	if err != nil {
		return 0, nil, err
	}
	found, err := a.store.VirtualHosts(r.Context(), host)
	if err != nil {
		return 0, nil, err
	}
	all := make([]agentVirtualHost, len(found))
	for i, v := range found {
		all[i] = viewVirtualHost(v)
	}
	return http.StatusOK, map[string]any{"agent_vhosts": all}, nil
}

// virtualHostBody is the JSON format of a request that registers a virtual host.
type virtualHostBody struct {
	Host       string   `json:"host"`
	Name       *string  `json:"name"`
	AgentTypes []string `json:"agent_types"`
}

// add registers a virtual host. If the body has no name, the virtual host has the name of the host.
func (a agentVirtualHosts) add(r *http.Request) (int, any, error) {
	var body virtualHostBody
	if err := osapi.Decode(r, &body); err != nil {
		return 0, nil, err
	}
	if body.Name == nil {
		body.Name = &body.Host
	}
	if err := checkHost(body.Host); err != nil {
		return 0, nil, err
	}
	if err := checkName("name", *body.Name); err != nil {
		return 0, nil, err
	}
	if len(body.AgentTypes) > maxAgentTypes {
		return 0, nil, osapi.Fault(http.StatusBadRequest, "",
			"'agent_types' must have at most %d items.", maxAgentTypes)
	}
	for _, t := range body.AgentTypes {
		if err := checkName("agent_types", t); err != nil {
			return 0, nil, err
		}
	}
	v, err := a.store.AddVirtualHost(r.Context(), body.Host, *body.Name, body.AgentTypes)
	if err != nil {
		return 0, nil, err
	}
	logVirtualHostChange(r.Context(), "Virtual host of agents registered", v.ID.String(), v.Host)
	return http.StatusCreated, viewVirtualHost(v), nil
}

// remove deletes the registration of a virtual host. It does not change RabbitMQ.
func (a agentVirtualHosts) remove(r *http.Request) (int, any, error) {
	id, ok := osapi.UUID(r.PathValue("id"))
	if !ok {
		return 0, nil, osapi.Fault(http.StatusNotFound, "",
			"'%s' is not the ID of a virtual host of agents.", r.PathValue("id"))
	}
	host, err := a.store.RemoveVirtualHost(r.Context(), id)
	if err != nil {
		return 0, nil, err
	}
	logVirtualHostChange(r.Context(), "Virtual host of agents removed", id.String(), host)
	return http.StatusNoContent, nil, nil
}

func logVirtualHostChange(ctx context.Context, event, id, host string) {
	slog.InfoContext(ctx, event, "id", id, "host", host, "actor", db.Actor(ctx))
}
