package placement

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"berth/internal/inventory"
)

// inventoryView is the JSON format of an inventory.
type inventoryView struct {
	Total           int64  `json:"total"`
	Reserved        int64  `json:"reserved"`
	MinUnit         int64  `json:"min_unit"`
	MaxUnit         int64  `json:"max_unit"`
	StepSize        int64  `json:"step_size"`
	AllocationRatio ratio  `json:"allocation_ratio"`
	Generation      *int64 `json:"resource_provider_generation,omitempty"`
}

// ratio is an allocation ratio. In JSON a ratio always has a fraction (1.0 instead of 1), as in Placement,
// because some clients distinguish integers from floats.
type ratio float64

// MarshalJSON implements json.Marshaler.
func (r ratio) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(float64(r))
	if err == nil && !bytes.ContainsAny(raw, ".e") {
		raw = append(raw, ".0"...)
	}
	return raw, err
}

func inventoryViewOf(i inventory.Inventory) inventoryView {
	return inventoryView{
		Total:           i.Total,
		Reserved:        i.Reserved,
		MinUnit:         i.MinUnit,
		MaxUnit:         i.MaxUnit,
		StepSize:        i.StepSize,
		AllocationRatio: ratio(i.AllocationRatio),
	}
}

// inventorySchema returns the schema of an inventory. The caller passes the additional properties and the
// names of the required properties.
func inventorySchema(required []string, more map[string]*schema) *schema {
	counted := func(from float64) *schema {
		return &schema{kind: "integer", minimum: bound(from), maximum: bound(inventory.MaxInt)}
	}
	fields := map[string]*schema{
		"total":     counted(1),
		"reserved":  counted(0),
		"min_unit":  counted(1),
		"max_unit":  counted(1),
		"step_size": counted(1),
		"allocation_ratio": {
			kind:    "number",
			maximum: bound(3.40282e+38),
			minimum: bound(-3.40282e+38),
		},
		"resource_provider_generation": integer,
	}
	for name, field := range more {
		fields[name] = field
	}
	return &schema{kind: "object", required: append([]string{"total"}, required...), fields: fields}
}

// readInventory converts JSON that has passed the schema check to an inventory.
func readInventory(in map[string]any) inventory.Inventory {
	i := inventory.NewInventory(intOf(in["total"]))
	for name, field := range map[string]*int64{
		"reserved":  &i.Reserved,
		"min_unit":  &i.MinUnit,
		"max_unit":  &i.MaxUnit,
		"step_size": &i.StepSize,
	} {
		if v, sent := in[name]; sent {
			*field = intOf(v)
		}
	}
	if ratio, sent := in["allocation_ratio"].(json.Number); sent {
		i.AllocationRatio, _ = ratio.Float64()
	}
	return i
}

// checkInventory refuses an inventory whose reserved amount is too large. The parameter `operation` is the
// verb in the error message: create or update.
func (c *call) checkInventory(operation, class string, i inventory.Inventory) error {
	provider := c.PathValue("uuid")
	if why := i.CheckReserved(c.v >= 26); why != "" {
		return fault(
			http.StatusBadRequest,
			"Unable to %s inventory for resource provider %s: Invalid inventory for '%s' on resource provider '%s'. %s",
			operation, provider, class, provider, why,
		)
	}
	return nil
}

func (c *call) inventories(s inventory.ProviderInventories) (int, any, error) {
	c.setLastModified(s.ChangedAt)
	view := map[string]inventoryView{}
	for class, i := range s.Classes {
		view[class] = inventoryViewOf(i)
	}
	return http.StatusOK, map[string]any{
		"resource_provider_generation": s.Generation,
		"inventories":                  view,
	}, nil
}

func (h *handler) listInventories(c *call) (int, any, error) {
	s, err := h.store.ProviderInventories(c.Context(), c.PathValue("uuid"))
	if err != nil {
		return 0, nil, notFound(err, noProviderWrapped, c.PathValue("uuid"))
	}
	return c.inventories(s)
}

// newInventorySchema returns the schema of an inventory that a request creates.
func newInventorySchema() *schema {
	return inventorySchema([]string{"resource_class"},
		map[string]*schema{"resource_class": {kind: "string", pattern: classPattern}})
}

func (h *handler) createInventory(c *call) (int, any, error) {
	provider := c.PathValue("uuid")
	in, err := c.decodeObject(newInventorySchema())
	if err != nil {
		return 0, nil, h.unlessStale(c, nil, err)
	}
	class, i := stringOf(in["resource_class"]), readInventory(in)
	if err := c.checkInventory("create", class, i); err != nil {
		return 0, nil, h.unlessStale(c, nil, err)
	}
	s, err := h.store.CreateInventory(c.Context(), provider, class, i)
	if err != nil {
		err = prefixMessage(err,
			"Unable to create inventory for resource provider "+provider+": ", inventory.UnknownClass)
		return 0, nil, notFound(err, noProvider, provider)
	}
	c.setLocation("/resource_providers/" + provider + "/inventories/" + class)
	c.setLastModified(s.ChangedAt)
	return http.StatusCreated, c.oneInventory(s, class), nil
}

// oneInventory returns the view of one inventory of a provider.
func (c *call) oneInventory(s inventory.ProviderInventories, class string) inventoryView {
	view := inventoryViewOf(s.Classes[class])
	view.Generation = &s.Generation
	return view
}

// inventoriesSchema returns the schema of all inventories of a provider.
func inventoriesSchema() *schema {
	return &schema{kind: "object", required: []string{"resource_provider_generation", "inventories"},
		fields: map[string]*schema{
			"resource_provider_generation": integer,
			"inventories":                  {kind: "object", open: true, each: inventorySchema(nil, nil)},
		}}
}

// readInventories converts JSON that has passed the schema check to the inventories of a provider.
func readInventories(in map[string]any) inventory.ProviderInventories {
	s := inventory.ProviderInventories{
		Generation: intOf(in["resource_provider_generation"]),
		Classes:    map[string]inventory.Inventory{},
	}
	for class, v := range in["inventories"].(map[string]any) {
		s.Classes[class] = readInventory(v.(map[string]any))
	}
	return s
}

func (h *handler) replaceInventories(c *call) (int, any, error) {
	provider := c.PathValue("uuid")
	in, err := c.decodeObject(inventoriesSchema())
	if err != nil {
		return 0, nil, h.unlessStale(c, nil, err)
	}
	requested := readInventories(in)
	for _, class := range slices.Sorted(maps.Keys(requested.Classes)) {
		if err := c.checkInventory("update", class, requested.Classes[class]); err != nil {
			return 0, nil, h.unlessStale(c, &requested.Generation, err)
		}
	}
	s, err := h.store.ReplaceInventories(c.Context(), provider, requested.Generation, requested.Classes)
	if err != nil {
		prefix := "Unknown resource class in inventory for resource provider " + provider + ": "
		err = prefixMessage(err, prefix, inventory.UnknownClass)
		err = prefixMessage(err, "update conflict: ", inventory.InventoryInUse)
		return 0, nil, notFound(err, noProvider, provider)
	}
	return c.inventories(s)
}

func (h *handler) clearInventories(c *call) (int, any, error) {
	if err := h.store.DeleteInventories(c.Context(), c.PathValue("uuid")); err != nil {
		return 0, nil, notFound(err, noProvider, c.PathValue("uuid"))
	}
	return http.StatusNoContent, nil, nil
}

func (h *handler) showInventory(c *call) (int, any, error) {
	provider, class := c.PathValue("uuid"), c.PathValue("class")
	s, err := h.store.ProviderInventories(c.Context(), provider)
	if err != nil {
		return 0, nil, notFound(err, noProviderWrapped, provider)
	}
	if _, ok := s.Classes[class]; !ok {
		return 0, nil, fault(http.StatusNotFound, "No inventory of class %s for %s", class, provider)
	}
	c.setLastModified(s.ChangedAt)
	return http.StatusOK, c.oneInventory(s, class), nil
}

// changedInventorySchema returns the schema of an inventory that a request updates.
func changedInventorySchema() *schema {
	return inventorySchema([]string{"resource_provider_generation"}, nil)
}

func (h *handler) updateInventory(c *call) (int, any, error) {
	provider, class := c.PathValue("uuid"), c.PathValue("class")
	in, err := c.decodeObject(changedInventorySchema())
	if err != nil {
		return 0, nil, h.unlessStale(c, nil, err)
	}
	generation, i := intOf(in["resource_provider_generation"]), readInventory(in)
	if err := c.checkInventory("update", class, i); err != nil {
		return 0, nil, h.unlessStale(c, &generation, err)
	}
	s, err := h.store.UpdateInventory(c.Context(), provider, generation, class, i)
	if err != nil {
		prefix := "No inventory record with resource class for resource provider " + provider + ": "
		err = prefixMessage(err, prefix, inventory.Missing)
		err = changeKind(err, inventory.Missing, inventory.Invalid)
		err = changeKind(err, inventory.UnknownClass, inventory.Missing)
		return 0, nil, notFound(err, noProvider, provider)
	}
	c.setLastModified(s.ChangedAt)
	return http.StatusOK, c.oneInventory(s, class), nil
}

func (h *handler) deleteInventory(c *call) (int, any, error) {
	provider, class := c.PathValue("uuid"), c.PathValue("class")
	if err := h.store.DeleteInventory(c.Context(), provider, class); err != nil {
		err = prefixMessage(err, "Unable to delete inventory of class "+class+": ", inventory.InventoryInUse)
		err = changeKind(err, inventory.InventoryInUse, inventory.ConcurrentUpdate)
		return 0, nil, notFound(err, noProvider, provider)
	}
	return http.StatusNoContent, nil, nil
}
