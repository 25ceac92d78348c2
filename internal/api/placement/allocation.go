package placement

import (
	"encoding/json"
	"errors"
	"net/http"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// allocationSchema returns the schema of one consumer's allocations. If a request sends empty allocations,
// berth deletes the allocations of the consumer. A POST may send empty allocations at any microversion, a PUT
// only from microversion 1.28 on.
func allocationSchema(v int, post bool) *schema {
	bodySchema := &schema{kind: "object", required: []string{"allocations"}, fields: map[string]*schema{}}
	require := func(name string, field *schema) {
		bodySchema.required = append(bodySchema.required, name)
		bodySchema.fields[name] = field
	}
	bodySchema.fields["allocations"] = providersSchema(v, post)
	if v >= 8 {
		require("project_id", someName)
		require("user_id", someName)
	}
	if v >= 28 {
		require("consumer_generation", &schema{kind: "integer", nullable: true})
	}
	if v >= 34 {
		bodySchema.fields["mappings"] = &schema{
			kind:    "object",
			minKeys: 1,
			open:    true,
			keys:    groupPattern,
			each:    &schema{kind: "array", minItems: 1, items: someUUID},
		}
	}
	if v >= 38 {
		require("consumer_type", &schema{
			kind:      "string",
			minLength: 1,
			maxLength: 255,
			pattern:   classPattern,
		})
	}
	return bodySchema
}

// providersSchema returns the schema of the providers in an allocation: a
// list before microversion 1.12, and an object from microversion 1.12 on.
func providersSchema(v int, post bool) *schema {
	resources := &schema{
		kind:    "object",
		minKeys: 1,
		keys:    classPattern,
		each:    amount,
	}
	if v < 12 {
		one := &schema{
			kind:     "object",
			required: []string{"uuid"},
			fields:   map[string]*schema{"uuid": someUUID},
		}
		return &schema{kind: "array", minItems: 1, items: &schema{kind: "object",
			required: []string{"resource_provider", "resources"},
			fields:   map[string]*schema{"resource_provider": one, "resources": resources}}}
	}
	bodySchema := &schema{
		kind: "object",
		keys: keyPattern,
		each: &schema{kind: "object", required: []string{"resources"},
			fields: map[string]*schema{"resources": resources, "generation": integer}},
	}
	if !post && v < 28 {
		bodySchema.minKeys = 1
	}
	return bodySchema
}

// consumerWrite returns the change of one consumer that a request asks for. The parameter `in` is the part of
// the request body about this consumer, which has passed the schema check; `raw` is the same JSON object, not
// decoded. Before microversion 1.8 a request contains no project and user, so the consumer gets the project
// and the user of Options.Incomplete.
func (h *handler) consumerWrite(
	v int,
	consumer string,
	in map[string]any,
	raw json.RawMessage,
) inventory.ConsumerWrite {
	w := readConsumerWrite(v, consumer, in)
	w.Order = allocationOrder(memberOf(raw, "allocations"))
	if v < 8 {
		w.Project, w.User = h.incomplete.Project, h.incomplete.User
	}
	return w
}

// readConsumerWrite reads the change of one consumer from the part `in` of a request body that has passed the
// schema check.
func readConsumerWrite(v int, consumer string, in map[string]any) inventory.ConsumerWrite {
	w := inventory.ConsumerWrite{Consumer: consumer, Allocations: readAllocations(in["allocations"])}
	if v >= 8 {
		w.Project, w.User = stringOf(in["project_id"]), stringOf(in["user_id"])
	}
	if v >= 28 {
		if w.Expect = inventory.ExpectAbsent(); in["consumer_generation"] != nil {
			w.Expect = inventory.ExpectGeneration(intOf(in["consumer_generation"]))
		}
	}
	if v >= 38 {
		kind := stringOf(in["consumer_type"])
		w.Type = &kind
	}
	return w
}

// readAllocations reads both formats of allocations: the list and the object. If a list of allocations names
// a provider twice, readAllocations uses the later entry.
func readAllocations(v any) inventory.Allocations {
	all := inventory.Allocations{}
	add := func(provider string, in any) {
		resources := map[string]int64{}
		for class, amount := range in.(map[string]any) {
			resources[class] = intOf(amount)
		}
		all[provider] = resources
	}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			item := item.(map[string]any)
			add(stringOf(item["resource_provider"].(map[string]any)["uuid"]), item["resources"])
		}
	case map[string]any:
		for provider, item := range v {
			add(provider, item.(map[string]any)["resources"])
		}
	}
	return all
}

func (h *handler) putAllocations(c *call) (int, any, error) {
	consumer, ok := canonicalUUID(c.PathValue("consumer"))
	if !ok {
		return 0, nil, fault(http.StatusBadRequest, "Malformed consumer_uuid: %s", c.PathValue("consumer"))
	}
	in, err := c.decodeObject(allocationSchema(c.v, false))
	if err != nil {
		return 0, nil, err
	}
	if err := h.store.PutAllocations(c.Context(), h.consumerWrite(c.v, consumer, in, c.raw)); err != nil {
		return 0, nil, prefixMessage(err,
			"Unable to allocate inventory for consumer "+consumer+": ", inventory.UnknownClass)
	}
	return http.StatusNoContent, nil, nil
}

// allocationsSchema returns the schema of the allocations of several consumers.
func allocationsSchema(v int) *schema {
	return &schema{
		kind:    "object",
		minKeys: 1,
		keys:    keyPattern,
		each:    allocationSchema(v, true),
	}
}

func (h *handler) postAllocations(c *call) (int, any, error) {
	in, err := c.decodeObject(allocationsSchema(c.v))
	if err != nil {
		return 0, nil, err
	}
	writes := make([]inventory.ConsumerWrite, 0, len(in))
	for _, m := range members(c.raw) {
		writes = append(writes, h.consumerWrite(c.v, m.name, in[m.name].(map[string]any), m.value))
	}
	if err := h.store.ReplaceAllocations(c.Context(), writes); err != nil {
		return 0, nil, prefixMessage(err, "Unable to allocate inventory ", inventory.UnknownClass)
	}
	return http.StatusNoContent, nil, nil
}

func (h *handler) deleteAllocations(c *call) (int, any, error) {
	err := h.store.DeleteAllocations(c.Context(), c.PathValue("consumer"))
	if errors.Is(err, db.ErrNotFound) {
		return 0, nil, fault(http.StatusNotFound, "No allocations for consumer '%s'", c.PathValue("consumer"))
	}
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, nil
}

// providerShare is what a consumer has allocated from one provider.
type providerShare struct {
	Resources  orderedObject `json:"resources"`
	Generation int64         `json:"generation"`
}

func (h *handler) showAllocations(c *call) (int, any, error) {
	found, err := h.store.Allocations(c.Context(), c.PathValue("consumer"))
	if err != nil {
		return 0, nil, err
	}
	c.setLastModified(found.ChangedAt)
	allocations, share := orderedObject{}, &providerShare{}
	for _, key := range found.Order { // the allocations from one provider are adjacent in Order
		if len(allocations) == 0 || allocations[len(allocations)-1].name != key.Provider {
			share = &providerShare{Generation: found.ProviderGenerations[key.Provider]}
			allocations = append(allocations, member{key.Provider, share})
		}
		share.Resources = append(share.Resources,
			member{key.Class, found.Allocations[key.Provider][key.Class]})
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

// consumerShare is what one consumer has allocated from a provider.
type consumerShare struct {
	Resources  map[string]int64 `json:"resources"`
	Generation *int64           `json:"consumer_generation,omitempty"`
}

func (h *handler) listProviderAllocations(c *call) (int, any, error) {
	found, err := h.store.ProviderAllocations(c.Context(), c.PathValue("uuid"))
	if err != nil {
		return 0, nil, notFound(err,
			"Resource provider '%s' not found: No resource provider with that uuid.",
			c.PathValue("uuid"))
	}
	c.setLastModified(found.ChangedAt)
	allocations := map[string]consumerShare{}
	for consumer, s := range found.Consumers {
		view := consumerShare{Resources: s.Resources}
		if c.v >= 28 {
			view.Generation = &s.Generation
		}
		allocations[consumer] = view
	}
	return http.StatusOK, map[string]any{
		"allocations": allocations, "resource_provider_generation": found.Generation}, nil
}
