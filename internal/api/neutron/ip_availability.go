package neutron

import (
	"cmp"
	"context"
	"math/big"
	"net/http"
	"net/url"
	"slices"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/db"
	"berth/internal/store/portstore"
)

// ipAvailability handles network-ip-availabilities: how many addresses of each network are in use.
type ipAvailability struct{ store *portstore.Store }

func (a ipAvailability) routes() []osapi.Route {
	return []osapi.Route{
		{Method: http.MethodGet, Path: "/v2.0/network-ip-availabilities", Handle: a.list},
		{Method: http.MethodGet, Path: "/v2.0/network-ip-availabilities/{id}", Handle: a.show},
	}
}

// networkAttributeOf maps an attribute of network-ip-availabilities to that attribute of the network which
// has the same value.
var networkAttributeOf = map[string]string{
	"network_id":   "id",
	"network_name": "name",
	"project_id":   "project_id",
	"tenant_id":    "tenant_id",
}

func (a ipAvailability) list(r *http.Request) (int, any, error) {
	networkRequest, ipVersions, err := networkListRequest(r)
	if err != nil {
		return 0, nil, err
	}
	res := networks(a.store)
	l, err := res.listRequest(networkRequest)
	if err != nil {
		return 0, nil, err
	}
	found, err := a.allowed(r, l)
	if err != nil {
		return 0, nil, err
	}
	views, err := a.views(r.Context(), found, ipVersions)
	if err != nil {
		return 0, nil, err
	}
	names := requestedFields(r)
	for i := range views {
		views[i] = attribute.Select(views[i], names)
	}
	body := object{"network_ip_availabilities": views}
	if l.Limit > 0 {
		body["network_ip_availabilities_links"] = links(r, l, networkIDs(found))
	}
	return http.StatusOK, body, nil
}

func networkIDs(networks []network.Network) []uuid.UUID {
	ids := make([]uuid.UUID, len(networks))
	for i, n := range networks {
		ids[i] = n.ID
	}
	return ids
}

// allowed lists the networks whose availability the caller may see.
func (a ipAvailability) allowed(r *http.Request, l db.Listing) ([]network.Network, error) {
	res := networks(a.store)
	found, err := res.listVisible(r.Context(), l)
	if err != nil {
		return nil, err
	}
	return res.allowed(r.Context(), getAvailability, found)
}

// networkListRequest translates the request into a list request for networks. networkListRequest also returns
// the IP versions of the subnets that the request asks for; nil means all IP versions.
func networkListRequest(r *http.Request) (*http.Request, []string, error) {
	q, query := r.URL.Query(), url.Values{}
	for _, key := range sortedKeys(q) {
		switch name := networkAttributeOf[key]; {
		case slices.Contains([]string{"fields", "ip_version", "sort_key"}, key):
		case name != "":
			query[name] = q[key]
		case slices.Contains(listOptions, key):
			query[key] = q[key]
		default:
			return nil, nil, badRequest("['%s'] is invalid attribute for filtering", excerpt(key))
		}
	}
	for _, key := range nonEmpty(q["sort_key"]) {
		if networkAttributeOf[key] == "" {
			return nil, nil, badRequest("['%s'] is invalid attribute for sort_keys", excerpt(key))
		}
		query.Add("sort_key", networkAttributeOf[key])
	}
	copied := r.Clone(r.Context())
	copied.URL.RawQuery = query.Encode()
	return copied, q["ip_version"], nil
}

func (a ipAvailability) show(r *http.Request) (int, any, error) {
	res := networks(a.store)
	n, _, err := res.find(r, pathValue(r, "id"))
	if err != nil {
		return 0, nil, err
	}
	if visible, err := res.permits(r, n, getAvailability); err != nil || !visible {
		return 0, nil, cmp.Or(err, res.notFound(n.ID.String()))
	}
	views, err := a.views(r.Context(), []network.Network{n}, nil)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, object{"network_ip_availability": attribute.Select(views[0], requestedFields(r))}, nil
}

// views returns how many addresses the subnets of each network have, and how many of them are in use. views
// counts only subnets of the given IP versions; if the list of versions is nil, views counts all subnets.
func (a ipAvailability) views(
	ctx context.Context,
	networks []network.Network,
	ipVersions []string,
) ([]object, error) {
	ids := networkIDs(networks)
	where := []db.Condition{db.OneOfIDs("network", ids)}
	if ipVersions != nil {
		c := db.Condition{Field: "ip_version", In: []string{}}
		for _, v := range ipVersions {
			v, err := attribute.FilterInt(v)
			if err != nil {
				return nil, err
			}
			c.In = append(c.In, v)
		}
		where = append(where, c)
	}
	subnets, err := a.store.Subnets(ctx, db.Listing{Where: where})
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
		list = append(list, object{
			"subnet_id":   s.ID,
			"subnet_name": s.Name,
			"ip_version":  s.Version(),
			"cidr":        s.CIDR,
			"total_ips":   capacity,
			"used_ips":    taken[s.ID],
		})
	}
	return object{
		"network_id":             n.ID,
		"network_name":           n.Name,
		"project_id":             n.Project,
		"tenant_id":              n.Project,
		"total_ips":              total,
		"used_ips":               used,
		"subnet_ip_availability": list,
	}
}
