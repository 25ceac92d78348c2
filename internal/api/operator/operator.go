// Package operator is the administrators' API at /operator/v1. The operators' API has functions that the other APIs do not have:
// the history of generations (who changed the generation of a provider or consumer), the migration of consumers without a project and
// user, the comparisons of the rows with their projections in Temporal and at the controller, the notes that berth has not delivered to
// Temporal, and the provisioning blocks of ports and trunks.
package operator

import (
	"net/http"
	"net/url"
	"strconv"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/inventory"
	"berth/internal/store/inventorystore"
	"berth/internal/store/mirrorstore"
	"berth/internal/store/networkstore"
	"berth/internal/store/outbox"
)

// New returns the API, which reads and writes the stores s, n, o and m. The migration gives consumers without a project and user those of the
// parameter `incomplete`.
func New(s *inventorystore.Store, n *networkstore.Store, o *outbox.Store, m *mirrorstore.Store, id identity.Authenticator, incomplete inventory.Owner) *osapi.API {
	c, undelivered, b := consumers{s, incomplete}, notes{o}, blocks{n}
	return &osapi.API{
		Prefix:   "/operator/v1",
		Identity: id,
		Reserved: true,
		Fail:     osapi.WriteError,
		Routes: []osapi.Route{
			{Method: http.MethodGet, Path: "/consumers/{uuid}/history", Handle: osapi.AdminOnly(history(s.ConsumerHistory))},
			{Method: http.MethodGet, Path: "/providers/{uuid}/history", Handle: osapi.AdminOnly(history(s.ProviderHistory))},
			{Method: http.MethodPost, Path: "/consumers/migrate", Handle: osapi.AdminOnly(c.migrate), Repeatable: true},
			{Method: http.MethodGet, Path: "/projections", Handle: osapi.AdminOnly(projections(o, m))},
			{Method: http.MethodGet, Path: "/notes", Handle: osapi.AdminOnly(undelivered.list)},
			{Method: http.MethodPost, Path: "/notes/retry", Handle: osapi.AdminOnly(undelivered.retry)},
			{Method: http.MethodGet, Path: "/blocks/{type}/{id}", Handle: osapi.AdminOnly(b.list)},
			{Method: http.MethodPut, Path: "/blocks/{type}/{id}/{entity}", Handle: osapi.AdminOnly(b.add), Repeatable: true},
			{Method: http.MethodDelete, Path: "/blocks/{type}/{id}/{entity}", Handle: osapi.AdminOnly(b.remove)},
			{Method: http.MethodPost, Path: "/blocks/{type}/{id}/{entity}/complete", Handle: osapi.AdminOnly(b.complete), Repeatable: true},
		},
	}
}

// positiveNumbers reads query parameters that must be positive integers. positiveNumbers returns an error if the query contains a
// parameter whose name is not in `defaults`.
func positiveNumbers(query string, defaults map[string]int64) (map[string]int64, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, osapi.Fault(http.StatusBadRequest, "", "The query string is malformed.")
	}
	for name, given := range values {
		_, known := defaults[name]
		n, err := strconv.ParseUint(given[0], 10, 63)
		switch {
		case !known:
			return nil, osapi.Fault(http.StatusBadRequest, "", "Unknown query parameter '%s'.", name)
		case len(given) > 1:
			return nil, osapi.Fault(http.StatusBadRequest, "", "The query names '%s' more than once.", name)
		case err != nil || n == 0:
			return nil, osapi.Fault(http.StatusBadRequest, "", "'%s' is not a valid value of '%s'.", given[0], name)
		}
		defaults[name] = int64(n)
	}
	return defaults, nil
}
