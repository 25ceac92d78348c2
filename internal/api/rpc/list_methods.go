package rpc

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
)

// filters are the filters of a list. The value of each filter is a JSON value or a list of JSON values. An
// object matches a filter if the object's field has one of the filter's values.
type filters map[string]json.RawMessage

type listArgs struct {
	Filters filters  `json:"filters"`
	Fields  []string `json:"fields"`
}

// maxFields is the maximum number of fields that a list can ask for. No object has as many.
const maxFields = 100

// conditions translates the filters of a call to conditions of the store. The parameter `fieldOf` maps the
// name of a filter to a field of the store. If a filter is not in `fieldOf`, or if the filters have more than
// maxDevices values, conditions returns an error. Each value costs the database work, so many values count as
// several messages of the sender, as reports do.
func (h *handlers) conditions(f filters, fieldOf map[string]string) ([]db.Condition, error) {
	where, err := f.conditions(fieldOf)
	if err != nil {
		return nil, err
	}
	values := 0
	for _, c := range where {
		values += len(c.In)
	}
	if values > maxDevices {
		return nil, oslomsg.NewTypeError("the filters have %d values, more than %d", values, maxDevices)
	}
	h.sender.charge(values)
	return where, nil
}

// conditions translates filters to conditions without counting their values.
func (f filters) conditions(fieldOf map[string]string) ([]db.Condition, error) {
	var where []db.Condition
	for name, raw := range f {
		field, ok := fieldOf[name]
		if !ok {
			return nil, oslomsg.NewTypeError("filter '%s' is not supported", oslomsg.Excerpt(name))
		}
		values := []string{}
		var list []any
		if json.Unmarshal(raw, &list) != nil {
			var single any
			if err := json.Unmarshal(raw, &single); err != nil {
				return nil, oslomsg.NewTypeError("filter '%s' has no valid value", oslomsg.Excerpt(name))
			}
			list = []any{single}
		}
		for _, v := range list {
			text, err := filterValue(v)
			if err != nil {
				return nil, err
			}
			if idFields[field] && parseUUID(text) == uuid.Nil {
				continue // no object has this ID
			}
			if field == "admin_up" && text != "true" && text != "false" {
				return nil, oslomsg.NewTypeError("filter '%s' must be true or false", oslomsg.Excerpt(name))
			}
			values = append(values, text)
		}
		where = append(where, db.Condition{Field: field, In: values})
	}
	return where, nil
}

// idFields are the fields of the store that contain UUIDs.
var idFields = map[string]bool{
	"id":             true,
	"network":        true,
	"security_group": true,
	"group":          true,
}

func filterValue(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		if v {
			return "true", nil
		}
		return "false", nil
	default:
		return "", oslomsg.NewTypeError("filter values must be strings or booleans")
	}
}

// listConditions returns the conditions of a list. If the call asks for more than maxFields fields,
// listConditions returns an error.
func (h *handlers) listConditions(a listArgs, fieldOf map[string]string) ([]db.Condition, error) {
	if len(a.Fields) > maxFields {
		return nil, oslomsg.NewTypeError("%d fields are more than %d", len(a.Fields), maxFields)
	}
	return h.conditions(a.Filters, fieldOf)
}

var portFilters = map[string]string{
	"id":                 "id",
	"network_id":         "network",
	"device_id":          "device_id",
	"device_owner":       "device_owner",
	"binding:host_id":    "host",
	"security_group_ids": "security_group",
	"security_groups":    "security_group",
	"status":             "status",
	"admin_state_up":     "admin_up",
}

func (h *handlers) getPorts(ctx context.Context, a listArgs) (any, error) {
	where, err := h.listConditions(a, portFilters)
	if err != nil {
		return nil, err
	}
	ids, err := h.readablePorts(ctx, where...)
	if err != nil {
		return nil, err
	}
	list := newEncodedList()
	err = h.eachPortPage(ctx, ids, allFields, func(page []network.Port) error {
		return addAll(ctx, list, page, func(p network.Port) object {
			return attribute.Select(attribute.PortRPC(p), a.Fields)
		})
	})
	return list.objects, err
}

var networkFilters = map[string]string{
	"id":             "id",
	"name":           "name",
	"admin_state_up": "admin_up",
	"project_id":     "project",
	"tenant_id":      "project",
}

func (h *handlers) getNetworks(ctx context.Context, a listArgs) (any, error) {
	where, err := h.listConditions(a, networkFilters)
	if err != nil {
		return nil, err
	}
	if h.sender != nil {
		where = append(where, networkstore.OnHost(h.sender.Host))
	}
	ids, err := h.Store.NetworkIDs(ctx, db.Listing{Where: where})
	if err != nil {
		return nil, err
	}
	list := newEncodedList()
	err = eachPage(ctx, h.Store.Networks, ids, allFields, func(page []network.Network) error {
		return addAll(ctx, list, page, func(n network.Network) object {
			return attribute.Select(viewNetwork(n), a.Fields)
		})
	})
	return list.objects, err
}
