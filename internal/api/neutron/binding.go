package neutron

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/network"
	"berth/internal/store"
)

// bindings are the routes of a port's ties to hosts, by which a server is moved. All are for administrators.
type bindings struct{ store *store.Store }

type bindingChange = network.BindingChange

var bindingForm = resource[network.Binding, bindingChange]{one: "binding", attributes: []attribute[bindingChange]{
	{name: "host", on: onCreate | required, set: as(func(c *bindingChange) **string { return &c.Host }, filled(text(255)))},
	{name: "vnic_type", on: anytime, set: as(func(c *bindingChange) **string { return &c.VNIC }, vnicType)},
	{name: "profile", on: anytime, set: func(c *bindingChange, raw json.RawMessage) (err error) {
		c.Profile, err = profile(raw)
		return err
	}},
	{name: "project_id", on: onCreate, set: unread[bindingChange]}, {name: "tenant_id", on: onCreate, set: unread[bindingChange]},
	{name: "vif_type"}, {name: "vif_details"}, {name: "status"},
}}

func (b bindings) routes() []osapi.Route {
	const many, one = "/v2.0/ports/{id}/bindings", "/v2.0/ports/{id}/bindings/{host}"
	routes := []osapi.Route{
		{Method: http.MethodGet, Path: many, Handle: b.list},
		{Method: http.MethodPost, Path: many, Handle: b.create},
		{Method: http.MethodGet, Path: one, Handle: b.show},
		{Method: http.MethodPut, Path: one, Handle: b.update},
		{Method: http.MethodDelete, Path: one, Handle: b.remove},
		{Method: http.MethodPut, Path: one + "/activate", Handle: b.activate},
	}
	for i, r := range routes {
		routes[i].Handle = func(req *http.Request) (int, any, error) {
			if !caller(req).Admin() {
				return 0, nil, forbidden(rule(r) + "_binding")
			}
			return r.Handle(req)
		}
	}
	return routes
}

// port is the port that the request's path names.
func (b bindings) port(r *http.Request) (network.Port, uuid.UUID, error) {
	return ports(b.store).find(r, value(r, "id"))
}

// of is the binding of the port to the host.
func of(p network.Port, host string) (network.Binding, error) {
	all := p.Tied()
	at := slices.IndexFunc(all, func(b network.Binding) bool { return b.Host == host })
	if at < 0 {
		return network.Binding{}, network.Faultf(network.BindingNotFound, "Binding for port %s for host %s could not be found.", p.ID, clean(host))
	}
	return all[at], nil
}

func viewBinding(p network.Port, b network.Binding) object {
	if p.VIF, p.Switch = b.VIF, b.Switch; b.Host != p.Host {
		p.Details = nil
	}
	return object{"host": b.Host, "status": b.Status, "vnic_type": b.VNIC, "profile": b.Profile, "vif_type": b.VIF,
		"vif_details": vifDetails(p), "project_id": p.Project, "tenant_id": p.Project}
}

func (b bindings) list(r *http.Request) (int, any, error) {
	p, _, err := b.port(r)
	if err != nil {
		return 0, nil, err
	}
	q := r.URL.Query()
	for _, key := range shaping {
		q.Del(key)
	}
	for _, key := range sortedKeys(q) {
		if !slices.Contains([]string{"host", "status", "vif_type", "vnic_type", "project_id", "tenant_id"}, key) {
			return 0, nil, bad("['%s'] is invalid attribute for filtering", clean(key))
		}
	}
	names, list := chosen(r), []object{}
	for _, one := range p.Tied() {
		view, asked := viewBinding(p, one), true
		for key, values := range q {
			asked = asked && slices.Contains(values, view[key].(string))
		}
		if asked {
			list = append(list, fields(names, view))
		}
	}
	return http.StatusOK, object{"bindings": list}, nil
}

func (b bindings) show(r *http.Request) (int, any, error) {
	p, _, err := b.port(r)
	if err != nil {
		return 0, nil, err
	}
	return shownBinding(http.StatusOK, p, value(r, "host"), chosen(r))
}

func shownBinding(status int, p network.Port, host string, names []string) (int, any, error) {
	one, err := of(p, host)
	if err != nil {
		return 0, nil, err
	}
	return status, object{"binding": fields(names, viewBinding(p, one))}, nil
}

func (b bindings) create(r *http.Request) (int, any, error) {
	changes, bulk, err := bindingForm.decode(r, onCreate)
	if err != nil {
		return 0, nil, err
	}
	if bulk {
		return 0, nil, bad("Bindings are created one by one")
	}
	found, id, err := b.port(r)
	if err != nil {
		return 0, nil, err
	}
	p, err := b.store.ProposeBinding(r.Context(), id, changes[0])
	if err != nil {
		return 0, nil, err
	}
	p.Carrying = found.Carrying
	return shownBinding(http.StatusCreated, p, *changes[0].Host, nil)
}

func (b bindings) update(r *http.Request) (int, any, error) {
	changes, _, err := bindingForm.decode(r, onUpdate)
	if err != nil {
		return 0, nil, err
	}
	found, id, err := b.port(r)
	if err != nil {
		return 0, nil, err
	}
	p, err := b.store.UpdateBinding(r.Context(), id, value(r, "host"), changes[0])
	if err != nil {
		return 0, nil, err
	}
	p.Carrying = found.Carrying
	return shownBinding(http.StatusOK, p, value(r, "host"), nil)
}

// activate reads no body; clients send some or none. Its answer is the binding without an envelope.
func (b bindings) activate(r *http.Request) (int, any, error) {
	found, id, err := b.port(r)
	if err != nil {
		return 0, nil, err
	}
	p, err := b.store.ActivateBinding(r.Context(), id, r.PathValue("host"))
	if err != nil {
		return 0, nil, err
	}
	p.Carrying = found.Carrying
	one, err := of(p, r.PathValue("host"))
	return http.StatusOK, viewBinding(p, one), err
}

func (b bindings) remove(r *http.Request) (int, any, error) {
	_, id, err := b.port(r)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, b.store.DeleteBinding(r.Context(), id, value(r, "host"))
}

// filled reads a text that is not empty.
func filled(read func(json.RawMessage) (string, error)) func(json.RawMessage) (string, error) {
	return func(raw json.RawMessage) (string, error) {
		s, err := read(raw)
		if err == nil && s == "" {
			err = errors.New("'' is empty")
		}
		return s, err
	}
}

// unread accepts any text for what is known better.
func unread[C any](_ *C, raw json.RawMessage) error {
	_, err := text(255)(raw)
	return err
}
