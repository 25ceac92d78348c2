package placement

import (
	"errors"
	"net/http"

	"berth/internal/inventory"
	"berth/internal/store"
)

// allocationForm is the form of what is written for one consumer. A POST may remove a consumer's allocations at
// any version, a PUT from 1.28 on.
func allocationForm(v int, post bool) *schema {
	form := &schema{kind: "object", required: []string{"allocations"}, fields: map[string]*schema{}}
	require := func(name string, field *schema) {
		form.required = append(form.required, name)
		form.fields[name] = field
	}
	form.fields["allocations"] = providersForm(v, post)
	if v >= 8 {
		require("project_id", someName)
		require("user_id", someName)
	}
	if v >= 28 {
		require("consumer_generation", &schema{kind: "integer", nullable: true})
	}
	if v >= 34 {
		form.fields["mappings"] = &schema{kind: "object", minKeys: 1, open: true, keys: groupPattern,
			each: &schema{kind: "array", minItems: 1, items: someUUID}}
	}
	if v >= 38 {
		require("consumer_type", &schema{kind: "string", minLength: 1, maxLength: 255, pattern: classPattern})
	}
	return form
}

// providersForm is a list of providers before 1.12 and an object of them from then on.
func providersForm(v int, post bool) *schema {
	resources := &schema{kind: "object", minKeys: 1, keys: classPattern, each: amount}
	if v < 12 {
		one := &schema{kind: "object", required: []string{"uuid"}, fields: map[string]*schema{"uuid": someUUID}}
		return &schema{kind: "array", minItems: 1, items: &schema{kind: "object",
			required: []string{"resource_provider", "resources"},
			fields:   map[string]*schema{"resource_provider": one, "resources": resources}}}
	}
	form := &schema{kind: "object", keys: keyPattern, each: &schema{kind: "object", required: []string{"resources"},
		fields: map[string]*schema{"resources": resources, "generation": integer}}}
	if !post && v < 28 {
		form.minKeys = 1
	}
	return form
}

// write is what a checked body says about one consumer. Clients before 1.8 do not name its owner, and so it belongs
// to nobody in particular.
func (h *room) write(v int, consumer string, in map[string]any) inventory.ConsumerWrite {
	w := readWrite(v, consumer, in)
	if v < 8 {
		w.Project, w.User = h.incomplete.Project, h.incomplete.User
	}
	return w
}

// readWrite reads what a checked body says about one consumer.
func readWrite(v int, consumer string, in map[string]any) inventory.ConsumerWrite {
	w := inventory.ConsumerWrite{Consumer: consumer, Allocations: readAllocations(in["allocations"])}
	if v >= 8 {
		w.Project, w.User = text(in["project_id"]), text(in["user_id"])
	}
	if v >= 28 {
		if w.Expect = inventory.Absent(); in["consumer_generation"] != nil {
			w.Expect = inventory.At(whole(in["consumer_generation"]))
		}
	}
	if v >= 38 {
		kind := text(in["consumer_type"])
		w.Type = &kind
	}
	return w
}

// readAllocations reads both forms. Of a provider that a list mentions twice, the later mention counts.
func readAllocations(v any) inventory.Allocations {
	all := inventory.Allocations{}
	add := func(provider string, in any) {
		resources := map[string]int64{}
		for class, amount := range in.(map[string]any) {
			resources[class] = whole(amount)
		}
		all[provider] = resources
	}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			item := item.(map[string]any)
			add(text(item["resource_provider"].(map[string]any)["uuid"]), item["resources"])
		}
	case map[string]any:
		for provider, item := range v {
			add(provider, item.(map[string]any)["resources"])
		}
	}
	return all
}

func (h *room) putAllocations(c *call) (int, any, error) {
	consumer, ok := canonical(c.PathValue("consumer"))
	if !ok {
		return 0, nil, fault(http.StatusBadRequest, "Malformed consumer_uuid: %s", c.PathValue("consumer"))
	}
	in, err := c.object(allocationForm(c.v, false))
	if err != nil {
		return 0, nil, err
	}
	if err := h.store.PutAllocations(c.Context(), h.write(c.v, consumer, in)); err != nil {
		return 0, nil, prefixed(err, "Unable to allocate inventory for consumer "+consumer+": ", inventory.UnknownClass)
	}
	return http.StatusNoContent, nil, nil
}

func (h *room) postAllocations(c *call) (int, any, error) {
	in, err := c.object(&schema{kind: "object", minKeys: 1, keys: keyPattern, each: allocationForm(c.v, true)})
	if err != nil {
		return 0, nil, err
	}
	writes := make([]inventory.ConsumerWrite, 0, len(in))
	for consumer, v := range in {
		writes = append(writes, h.write(c.v, consumer, v.(map[string]any)))
	}
	if err := h.store.ReplaceAllocations(c.Context(), writes); err != nil {
		return 0, nil, prefixed(err, "Unable to allocate inventory ", inventory.UnknownClass)
	}
	return http.StatusNoContent, nil, nil
}

func (h *room) deleteAllocations(c *call) (int, any, error) {
	err := h.store.DeleteAllocations(c.Context(), c.PathValue("consumer"))
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil, fault(http.StatusNotFound, "No allocations for consumer '%s'", c.PathValue("consumer"))
	}
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, nil
}

// held is what is held of one provider.
type held struct {
	Resources  map[string]int64 `json:"resources"`
	Generation int64            `json:"generation"`
}

func (h *room) showAllocations(c *call) (int, any, error) {
	found, err := h.store.Allocations(c.Context(), c.PathValue("consumer"))
	if err != nil {
		return 0, nil, err
	}
	c.modified(found.ChangedAt)
	allocations := map[string]held{}
	for provider, resources := range found.Allocations {
		allocations[provider] = held{Resources: resources, Generation: found.Providers[provider]}
	}
	answer := map[string]any{"allocations": allocations}
	if len(allocations) == 0 {
		return http.StatusOK, answer, nil
	}
	if c.v >= 12 {
		owner := h.incomplete
		if found.Project != "" {
			owner = inventory.Owner{Project: found.Project, User: found.User}
		}
		answer["project_id"], answer["user_id"] = owner.Project, owner.User
	}
	if c.v >= 28 {
		answer["consumer_generation"] = found.Generation
	}
	if c.v >= 38 {
		answer["consumer_type"] = "unknown"
		if found.Type != nil {
			answer["consumer_type"] = *found.Type
		}
	}
	return http.StatusOK, answer, nil
}

// share is what one consumer holds of a provider.
type share struct {
	Resources  map[string]int64 `json:"resources"`
	Generation *int64           `json:"consumer_generation,omitempty"`
}

func (h *room) listProviderAllocations(c *call) (int, any, error) {
	found, err := h.store.ProviderHoldings(c.Context(), c.PathValue("uuid"))
	if err != nil {
		return 0, nil, missing(err, "Resource provider '%s' not found: No resource provider with that uuid.", c.PathValue("uuid"))
	}
	c.modified(found.ChangedAt)
	allocations := map[string]share{}
	for consumer, s := range found.Consumers {
		shown := share{Resources: s.Resources}
		if c.v >= 28 {
			shown.Generation = &s.Generation
		}
		allocations[consumer] = shown
	}
	return http.StatusOK, map[string]any{
		"allocations": allocations, "resource_provider_generation": found.Generation}, nil
}
