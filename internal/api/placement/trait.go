package placement

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

func (c *call) traits(t inventory.Traits) (int, any, error) {
	c.setLastModified(t.ChangedAt)
	names := t.Names
	if names == nil {
		names = []string{}
	}
	return http.StatusOK, map[string]any{"traits": names, "resource_provider_generation": t.Generation}, nil
}

func (h *handler) listProviderTraits(c *call) (int, any, error) {
	t, err := h.store.ProviderTraits(c.Context(), c.PathValue("uuid"))
	if err != nil {
		return 0, nil, notFound(err, noProviderWrapped, c.PathValue("uuid"))
	}
	return c.traits(t)
}

// providerTraitsSchema returns the schema of all traits of a provider.
func providerTraitsSchema() *schema {
	return &schema{kind: "object", required: []string{"traits", "resource_provider_generation"},
		fields: map[string]*schema{
			"traits":                       {kind: "array", items: someName},
			"resource_provider_generation": integer,
		}}
}

func (h *handler) replaceProviderTraits(c *call) (int, any, error) {
	in, err := c.decodeObject(providerTraitsSchema())
	if err != nil {
		return 0, nil, err
	}
	t, err := h.store.SetProviderTraits(c.Context(), c.PathValue("uuid"),
		intOf(in["resource_provider_generation"]), stringsOf(in["traits"]))
	if err != nil {
		return 0, nil, notFound(err, noProvider, c.PathValue("uuid"))
	}
	return c.traits(t)
}

func (h *handler) clearProviderTraits(c *call) (int, any, error) {
	if err := h.store.ClearProviderTraits(c.Context(), c.PathValue("uuid")); err != nil {
		return 0, nil, notFound(err, noProvider, c.PathValue("uuid"))
	}
	return http.StatusNoContent, nil, nil
}

var traitForm = &schema{kind: "object", fields: map[string]*schema{
	"name": {kind: "string", minLength: 1}, "associated": {kind: "string", minLength: 1}}}

func (h *handler) listTraits(c *call) (int, any, error) {
	query, err := c.decodeQuery(traitForm)
	if err != nil {
		return 0, nil, err
	}
	filter, err := traitFilter(query)
	if err != nil {
		return 0, nil, err
	}
	found, err := h.store.Traits(c.Context(), filter)
	if err != nil {
		return 0, nil, err
	}
	names := make([]string, len(found))
	var newest time.Time
	for i, t := range found {
		names[i] = t.Name
		if t.ChangedAt.After(newest) {
			newest = t.ChangedAt
		}
	}
	c.setLastModified(newest)
	return http.StatusOK, map[string]any{"traits": names}, nil
}

func traitFilter(query map[string]string) (f inventory.TraitFilter, err error) {
	if name, sent := query["name"]; sent {
		operator, value, ok := strings.Cut(name, ":")
		switch {
		case !ok:
			return f, fault(
				http.StatusBadRequest,
				"Badly formatted name parameter. Expected name query string parameter "+
					"in form: ?name=[in|startswith]:[name1,name2|prefix]. Got: \"%s\"",
				name,
			)
		case operator == "in":
			f.Names = strings.Split(value, ",")
		case operator == "startswith":
			f.Prefix = &value
		}
	}
	if associated, sent := query["associated"]; sent {
		requested := strings.EqualFold(associated, "true")
		if !requested && !strings.EqualFold(associated, "false") {
			return f, fault(http.StatusBadRequest,
				`The query parameter "associated" only accepts "true" or "false"`)
		}
		f.Associated = &requested
	}
	return f, nil
}

func traitNotFound(err error, name string) error {
	if errors.Is(err, db.ErrNotFound) {
		return fault(http.StatusNotFound, "No such trait(s): %s.", name)
	}
	return err
}

func (h *handler) showTrait(c *call) (int, any, error) {
	t, err := h.store.Trait(c.Context(), c.PathValue("name"))
	if err != nil {
		return 0, nil, traitNotFound(err, c.PathValue("name"))
	}
	c.setLastModified(t.ChangedAt)
	return http.StatusNoContent, nil, nil
}

func (h *handler) putTrait(c *call) (int, any, error) {
	name := c.PathValue("name")
	if customName.check(name) != nil {
		return 0, nil, fault(
			http.StatusBadRequest,
			`The trait is invalid. A valid trait must be no longer than 255 characters, `+
				`start with the prefix "CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"`,
		)
	}
	t, created, err := h.store.EnsureTrait(c.Context(), name)
	if err != nil {
		return 0, nil, err
	}
	c.setLocation("/traits/" + name)
	c.setLastModified(t.ChangedAt)
	if created {
		return http.StatusCreated, nil, nil
	}
	return http.StatusNoContent, nil, nil
}

func (h *handler) deleteTrait(c *call) (int, any, error) {
	if err := h.store.DeleteTrait(c.Context(), c.PathValue("name")); err != nil {
		return 0, nil, traitNotFound(err, c.PathValue("name"))
	}
	return http.StatusNoContent, nil, nil
}
