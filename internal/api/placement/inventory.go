package placement

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"berth/internal/inventory"
)

// record is an inventory as clients see it.
type record struct {
	Total           int64  `json:"total"`
	Reserved        int64  `json:"reserved"`
	MinUnit         int64  `json:"min_unit"`
	MaxUnit         int64  `json:"max_unit"`
	StepSize        int64  `json:"step_size"`
	AllocationRatio ratio  `json:"allocation_ratio"`
	Generation      *int64 `json:"resource_provider_generation,omitempty"`
}

// ratio is written as Placement does: never as a whole number, so that clients that tell numbers apart see one kind.
type ratio float64

// MarshalJSON implements json.Marshaler.
func (r ratio) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(float64(r))
	if err == nil && !bytes.ContainsAny(raw, ".e") {
		raw = append(raw, ".0"...)
	}
	return raw, err
}

func recordOf(i inventory.Inventory) record {
	return record{Total: i.Total, Reserved: i.Reserved, MinUnit: i.MinUnit, MaxUnit: i.MaxUnit, StepSize: i.StepSize,
		AllocationRatio: ratio(i.AllocationRatio)}
}

// recordForm is the form of an inventory in a body; more fields and what is required come on top.
func recordForm(required []string, more map[string]*schema) *schema {
	counted := func(from float64) *schema {
		return &schema{kind: "integer", minimum: bound(from), maximum: bound(inventory.MaxInt)}
	}
	fields := map[string]*schema{
		"total": counted(1), "reserved": counted(0), "min_unit": counted(1), "max_unit": counted(1), "step_size": counted(1),
		"allocation_ratio":             {kind: "number", maximum: bound(3.40282e+38), minimum: bound(-3.40282e+38)},
		"resource_provider_generation": integer,
	}
	for name, form := range more {
		fields[name] = form
	}
	return &schema{kind: "object", required: append([]string{"total"}, required...), fields: fields}
}

// readRecord reads a checked record.
func readRecord(in map[string]any) inventory.Inventory {
	i := inventory.Of(whole(in["total"]))
	for name, field := range map[string]*int64{
		"reserved": &i.Reserved, "min_unit": &i.MinUnit, "max_unit": &i.MaxUnit, "step_size": &i.StepSize} {
		if v, sent := in[name]; sent {
			*field = whole(v)
		}
	}
	if ratio, sent := in["allocation_ratio"].(json.Number); sent {
		i.AllocationRatio, _ = ratio.Float64()
	}
	return i
}

// sound refuses an inventory whose reserve leaves too little; deed is create or update.
func (c *call) sound(deed, class string, i inventory.Inventory) error {
	provider := c.PathValue("uuid")
	if why := i.Sound(c.v >= 26); why != "" {
		return fault(http.StatusBadRequest,
			"Unable to %s inventory for resource provider %s: Invalid inventory for '%s' on resource provider '%s'. %s",
			deed, provider, class, provider, why)
	}
	return nil
}

func (c *call) stock(s inventory.Stock) (int, any, error) {
	c.modified(s.ChangedAt)
	shown := map[string]record{}
	for class, i := range s.Classes {
		shown[class] = recordOf(i)
	}
	return http.StatusOK, map[string]any{"resource_provider_generation": s.Generation, "inventories": shown}, nil
}

func (h *room) listInventories(c *call) (int, any, error) {
	s, err := h.store.Stock(c.Context(), c.PathValue("uuid"))
	if err != nil {
		return 0, nil, missing(err, noProviderWrapped, c.PathValue("uuid"))
	}
	return c.stock(s)
}

func (h *room) createInventory(c *call) (int, any, error) {
	provider := c.PathValue("uuid")
	in, err := c.object(recordForm([]string{"resource_class"},
		map[string]*schema{"resource_class": {kind: "string", pattern: classPattern}}))
	if err != nil {
		return 0, nil, h.unless(c, nil, err)
	}
	class, i := text(in["resource_class"]), readRecord(in)
	if err := c.sound("create", class, i); err != nil {
		return 0, nil, h.unless(c, nil, err)
	}
	s, err := h.store.AddInventory(c.Context(), provider, class, i)
	if err != nil {
		err = prefixed(err, "Unable to create inventory for resource provider "+provider+": ", inventory.UnknownClass)
		return 0, nil, missing(err, noProvider, provider)
	}
	c.location("/resource_providers/" + provider + "/inventories/" + class)
	c.modified(s.ChangedAt)
	return http.StatusCreated, c.one(s, class), nil
}

// one is a single inventory of a stock.
func (c *call) one(s inventory.Stock, class string) record {
	shown := recordOf(s.Classes[class])
	shown.Generation = &s.Generation
	return shown
}

// stockForm is the form of all inventories of a provider in a body.
func stockForm() *schema {
	return &schema{kind: "object", required: []string{"resource_provider_generation", "inventories"},
		fields: map[string]*schema{
			"resource_provider_generation": integer,
			"inventories":                  {kind: "object", open: true, each: recordForm(nil, nil)},
		}}
}

// readStock reads a checked stock.
func readStock(in map[string]any) inventory.Stock {
	s := inventory.Stock{Generation: whole(in["resource_provider_generation"]), Classes: map[string]inventory.Inventory{}}
	for class, v := range in["inventories"].(map[string]any) {
		s.Classes[class] = readRecord(v.(map[string]any))
	}
	return s
}

func (h *room) replaceInventories(c *call) (int, any, error) {
	provider := c.PathValue("uuid")
	in, err := c.object(stockForm())
	if err != nil {
		return 0, nil, h.unless(c, nil, err)
	}
	wanted := readStock(in)
	for _, class := range slices.Sorted(maps.Keys(wanted.Classes)) {
		if err := c.sound("update", class, wanted.Classes[class]); err != nil {
			return 0, nil, h.unless(c, &wanted.Generation, err)
		}
	}
	s, err := h.store.ReplaceStock(c.Context(), provider, wanted.Generation, wanted.Classes)
	if err != nil {
		err = prefixed(err, "Unknown resource class in inventory for resource provider "+provider+": ", inventory.UnknownClass)
		err = prefixed(err, "update conflict: ", inventory.InventoryInUse)
		return 0, nil, missing(err, noProvider, provider)
	}
	return c.stock(s)
}

func (h *room) clearInventories(c *call) (int, any, error) {
	if err := h.store.ClearStock(c.Context(), c.PathValue("uuid")); err != nil {
		return 0, nil, missing(err, noProvider, c.PathValue("uuid"))
	}
	return http.StatusNoContent, nil, nil
}

func (h *room) showInventory(c *call) (int, any, error) {
	provider, class := c.PathValue("uuid"), c.PathValue("class")
	s, err := h.store.Stock(c.Context(), provider)
	if err != nil {
		return 0, nil, missing(err, noProviderWrapped, provider)
	}
	if _, ok := s.Classes[class]; !ok {
		return 0, nil, fault(http.StatusNotFound, "No inventory of class %s for %s", class, provider)
	}
	c.modified(s.ChangedAt)
	return http.StatusOK, c.one(s, class), nil
}

func (h *room) updateInventory(c *call) (int, any, error) {
	provider, class := c.PathValue("uuid"), c.PathValue("class")
	in, err := c.object(recordForm([]string{"resource_provider_generation"}, nil))
	if err != nil {
		return 0, nil, h.unless(c, nil, err)
	}
	generation, i := whole(in["resource_provider_generation"]), readRecord(in)
	if err := c.sound("update", class, i); err != nil {
		return 0, nil, h.unless(c, &generation, err)
	}
	s, err := h.store.ChangeInventory(c.Context(), provider, generation, class, i)
	if err != nil {
		err = as(prefixed(err, "No inventory record with resource class for resource provider "+provider+": ", inventory.Missing),
			inventory.Missing, inventory.Invalid)
		err = as(err, inventory.UnknownClass, inventory.Missing)
		return 0, nil, missing(err, noProvider, provider)
	}
	c.modified(s.ChangedAt)
	return http.StatusOK, c.one(s, class), nil
}

func (h *room) deleteInventory(c *call) (int, any, error) {
	provider, class := c.PathValue("uuid"), c.PathValue("class")
	if err := h.store.RemoveInventory(c.Context(), provider, class); err != nil {
		err = as(prefixed(err, "Unable to delete inventory of class "+class+": ", inventory.InventoryInUse),
			inventory.InventoryInUse, inventory.Concurrent)
		return 0, nil, missing(err, noProvider, provider)
	}
	return http.StatusNoContent, nil, nil
}
