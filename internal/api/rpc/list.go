package rpc

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"berth/internal/store"
)

// filters are what agents narrow lists by: values of fields, of which an object has to have one each.
type filters map[string]json.RawMessage

type listArgs struct {
	Filters filters  `json:"filters"`
	Fields  []string `json:"fields"`
}

// where are the conditions of filters whose names are in the table. Another filter finds nothing rather than all.
func (f filters) where(names map[string]string) ([]store.Condition, error) {
	var where []store.Condition
	for name, raw := range f {
		field, ok := names[name]
		if !ok {
			return nil, badArgument("nothing is found by '%s'", short(name))
		}
		values := []string{}
		var many []any
		if json.Unmarshal(raw, &many) != nil {
			var single any
			if err := json.Unmarshal(raw, &single); err != nil {
				return nil, badArgument("'%s' is narrowed by what is no value", short(name))
			}
			many = []any{single}
		}
		for _, v := range many {
			text, err := textOf(v)
			if err != nil {
				return nil, err
			}
			if identities[field] && idOf(text) == uuid.Nil {
				continue // the ID of nothing
			}
			if field == "admin_up" && text != "true" && text != "false" {
				return nil, badArgument("'%s' is true or false", short(name))
			}
			values = append(values, text)
		}
		where = append(where, store.Condition{Field: field, In: values})
	}
	return where, nil
}

// identities are the fields that hold IDs.
var identities = map[string]bool{"id": true, "network": true, "security_group": true, "group": true}

func textOf(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		if v {
			return "true", nil
		}
		return "false", nil
	default:
		return "", badArgument("a list is narrowed by texts and truths only")
	}
}

var portFilters = map[string]string{"id": "id", "network_id": "network", "device_id": "device_id", "device_owner": "device_owner",
	"binding:host_id": "host", "security_group_ids": "security_group", "security_groups": "security_group", "status": "status", "admin_state_up": "admin_up"}

func listPorts(ctx context.Context, d *Desk, a listArgs) (any, error) {
	where, err := a.Filters.where(portFilters)
	if err != nil {
		return nil, err
	}
	found, err := d.Store.Ports(ctx, store.Listing{Where: where})
	return views(found, viewPort, a.Fields), err
}

var networkFilters = map[string]string{"id": "id", "name": "name", "admin_state_up": "admin_up", "project_id": "project", "tenant_id": "project"}

func listNetworks(ctx context.Context, d *Desk, a listArgs) (any, error) {
	where, err := a.Filters.where(networkFilters)
	if err != nil {
		return nil, err
	}
	found, err := d.Store.Networks(ctx, store.Listing{Where: where})
	return views(found, viewNetwork, a.Fields), err
}

// views are objects as agents see them, with nothing but these fields, if any are named.
func views[T any](all []T, view func(T) object, fields []string) []object {
	seen := make([]object, len(all))
	for i, v := range all {
		seen[i] = view(v)
		if len(fields) == 0 {
			continue
		}
		narrow := object{}
		for _, f := range fields {
			if value, ok := seen[i][f]; ok {
				narrow[f] = value
			}
		}
		seen[i] = narrow
	}
	return seen
}
