// Package operator is the API at /operator/v1 of what berth knows about consumers and providers and OpenStack's
// Placement API has no words for, for administrators: who moved which generation, and which consumers lack a record.
package operator

import (
	"net/http"
	"net/url"
	"strconv"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/inventory"
	"berth/internal/store"
)

// New is the API over that store. Consumers that are migrated get the owner of incomplete ones.
func New(s *store.Store, id identity.Authenticator, incomplete inventory.Owner) *osapi.API {
	c := consumers{s, incomplete}
	return &osapi.API{
		Prefix:   "/operator/v1",
		Identity: id,
		Fail:     osapi.WriteError,
		Routes: []osapi.Route{
			{Method: http.MethodGet, Path: "/consumers/{uuid}/history", Handle: osapi.AdminOnly(history(s.ConsumerHistory))},
			{Method: http.MethodGet, Path: "/providers/{uuid}/history", Handle: osapi.AdminOnly(history(s.ProviderHistory))},
			{Method: http.MethodPost, Path: "/consumers/migrate", Handle: osapi.AdminOnly(c.migrate)},
		},
	}
}

// numbers reads a query of positive numbers, of which those have defaults.
func numbers(query string, defaults map[string]int64) (map[string]int64, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, osapi.Fault(http.StatusBadRequest, "", "The query cannot be read.")
	}
	for name, given := range values {
		_, known := defaults[name]
		n, err := strconv.ParseUint(given[0], 10, 63)
		switch {
		case !known:
			return nil, osapi.Fault(http.StatusBadRequest, "", "There is no query parameter '%s'.", name)
		case len(given) > 1:
			return nil, osapi.Fault(http.StatusBadRequest, "", "The query names '%s' more than once.", name)
		case err != nil || n == 0:
			return nil, osapi.Fault(http.StatusBadRequest, "", "'%s' is no value for '%s'.", given[0], name)
		}
		defaults[name] = int64(n)
	}
	return defaults, nil
}
