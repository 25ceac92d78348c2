package placement

import (
	"net/http"
	"time"
)

func (h *room) listAggregates(c *call) (int, any, error) {
	a, err := h.store.Aggregates(c.Context(), c.PathValue("uuid"))
	if err != nil {
		return 0, nil, missing(err, noProvider, c.PathValue("uuid"))
	}
	return c.aggregates(a.UUIDs, a.Generation)
}

func (c *call) aggregates(uuids []string, generation int64) (int, any, error) {
	c.modified(time.Time{})
	answer := map[string]any{"aggregates": uuids}
	if c.v >= 19 {
		answer["resource_provider_generation"] = generation
	}
	return http.StatusOK, answer, nil
}

// replaceAggregates takes a bare array before 1.19, and from then on an object with the generation that the
// client acted on.
func (h *room) replaceAggregates(c *call) (int, any, error) {
	list := &schema{kind: "array", items: someUUID, unique: true}
	form := list
	if c.v >= 19 {
		form = &schema{kind: "object", required: []string{"aggregates", "resource_provider_generation"},
			fields: map[string]*schema{"aggregates": list, "resource_provider_generation": integer}}
	}
	in, err := c.input(form)
	if err != nil {
		return 0, nil, h.unless(c, nil, err)
	}
	var expected *int64
	if object, ok := in.(map[string]any); ok {
		generation := whole(object["resource_provider_generation"])
		expected, in = &generation, object["aggregates"]
	}
	uuids := texts(in)
	generation, err := h.store.SetAggregates(c.Context(), c.PathValue("uuid"), uuids, expected)
	if err != nil {
		return 0, nil, missing(err, noProvider, c.PathValue("uuid"))
	}
	return c.aggregates(uuids, generation)
}

// texts is the list of strings that a checked value is.
func texts(v any) []string {
	array, _ := v.([]any)
	list := make([]string, len(array))
	for i, item := range array {
		list[i] = text(item)
	}
	return list
}
