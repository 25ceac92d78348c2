package blazar

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/lease"
	"berth/internal/store/db"
)

// resourceCollection is a collection of resources that operators register: the network segments or the
// devices of Chameleon's Blazar. The routes, bodies and answers have the same form as those of /v1/os-hosts.
type resourceCollection struct {
	typ      string // the resource type of reservations
	plural   string // the collection in paths, in lists and in the names of policy rules
	singular string // the key of one resource in answers
	optional string // an attribute that is null if a resource does not have it, or ""
	number   string // an attribute that is a number in answers, or ""
}

var resourceCollections = []resourceCollection{
	{
		typ:      lease.NetworkSegment,
		plural:   "networks",
		singular: "network",
		optional: "physical_network",
		number:   "segment_id",
	},
	{typ: lease.Device, plural: "devices", singular: "device"},
}

// collectionHandler handles the requests for one collection.
type collectionHandler struct {
	*handler
	resourceCollection
}

func (c collectionHandler) endpoints() []endpoint {
	path, rule := "/v1/"+c.plural, c.plural+":"
	return []endpoint{
		{
			method: "GET",
			path:   path,
			rule:   rule + "get",
			handle: c.list,
		},
		{
			method: "POST",
			path:   path,
			rule:   rule + "post",
			handle: c.create,
		},
		{
			method: "GET",
			path:   path + "/allocations",
			rule:   rule + "get_allocations",
			handle: c.listAllocations,
		},
		{
			method: "GET",
			path:   path + "/properties",
			rule:   rule + "get_resource_properties",
			handle: c.listProperties,
		},
		{
			method: "PATCH",
			path:   path + "/properties/{id}",
			rule:   rule + "patch_resource_properties",
			handle: c.updateProperty,
		},
		{
			method: "GET",
			path:   path + "/{id}",
			rule:   rule + "get",
			handle: c.show,
		},
		{
			method: "PUT",
			path:   path + "/{id}",
			rule:   rule + "put",
			handle: c.update,
		},
		{
			method: "DELETE",
			path:   path + "/{id}",
			rule:   rule + "delete",
			handle: c.delete,
		},
		{
			method: "GET",
			path:   path + "/{id}/allocation",
			rule:   rule + "get_allocations",
			handle: c.showAllocation,
		},
	}
}

// view returns the JSON object of a resource: its attributes and capabilities in one object. A capability
// never replaces an attribute.
func (c resourceCollection) view(r lease.ReservableResource) map[string]any {
	v := map[string]any{}
	for key, value := range r.Capabilities {
		v[key] = value
	}
	if c.optional != "" {
		v[c.optional] = nil
	}
	for key, value := range r.Attributes {
		v[key] = value
	}
	if c.number != "" {
		// the rules of the resource type have already checked the number
		v[c.number], _ = strconv.Atoi(r.Attributes[c.number])
	}
	v["id"], v["created_at"], v["updated_at"] = r.ID.String(), stamp(r.CreatedAt), stampOrNull(r.UpdatedAt)
	return v
}

// answer returns the answer with one resource.
func (c collectionHandler) answer(status int, r lease.ReservableResource, err error) (int, any, error) {
	if err != nil {
		return 0, nil, err
	}
	return status, map[string]any{c.singular: c.view(r)}, nil
}

func (c collectionHandler) list(r *http.Request) (int, any, error) {
	return list[lease.ReservableResource]{
		name: c.plural,
		noun: c.singular,
		read: shorterIsLast(
			func(ctx context.Context, after lease.ReservableResource, most int) ([]lease.ReservableResource, error) {
				return c.Store.ResourcePage(ctx, c.typ, after.Position(), most)
			},
		),
		find: c.find,
		view: func(one lease.ReservableResource) any { return c.view(one) },
	}.answer(r)
}

// find returns the resource with the given UUID.
func (c collectionHandler) find(ctx context.Context, text string) (lease.ReservableResource, error) {
	id, _ := osapi.UUID(text)
	return c.Store.ReservableResource(ctx, c.typ, id)
}

func (c collectionHandler) create(r *http.Request) (int, any, error) {
	set, _, err := resourceValues(r)
	if err != nil {
		return 0, nil, err
	}
	made, err := c.Store.RegisterResource(r.Context(), c.typ, set)
	return c.answer(http.StatusCreated, made, err)
}

// resourceValues reads the fields of a resource. A field with the value null removes the attribute or
// capability.
func resourceValues(r *http.Request) (set map[string]string, unset []string, err error) {
	o, err := body(r)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if !o.has(name) {
			unset = append(unset, name)
			delete(o, name)
		}
	}
	set, err = capabilities(o)
	return set, unset, err
}

func (c collectionHandler) show(r *http.Request) (int, any, error) {
	id, err := c.id(r)
	if err != nil {
		return 0, nil, err
	}
	one, err := c.Store.ReservableResource(r.Context(), c.typ, id)
	return c.answer(http.StatusOK, one, c.notFound(r, err))
}

func (c collectionHandler) update(r *http.Request) (int, any, error) {
	id, err := c.id(r)
	if err != nil {
		return 0, nil, err
	}
	set, unset, err := resourceValues(r)
	if err != nil {
		return 0, nil, err
	}
	if len(set)+len(unset) == 0 {
		return 0, nil, lease.Faultf(lease.MissingParameter,
			"Nothing to update: the body names no capability.")
	}
	one, err := c.Store.UpdateResource(r.Context(), c.typ, id, set, unset)
	return c.answer(http.StatusOK, one, c.notFound(r, err))
}

func (c collectionHandler) delete(r *http.Request) (int, any, error) {
	id, err := c.id(r)
	if err != nil {
		return 0, nil, err
	}
	if err := c.Store.DeleteResource(r.Context(), c.typ, id); err != nil {
		return 0, nil, c.notFound(r, err)
	}
	return noContent(r)
}

// id returns the resource's UUID from the path.
func (c collectionHandler) id(r *http.Request) (uuid.UUID, error) {
	text := r.PathValue("id")
	id, ok := osapi.UUID(text)
	if !ok || id == uuid.Nil {
		return id, objectNotFound(c.singular, text)
	}
	return id, nil
}

func (c collectionHandler) notFound(r *http.Request, err error) error {
	if errors.Is(err, db.ErrNotFound) {
		return objectNotFound(c.singular, r.PathValue("id"))
	}
	return err
}

func (c collectionHandler) listAllocations(r *http.Request) (int, any, error) {
	filter := useFilter(r)
	return list[lease.ResourceAllocation]{
		name: "allocations",
		noun: c.singular,
		read: shorterIsLast(
			func(ctx context.Context, after lease.ResourceAllocation, most int) ([]lease.ResourceAllocation, error) {
				filter.AfterResource, filter.Limit = lease.Position{
					CreatedAt: after.CreatedAt,
					ID:        after.Resource,
				}, most
				return c.Store.ResourceAllocations(ctx, c.typ, uuid.Nil, filter)
			},
		),
		find: func(ctx context.Context, marker string) (lease.ResourceAllocation, error) {
			one, err := c.find(ctx, marker)
			return lease.ResourceAllocation{Resource: one.ID, CreatedAt: one.CreatedAt}, err
		},
		view: func(u lease.ResourceAllocation) any { return newUseView(u.Resource.String(), u.Reservations) },
	}.answer(r)
}

func (c collectionHandler) showAllocation(r *http.Request) (int, any, error) {
	id, err := c.id(r)
	if err != nil {
		return 0, nil, err
	}
	all, err := c.Store.ResourceAllocations(r.Context(), c.typ, id, useFilter(r))
	if err != nil {
		return 0, nil, err
	}
	if len(all) == 0 {
		return 0, nil, objectNotFound(c.singular, r.PathValue("id"))
	}
	return http.StatusOK, map[string]any{"allocation": newUseView(id.String(), all[0].Reservations)}, nil
}

func (c collectionHandler) listProperties(r *http.Request) (int, any, error) {
	query := r.URL.Query()
	all, err := c.Store.ResourceProperties(r.Context(), c.typ, query.Get("all") != "")
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, propertiesView(all, query.Get("detail") != ""), nil
}

func (c collectionHandler) updateProperty(r *http.Request) (int, any, error) {
	return updatePrivate(
		r,
		c.typ,
		func(ctx context.Context, name string, private bool) (lease.ResourceProperty, error) {
			return c.Store.SetResourcePropertyPrivate(ctx, c.typ, name, private)
		},
	)
}
