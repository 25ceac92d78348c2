package neutron

import (
	"context"
	"math/big"
	"net/http"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/network"
	"berth/internal/store"
)

// availability are the routes that tell how many addresses networks have left.
type availability struct{ store *store.Store }

func (a availability) routes() []osapi.Route {
	return []osapi.Route{
		{Method: http.MethodGet, Path: "/v2.0/network-ip-availabilities", Handle: a.list},
		{Method: http.MethodGet, Path: "/v2.0/network-ip-availabilities/{id}", Handle: a.show},
	}
}

func (a availability) list(r *http.Request) (int, any, error) {
	names := map[string]string{"network_id": "id", "network_name": "name", "project_id": "project_id", "tenant_id": "tenant_id"}
	l, version := store.Listing{Project: scope(caller(r))}, []string(nil)
	for _, key := range sortedKeys(r.URL.Query()) {
		values := r.URL.Query()[key]
		switch {
		case key == "fields":
		case key == "ip_version":
			version = values
		case names[key] == "":
			return 0, nil, bad("['%s'] is invalid attribute for filtering", clean(key))
		default:
			conditions, err := networks(a.store).filter(names[key], values, caller(r))
			if err != nil {
				return 0, nil, err
			}
			l.Where = append(l.Where, conditions...)
		}
	}
	found, err := a.store.Networks(r.Context(), l)
	if err != nil {
		return 0, nil, err
	}
	views, err := a.views(r.Context(), found, version)
	if err != nil {
		return 0, nil, err
	}
	chosen := chosen(r)
	for i := range views {
		views[i] = fields(chosen, views[i])
	}
	return http.StatusOK, object{"network_ip_availabilities": views}, nil
}

func (a availability) show(r *http.Request) (int, any, error) {
	n, _, err := networks(a.store).find(r, value(r, "id"))
	if err != nil {
		return 0, nil, err
	}
	views, err := a.views(r.Context(), []network.Network{n}, nil)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, object{"network_ip_availability": fields(chosen(r), views[0])}, nil
}

// views counts the addresses of networks, in their subnets of these IP versions; nil for all.
func (a availability) views(ctx context.Context, networks []network.Network, versions []string) ([]object, error) {
	ids, texts := make([]uuid.UUID, len(networks)), make([]string, len(networks))
	for i, n := range networks {
		ids[i], texts[i] = n.ID, n.ID.String()
	}
	where := []store.Condition{{Field: "network", In: texts}}
	if versions != nil {
		c := store.Condition{Field: "ip_version", In: []string{}}
		for _, v := range versions {
			if v, ok := asInt(v); ok {
				c.In = append(c.In, v)
			}
		}
		where = append(where, c)
	}
	subnets, err := a.store.Subnets(ctx, store.Listing{Where: where})
	if err != nil {
		return nil, err
	}
	taken, err := a.store.AddressesTaken(ctx, ids)
	if err != nil {
		return nil, err
	}
	views := make([]object, len(networks))
	for i, n := range networks {
		views[i] = viewAvailability(n, subnets, taken)
	}
	return views, nil
}

func viewAvailability(n network.Network, subnets []network.Subnet, taken map[uuid.UUID]int64) object {
	total, used, list := new(big.Int), int64(0), []object{}
	for _, s := range subnets {
		if s.Network != n.ID {
			continue
		}
		capacity := s.Capacity()
		total.Add(total, capacity)
		used += taken[s.ID]
		list = append(list, object{"subnet_id": s.ID, "subnet_name": s.Name, "ip_version": s.Version(), "cidr": s.CIDR,
			"total_ips": capacity, "used_ips": taken[s.ID]})
	}
	return object{"network_id": n.ID, "network_name": n.Name, "project_id": n.Project, "tenant_id": n.Project,
		"total_ips": total, "used_ips": used, "subnet_ip_availability": list}
}
