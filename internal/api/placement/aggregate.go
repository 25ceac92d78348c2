package placement

import (
	"net/http"
	"time"
)

func (h *handler) listAggregates(c *call) (int, any, error) {
	a, err := h.store.Aggregates(c.Context(), c.PathValue("uuid"))
	if err != nil {
		return 0, nil, notFound(err, noProvider, c.PathValue("uuid"))
	}
	return c.aggregates(a.UUIDs, a.Generation)
}

func (c *call) aggregates(uuids []string, generation int64) (int, any, error) {
	c.setLastModified(time.Time{})
	answer := map[string]any{"aggregates": uuids}
	if c.v >= 19 {
		answer["resource_provider_generation"] = generation
	}
	return http.StatusOK, answer, nil
}

func aggregatesSchema(v int) *schema {
	list := &schema{kind: "array", items: someUUID, unique: true}
	if v < 19 {
		return list
	}
	return &schema{kind: "object", required: []string{"aggregates", "resource_provider_generation"},
		fields: map[string]*schema{"aggregates": list, "resource_provider_generation": integer}}
}

// replaceAggregates replaces the aggregates of a provider. Before microversion 1.19 the request body is a
// list of aggregates. From microversion 1.19 on, the request body is an object with the list of aggregates
// and the provider's generation.
func (h *handler) replaceAggregates(c *call) (int, any, error) {
	in, err := c.decode(aggregatesSchema(c.v))
	if err != nil {
		return 0, nil, h.unlessStale(c, nil, err)
	}
	var expected *int64
	if object, ok := in.(map[string]any); ok {
		generation := intOf(object["resource_provider_generation"])
		expected, in = &generation, object["aggregates"]
	}
	uuids := stringsOf(in)
	generation, err := h.store.SetAggregates(c.Context(), c.PathValue("uuid"), uuids, expected)
	if err != nil {
		return 0, nil, notFound(err, noProvider, c.PathValue("uuid"))
	}
	return c.aggregates(uuids, generation)
}

// stringsOf converts a value that has passed the schema check to a list of strings.
func stringsOf(v any) []string {
	array, _ := v.([]any)
	list := make([]string, len(array))
	for i, item := range array {
		list[i] = stringOf(item)
	}
	return list
}
