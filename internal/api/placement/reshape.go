package placement

import (
	"net/http"

	"berth/internal/inventory"
)

// reshapeSchema returns the schema of a reshape: inventories as for a provider, and consumers as in POST
// /allocations.
func reshapeSchema(v int) *schema {
	return &schema{
		kind:     "object",
		required: []string{"inventories", "allocations"},
		fields: map[string]*schema{
			"inventories": {
				kind:    "object",
				minKeys: 1,
				keys:    keyPattern,
				each:    inventoriesSchema(),
			},
			"allocations": {kind: "object", keys: keyPattern, each: allocationSchema(v, true)},
		},
	}
}

func (h *handler) reshape(c *call) (int, any, error) {
	in, err := c.decodeObject(reshapeSchema(c.v))
	if err != nil {
		return 0, nil, err
	}
	shape := inventory.Reshape{Inventories: map[string]inventory.ProviderInventories{}}
	for provider, v := range in["inventories"].(map[string]any) {
		shape.Inventories[provider] = readInventories(v.(map[string]any))
	}
	allocations := in["allocations"].(map[string]any)
	for _, m := range members(memberOf(c.raw, "allocations")) {
		shape.Writes = append(shape.Writes,
			h.consumerWrite(c.v, m.name, allocations[m.name].(map[string]any), m.value))
	}
	if err := h.store.Reshape(c.Context(), shape); err != nil {
		err = prefixMessage(err, "malformed reshaper data: ", inventory.UnknownClass)
		return 0, nil, prefixMessage(err, "update conflict: ", inventory.InventoryInUse)
	}
	return http.StatusNoContent, nil, nil
}
