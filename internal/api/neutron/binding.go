package neutron

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/portstore"
)

// bindings handles the bindings of a port to hosts, which Nova uses for live migration. By default, other
// callers than administrators and services get an empty list of bindings, and may not use the other API paths
// for port bindings.
type bindings struct{ store *portstore.Store }

type bindingChange = network.BindingChange

var bindingResource = resource[network.Binding, bindingChange]{
	singular: "binding",
	attributes: []attribute.Definition[network.Binding, bindingChange]{
		{
			Name:       "host",
			SettableOn: attribute.OnCreate | attribute.Required,
			Set: attribute.Into(
				func(c *bindingChange) **string { return &c.Host },
				attribute.NotEmpty(attribute.Line(255)),
			),
		},
		{
			Name:       "vnic_type",
			SettableOn: attribute.OnWrite,
			Set:        attribute.Into(func(c *bindingChange) **string { return &c.VNIC }, attribute.VNICType),
		},
		{
			Name:       "profile",
			SettableOn: attribute.OnWrite,
			Set: func(c *bindingChange, raw json.RawMessage) (err error) {
				c.Profile, err = attribute.Profile(raw)
				return err
			},
		},
		{
			Name:       "project_id",
			SettableOn: attribute.OnCreate,
			Set:        ignoredText[bindingChange],
		}, {Name: "tenant_id", SettableOn: attribute.OnCreate, Set: ignoredText[bindingChange]},
		{Name: "vif_type"}, {Name: "vif_details"}, {Name: "status"},
	},
}

func (b bindings) routes() []osapi.Route {
	const collectionPath, memberPath = "/v2.0/ports/{id}/bindings", "/v2.0/ports/{id}/bindings/{host}"
	return []osapi.Route{
		{Method: http.MethodGet, Path: collectionPath, Handle: b.list},
		{Method: http.MethodPost, Path: collectionPath, Handle: b.create},
		{Method: http.MethodGet, Path: memberPath, Handle: b.show},
		{Method: http.MethodPut, Path: memberPath, Handle: b.update},
		{Method: http.MethodDelete, Path: memberPath, Handle: b.remove},
		{Method: http.MethodPut, Path: memberPath + "/activate", Handle: b.activate},
	}
}

// port finds the port whose ID is in the path, and refuses a caller whom the rule does not allow the request.
func (b bindings) port(r *http.Request, rule string) (network.Port, uuid.UUID, error) {
	res := ports(b.store)
	p, id, err := res.find(r, pathValue(r, "id"))
	if err == nil {
		err = res.require(r, p, rule)
	}
	return p, id, err
}

// bindingOn finds the port's binding to the given host.
func bindingOn(p network.Port, host string) (network.Binding, error) {
	all := p.AllBindings()
	at := slices.IndexFunc(all, func(b network.Binding) bool { return b.Host == host })
	if at < 0 {
		return network.Binding{}, network.Faultf(network.BindingNotFound,
			"Binding for port %s for host %s could not be found.", p.ID, excerpt(host))
	}
	return all[at], nil
}

func viewBinding(p network.Port, b network.Binding) object {
	if p.VIF, p.Switch = b.VIF, b.Switch; b.Host != p.Host {
		p.ControllerVIFDetails = nil
	}
	return object{
		"host":        b.Host,
		"status":      b.Status,
		"vnic_type":   b.VNIC,
		"profile":     b.Profile,
		"vif_type":    b.VIF,
		"vif_details": attribute.VIFDetails(p),
		"project_id":  p.Project,
		"tenant_id":   p.Project,
	}
}

func (b bindings) list(r *http.Request) (int, any, error) {
	res := ports(b.store)
	p, _, err := res.find(r, pathValue(r, "id"))
	if err != nil {
		return 0, nil, err
	}
	visible, err := res.permits(r, p, getBinding)
	if err != nil {
		return 0, nil, err
	}
	q := r.URL.Query()
	for _, key := range listOptions {
		q.Del(key)
	}
	filters := []string{"host", "status", "vif_type", "vnic_type", "project_id", "tenant_id"}
	for _, key := range sortedKeys(q) {
		if !slices.Contains(filters, key) {
			return 0, nil, badRequest("['%s'] is invalid attribute for filtering", excerpt(key))
		}
	}
	names, list := requestedFields(r), []object{}
	for _, binding := range p.AllBindings() {
		view, matches := viewBinding(p, binding), visible
		for key, values := range q {
			matches = matches && slices.Contains(values, view[key].(string))
		}
		if matches {
			list = append(list, attribute.Select(view, names))
		}
	}
	return http.StatusOK, object{"bindings": list}, nil
}

func (b bindings) show(r *http.Request) (int, any, error) {
	p, _, err := b.port(r, getBinding)
	if err != nil {
		return 0, nil, err
	}
	return bindingResponse(http.StatusOK, p, pathValue(r, "host"), requestedFields(r))
}

func bindingResponse(status int, p network.Port, host string, names []string) (int, any, error) {
	binding, err := bindingOn(p, host)
	if err != nil {
		return 0, nil, err
	}
	return status, object{"binding": attribute.Select(viewBinding(p, binding), names)}, nil
}

func (b bindings) create(r *http.Request) (int, any, error) {
	changes, bulk, err := bindingResource.decode(r, attribute.OnCreate)
	if err != nil {
		return 0, nil, err
	}
	if bulk {
		return 0, nil, badRequest("Bindings are created one by one")
	}
	found, id, err := b.port(r, "create_port_binding")
	if err != nil {
		return 0, nil, err
	}
	p, err := b.store.CreateBinding(r.Context(), id, changes[0])
	if err != nil {
		return 0, nil, err
	}
	p.TrunkDetails = found.TrunkDetails
	return bindingResponse(http.StatusCreated, p, *changes[0].Host, nil)
}

func (b bindings) update(r *http.Request) (int, any, error) {
	changes, _, err := bindingResource.decode(r, attribute.OnUpdate)
	if err != nil {
		return 0, nil, err
	}
	found, id, err := b.port(r, "update_port_binding")
	if err != nil {
		return 0, nil, err
	}
	p, err := b.store.UpdateBinding(r.Context(), id, pathValue(r, "host"), changes[0])
	if err != nil {
		return 0, nil, err
	}
	p.TrunkDetails = found.TrunkDetails
	return bindingResponse(http.StatusOK, p, pathValue(r, "host"), nil)
}

// activate ignores the request body, because different clients send different bodies. The response of
// activate contains the binding without the surrounding key `binding`, as in Neutron.
func (b bindings) activate(r *http.Request) (int, any, error) {
	found, id, err := b.port(r, "activate")
	if err != nil {
		return 0, nil, err
	}
	p, err := b.store.ActivateBinding(r.Context(), id, r.PathValue("host"))
	if err != nil {
		return 0, nil, err
	}
	p.TrunkDetails = found.TrunkDetails
	binding, err := bindingOn(p, r.PathValue("host"))
	return http.StatusOK, viewBinding(p, binding), err
}

func (b bindings) remove(r *http.Request) (int, any, error) {
	_, id, err := b.port(r, "delete_port_binding")
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, b.store.DeleteBinding(r.Context(), id, pathValue(r, "host"))
}

// ignoredText checks that the value is text, and does not store the value.
func ignoredText[C any](_ *C, raw json.RawMessage) error {
	_, err := attribute.Text(255)(raw)
	return err
}
