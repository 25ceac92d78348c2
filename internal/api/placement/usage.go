package placement

import (
	"maps"
	"net/http"
	"regexp"
	"time"

	"berth/internal/inventory"
)

func (h *handler) showProviderUsage(c *call) (int, any, error) {
	u, err := h.store.ProviderUsage(c.Context(), c.PathValue("uuid"))
	if err != nil {
		return 0, nil, notFound(err, noProviderWrapped, c.PathValue("uuid"))
	}
	c.setLastModified(time.Time{})
	return http.StatusOK, map[string]any{"resource_provider_generation": u.Generation, "usages": u.Used}, nil
}

var usageType = regexp.MustCompile(`^[A-Z0-9_]+$|^all|^unknown$`)

func usageSchema(v int) *schema {
	querySchema := &schema{kind: "object", required: []string{"project_id"},
		fields: map[string]*schema{"project_id": someName, "user_id": someName}}
	if v >= 38 {
		querySchema.fields["consumer_type"] = &schema{
			kind:      "string",
			minLength: 1,
			maxLength: 255,
			pattern:   usageType,
		}
	}
	return querySchema
}

func (h *handler) showUsages(c *call) (int, any, error) {
	query, err := c.decodeQuery(usageSchema(c.v))
	if err != nil {
		return 0, nil, err
	}
	filter := inventory.UsageFilter{Project: query["project_id"], User: optional(query, "user_id")}
	filter.Unowned = filter.Project == h.incomplete.Project &&
		(filter.User == nil || *filter.User == h.incomplete.User)
	together := query["consumer_type"] == "all"
	switch kind := query["consumer_type"]; kind {
	case "", "all":
	case "unknown":
		filter.Untyped = true
	default:
		filter.Type = &kind
	}
	usages, err := h.store.Usages(c.Context(), filter)
	if err != nil {
		return 0, nil, err
	}
	c.setLastModified(time.Time{})
	return http.StatusOK, map[string]any{"usages": c.usages(usages, together)}, nil
}

// usages returns usages in the format of the microversion. Before microversion 1.38 the format is a map from
// the resource class to the amount. From microversion 1.38 on, the format has one map of amounts for each
// consumer type, or a single map of amounts under the key "all" if `together` is true. Each of these maps
// also contains the number of consumers.
func (c *call) usages(found []inventory.Usage, together bool) any {
	if c.v < 38 {
		return inventory.TotalUsage(found).Used
	}
	view := map[string]map[string]int64{}
	add := func(kind string, u inventory.Usage) {
		view[kind] = maps.Clone(u.Used)
		view[kind]["consumer_count"] = u.Consumers
	}
	if together && len(found) > 0 {
		add("all", inventory.TotalUsage(found))
		return view
	}
	for _, u := range found {
		kind := "unknown"
		if u.Type != nil {
			kind = *u.Type
		}
		add(kind, u)
	}
	return view
}
