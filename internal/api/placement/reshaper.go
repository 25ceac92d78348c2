package placement

import (
	"net/http"

	"berth/internal/inventory"
)

// reshapeForm is the form of a reshape: stocks as a provider's own, consumers as in POST /allocations.
func reshapeForm(v int) *schema {
	return &schema{kind: "object", required: []string{"inventories", "allocations"}, fields: map[string]*schema{
		"inventories": {kind: "object", minKeys: 1, keys: keyPattern, each: stockForm()},
		"allocations": {kind: "object", keys: keyPattern, each: allocationForm(v, true)},
	}}
}

func (h *room) reshape(c *call) (int, any, error) {
	in, err := c.object(reshapeForm(c.v))
	if err != nil {
		return 0, nil, err
	}
	shape := inventory.Reshape{Stocks: map[string]inventory.Stock{}}
	for provider, v := range in["inventories"].(map[string]any) {
		shape.Stocks[provider] = readStock(v.(map[string]any))
	}
	for consumer, v := range in["allocations"].(map[string]any) {
		shape.Writes = append(shape.Writes, h.write(c.v, consumer, v.(map[string]any)))
	}
	if err := h.store.Reshape(c.Context(), shape); err != nil {
		err = prefixed(err, "malformed reshaper data: ", inventory.UnknownClass)
		return 0, nil, prefixed(err, "update conflict: ", inventory.InventoryInUse)
	}
	return http.StatusNoContent, nil, nil
}
