package placement

import (
	"errors"
	"net/http"
	"time"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

type class struct {
	Name  string `json:"name"`
	Links []link `json:"links"`
}

func classOf(name string) class {
	return class{Name: name, Links: []link{{"self", Prefix + "/resource_classes/" + name}}}
}

func classNotFound(err error, name string) error {
	if errors.Is(err, db.ErrNotFound) {
		return fault(http.StatusNotFound, "No such resource class %s.", name)
	}
	return err
}

func (h *handler) listClasses(c *call) (int, any, error) {
	classes, err := h.store.Classes(c.Context())
	if err != nil {
		return 0, nil, err
	}
	view := make([]class, len(classes))
	var newest time.Time
	for i, found := range classes {
		view[i] = classOf(found.Name)
		if found.ChangedAt.After(newest) {
			newest = found.ChangedAt
		}
	}
	c.setLastModified(newest)
	return http.StatusOK, map[string]any{"resource_classes": view}, nil
}

var classForm = &schema{
	kind:     "object",
	required: []string{"name"},
	fields:   map[string]*schema{"name": customName},
}

func (h *handler) createClass(c *call) (int, any, error) {
	in, err := c.decodeObject(classForm)
	if err != nil {
		return 0, nil, err
	}
	name := stringOf(in["name"])
	created, err := h.store.EnsureClass(c.Context(), name)
	if err != nil {
		return 0, nil, err
	}
	if !created {
		return 0, nil, inventory.Faultf(inventory.Conflict,
			"Conflicting resource class already exists: %s", name)
	}
	c.setLocation("/resource_classes/" + name)
	return http.StatusCreated, nil, nil
}

func (h *handler) showClass(c *call) (int, any, error) {
	found, err := h.store.Class(c.Context(), c.PathValue("name"))
	if err != nil {
		return 0, nil, classNotFound(err, c.PathValue("name"))
	}
	c.setLastModified(found.ChangedAt)
	return http.StatusOK, classOf(found.Name), nil
}

// updateClass renames a resource class before microversion 1.7. From microversion 1.7 on, updateClass creates
// the resource class if the class does not exist yet.
func (h *handler) updateClass(c *call) (int, any, error) {
	name := c.PathValue("name")
	if c.v < 7 {
		return h.renameClass(c, name)
	}
	if m := customName.check(name); m != nil {
		return 0, nil, fault(http.StatusBadRequest, "JSON does not validate: %s", m)
	}
	created, err := h.store.EnsureClass(c.Context(), name)
	if err != nil {
		return 0, nil, err
	}
	c.setLocation("/resource_classes/" + name)
	if created {
		return http.StatusCreated, nil, nil
	}
	return http.StatusNoContent, nil, nil
}

func (h *handler) renameClass(c *call, name string) (int, any, error) {
	in, err := c.decodeObject(classForm)
	if err != nil {
		return 0, nil, err
	}
	requested := stringOf(in["name"])
	if err := h.store.RenameClass(c.Context(), name, requested); err != nil {
		return 0, nil, classNotFound(err, name)
	}
	return http.StatusOK, classOf(requested), nil
}

func (h *handler) deleteClass(c *call) (int, any, error) {
	name := c.PathValue("name")
	if err := h.store.DeleteClass(c.Context(), name); err != nil {
		return 0, nil, classNotFound(prefixMessage(err, "Error in delete resource class: "), name)
	}
	return http.StatusNoContent, nil, nil
}
