package placement

import (
	"errors"
	"net/http"
	"regexp"

	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// provider is the JSON format of a resource provider. The field parent_provider_uuid is missing before
// microversion 1.14. From microversion 1.14 on, parent_provider_uuid is null for a root provider. The field
// Parent is a pointer to a pointer, because it must distinguish a missing parent_provider_uuid from the value
// null.
type provider struct {
	UUID       string   `json:"uuid"`
	Name       string   `json:"name"`
	Generation int64    `json:"generation"`
	Links      []link   `json:"links"`
	Parent     **string `json:"parent_provider_uuid,omitempty"`
	Root       string   `json:"root_provider_uuid,omitempty"`
}

// providerLinks are the links of a provider with their first microversion.
var providerLinks = []struct {
	rel  string
	from int
}{{"inventories", 0}, {"usages", 0}, {"aggregates", 1}, {"traits", 6}, {"allocations", 11}}

func (c *call) provider(p inventory.Provider) provider {
	self := Prefix + "/resource_providers/" + p.UUID
	view := provider{
		UUID:       p.UUID,
		Name:       p.Name,
		Generation: p.Generation,
		Links:      []link{{"self", self}},
	}
	for _, l := range providerLinks {
		if c.v >= l.from {
			view.Links = append(view.Links, link{l.rel, self + "/" + l.rel})
		}
	}
	if c.v >= 14 {
		var parent *string
		if p.Parent != "" {
			parent = &p.Parent
		}
		view.Parent, view.Root = &parent, p.Root
	}
	return view
}

// notFound replaces the store's error for a missing provider by a 404 with the given message.
func notFound(err error, format, uuid string) error {
	if errors.Is(err, db.ErrNotFound) {
		return fault(http.StatusNotFound, format, uuid)
	}
	return err
}

const (
	noProvider        = "No resource provider with uuid %s found"
	noProviderWrapped = "No resource provider with uuid %s found : No resource provider with that uuid."
)

// unlessStale returns the error that a check of the request body has found. If the provider does not exist or
// has another generation than the given one, unlessStale returns an error about the provider or the
// generation instead, because Placement checks the provider and the generation before the body.
func (h *handler) unlessStale(c *call, generation *int64, invalid error) error {
	p, err := h.store.Provider(c.Context(), c.PathValue("uuid"))
	switch {
	case err != nil:
		return notFound(err, noProvider, c.PathValue("uuid"))
	case generation != nil && p.Generation != *generation:
		return inventory.Faultf(inventory.ConcurrentUpdate, "resource provider generation conflict")
	}
	return invalid
}

func providerSchema(v int, fields map[string]*schema) *schema {
	fields["name"] = &schema{kind: "string", maxLength: 200}
	if v >= 14 {
		fields["parent_provider_uuid"] = &schema{
			kind:      "string",
			nullable:  true,
			uuid:      true,
			maxLength: someUUID.maxLength,
		}
	}
	return &schema{kind: "object", required: []string{"name"}, fields: fields}
}

func (h *handler) createProvider(c *call) (int, any, error) {
	in, err := c.decodeObject(providerSchema(c.v, map[string]*schema{"uuid": someUUID}))
	if err != nil {
		return 0, nil, err
	}
	requested := inventory.ProviderDraft{
		Name:   stringOf(in["name"]),
		Parent: stringOf(in["parent_provider_uuid"]),
	}
	if requested.UUID = uuid.NewString(); in["uuid"] != nil {
		requested.UUID, _ = canonicalUUID(stringOf(in["uuid"]))
	}
	words := `Unable to create resource provider "` + requested.Name + `", ` + requested.UUID + `: Object action create failed because: `
	switch parent, _ := canonicalUUID(requested.Parent); {
	case requested.Name == "":
		return 0, nil, fault(http.StatusBadRequest, "%sname is required", words)
	case parent == requested.UUID:
		return 0, nil, fault(http.StatusBadRequest,
			"%sparent provider UUID cannot be same as UUID. Please choose a different UUID.", words)
	}
	p, err := h.store.CreateProvider(c.Context(), requested)
	if err != nil {
		return 0, nil, prefixMessage(err, words, inventory.Invalid)
	}
	c.setLocation("/resource_providers/" + p.UUID)
	if c.v < 20 {
		return http.StatusCreated, nil, nil
	}
	c.setLastModified(p.ChangedAt)
	return http.StatusOK, c.provider(p), nil
}

func (h *handler) showProvider(c *call) (int, any, error) {
	p, err := h.store.Provider(c.Context(), c.PathValue("uuid"))
	if err != nil {
		return 0, nil, notFound(err, noProvider, c.PathValue("uuid"))
	}
	c.setLastModified(p.ChangedAt)
	return http.StatusOK, c.provider(p), nil
}

func (h *handler) updateProvider(c *call) (int, any, error) {
	in, err := c.decodeObject(providerSchema(c.v, map[string]*schema{}))
	if err != nil {
		return 0, nil, h.unlessStale(c, nil, err)
	}
	change := inventory.ProviderChange{UUID: c.PathValue("uuid"), Name: stringOf(in["name"]), Move: c.v >= 37}
	if parent, sent := in["parent_provider_uuid"]; sent {
		requested := stringOf(parent)
		change.Parent = &requested
	}
	p, err := h.store.UpdateProvider(c.Context(), change)
	if err != nil {
		prefix := "Unable to save resource provider " + change.UUID + ": "
		err = prefixMessage(err, prefix+"Object action update failed because: ", inventory.Invalid)
		return 0, nil, notFound(err, noProvider, change.UUID)
	}
	c.setLastModified(p.ChangedAt)
	return http.StatusOK, c.provider(p), nil
}

func (h *handler) deleteProvider(c *call) (int, any, error) {
	if err := h.store.DeleteProvider(c.Context(), c.PathValue("uuid")); err != nil {
		return 0, nil, notFound(err,
			"No resource provider with uuid %s found for delete", c.PathValue("uuid"))
	}
	return http.StatusNoContent, nil, nil
}

var dashedUUID = &schema{kind: "string", pattern: regexp.MustCompile(
	`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)}

func (h *handler) listProviders(c *call) (int, any, error) {
	filter, err := c.providerFilter()
	if err != nil {
		return 0, nil, err
	}
	providers, err := h.store.Providers(c.Context(), filter)
	if err != nil {
		return 0, nil, unknownNames(err)
	}
	view := make([]provider, len(providers))
	var newest inventory.Provider
	for i, p := range providers {
		view[i] = c.provider(p)
		if p.ChangedAt.After(newest.ChangedAt) {
			newest = p
		}
	}
	c.setLastModified(newest.ChangedAt)
	return http.StatusOK, map[string]any{"resource_providers": view}, nil
}
