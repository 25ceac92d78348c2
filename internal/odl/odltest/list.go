package odltest

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// pagedTypes are the object types whose lists are paged if the query has a limit.
var pagedTypes = []string{"network", "subnet", "port"}

// listObjects answers with the objects that match the query, sorted by ID. Each listed object has the fields
// that the query selects.
func (c *Controller) listObjects(r resource, seen Request) reply {
	asked, err := url.ParseQuery(seen.Query)
	if err != nil {
		return errorReply(http.StatusBadRequest, "Invalid requests")
	}
	if r.parentPath != "" && c.object("pool", seen.ParentID) == nil {
		return errorReply(http.StatusNotFound, "pool UUID does not exist.")
	}
	list := []map[string]any{}
	for _, k := range slices.Sorted(maps.Keys(c.records)) {
		rec := c.records[k]
		if rec.Type != r.objectType || rec.Object == nil ||
			r.parentAttribute != "" && rec.Object[r.parentAttribute] != seen.ParentID {
			continue
		}
		view := c.view(rec.Type, rec.ID)
		if r.objectType == "port" && view["mac_address"] == nil {
			return serverError
		}
		if matchesQuery(r.objectType, view, asked) {
			list = append(list, view)
		}
	}
	body := map[string]any{}
	if asked.Has("limit") && slices.Contains(pagedTypes, r.objectType) {
		var next string
		var a reply
		if list, next, a = page(list, asked); a.status != 0 {
			return a
		}
		body[r.listKey()+"_links"] = links(seen.Path, next, asked)
	}
	for i, o := range list {
		list[i] = selectFields(r.objectType, o, asked["fields"])
	}
	body[r.listKey()] = list
	return reply{status: http.StatusOK, body: body}
}

// matchesQuery reports whether an object has one of the query's values for each attribute. Unknown attributes
// are ignored, and so are all attributes of L2 gateway connections.
func matchesQuery(typ string, o map[string]any, asked url.Values) bool {
	if typ == "l2gateway_connection" {
		return true
	}
	for name, values := range asked {
		if isAttribute(typ, name) && !slices.Contains(values, fmt.Sprint(o[name])) {
			return false
		}
	}
	return true
}

// page returns at most as many objects as the query's limit, beginning after the object that the query's
// marker names. If there is a next page, page also returns the marker for the next page.
func page(list []map[string]any, asked url.Values) (part []map[string]any, next string, refused reply) {
	limit, err := strconv.Atoi(asked.Get("limit"))
	if err != nil || limit <= 0 {
		return nil, "", serverError
	}
	if marker := asked.Get("marker"); marker != "" {
		i := slices.IndexFunc(list, func(o map[string]any) bool { return o["id"] == marker })
		if i < 0 {
			return nil, "", errorReply(http.StatusNotFound, "UUID for marker: %s could not be found", marker)
		}
		list = list[i+1:]
	}
	if len(list) > limit {
		list = list[:limit]
		next = fmt.Sprint(list[limit-1]["id"])
	}
	return list, next, reply{}
}

// links returns a list with the link to the next page. If there is no next page, links returns an empty list.
func links(path, next string, asked url.Values) []map[string]string {
	if next == "" {
		return []map[string]string{}
	}
	asked.Set("marker", next)
	return []map[string]string{{"rel": "next", "href": BasePath + path + "?" + asked.Encode()}}
}

// selectFields returns the object with the given fields, or with all fields if `fields` is empty. The result
// always contains the attributes that the real controller returns even without a value: as null, or as an
// empty object or list.
func selectFields(typ string, o map[string]any, fields []string) map[string]any {
	if len(fields) == 0 {
		return o
	}
	part := map[string]any{}
	for _, name := range fields {
		if v, ok := o[name]; ok {
			part[name] = v
		}
	}
	for _, a := range schemas[typ] {
		switch {
		case a.kind == valueMap:
			part["Map"] = map[string]any{}
		case a.orNull && part[a.name] == nil:
			part[a.name] = nil
		}
	}
	if typ == "pool" && part["members"] == nil {
		part["members"] = []any{}
	}
	return part
}
