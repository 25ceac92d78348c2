package neutron

import (
	"encoding/json"
	"net/http"
	"slices"

	"berth/internal/api/osapi"
	"berth/internal/network/attribute"
	"berth/internal/store/portstore"
)

// availabilityZones handles the availability zones that DHCP agents and L3 agents report.
type availabilityZones struct{ store *portstore.Store }

func (z availabilityZones) routes() []osapi.Route {
	return []osapi.Route{{Method: http.MethodGet, Path: "/v2.0/availability_zones", Handle: z.list}}
}

func (z availabilityZones) list(r *http.Request) (int, any, error) {
	q := r.URL.Query()
	for _, key := range sortedKeys(q) {
		if !slices.Contains(listOptions, key) &&
			!slices.Contains([]string{"name", "resource", "state"}, key) {
			return 0, nil, badRequest("['%s'] is invalid attribute for filtering", excerpt(key))
		}
	}
	found, err := z.store.AvailabilityZones(r.Context())
	if err != nil {
		return 0, nil, err
	}
	names, list := requestedFields(r), []object{}
	for _, zone := range found {
		view := object{
			"name":     zone.Name,
			"resource": zone.Resource,
			"state":    map[bool]string{true: "available", false: "unavailable"}[zone.Available],
		}
		matches := true
		for key, value := range view {
			matches = matches && (!q.Has(key) || slices.Contains(q[key], value.(string)))
		}
		if matches {
			list = append(list, attribute.Select(view, names))
		}
	}
	return http.StatusOK, object{"availability_zones": list}, nil
}

// maxZoneHints is the maximum length of a network's availability zone hints as JSON, in bytes.
const maxZoneHints = 255

// zoneHints reads the availability zones that a network requests.
func zoneHints(raw json.RawMessage) ([]string, error) {
	list, err := attribute.Distinct(attribute.List(attribute.NotEmpty(attribute.Line(maxZoneHints))))(raw)
	if text, _ := json.Marshal(list); err == nil && len(text) > maxZoneHints {
		err = attribute.Refusal("Too many availability_zone_hints specified")
	}
	return list, err
}
