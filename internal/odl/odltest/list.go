package odltest

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// paged are the types whose lists come in pages, if a limit is asked for.
var paged = []string{"network", "subnet", "port"}

// all lists the objects that have the attributes that are asked for, with the fields that are; sorted by ID.
func (c *Controller) all(r resource, seen Request) reply {
	asked, err := url.ParseQuery(seen.Query)
	if err != nil {
		return refuse(http.StatusBadRequest, "Invalid requests")
	}
	list := []map[string]any{}
	for _, k := range slices.Sorted(maps.Keys(c.records)) {
		rec := c.records[k]
		if rec.Type == r.typ && rec.Object != nil && (r.outer == "" || rec.Object[r.outer] == seen.ParentID) && fits(rec.Object, asked) {
			list = append(list, rec.Object)
		}
	}
	body := map[string]any{}
	if asked.Has("limit") && slices.Contains(paged, r.typ) {
		var next string
		var a reply
		if list, next, a = page(list, asked); a.status != 0 {
			return a
		}
		body[r.list()+"_links"] = links(seen.Path, next, asked)
	}
	for i, o := range list {
		list[i] = only(o, asked["fields"])
	}
	body[r.list()] = list
	return reply{status: http.StatusOK, body: body}
}

// about are the words of a query that are no attributes.
var about = []string{"fields", "limit", "marker", "page_reverse"}

// fits tells whether an object has the attributes of a query.
func fits(o map[string]any, asked url.Values) bool {
	for name, values := range asked {
		if !slices.Contains(about, name) && !slices.Contains(values, fmt.Sprint(o[name])) {
			return false
		}
	}
	return true
}

// page cuts out those behind the marker, up to the limit, and tells the marker of the next page, if there is one.
func page(list []map[string]any, asked url.Values) (part []map[string]any, next string, refused reply) {
	limit, err := strconv.Atoi(asked.Get("limit"))
	if err != nil || limit <= 0 {
		return nil, "", refuse(http.StatusBadRequest, "limit is not a positive number")
	}
	if marker := asked.Get("marker"); marker != "" {
		i := slices.IndexFunc(list, func(o map[string]any) bool { return o["id"] == marker })
		if i < 0 {
			return nil, "", refuse(http.StatusNotFound, "UUID for marker: %s could not be found", marker)
		}
		list = list[i+1:]
	}
	if len(list) > limit {
		list = list[:limit]
		next = fmt.Sprint(list[limit-1]["id"])
	}
	return list, next, reply{}
}

// links lead to the next page.
func links(path, next string, asked url.Values) []map[string]string {
	if next == "" {
		return []map[string]string{}
	}
	asked.Set("marker", next)
	return []map[string]string{{"rel": "next", "href": BasePath + path + "?" + asked.Encode()}}
}

// only is an object with those attributes alone; with all of them if none is named.
func only(o map[string]any, fields []string) map[string]any {
	if len(fields) == 0 {
		return o
	}
	part := map[string]any{}
	for _, name := range fields {
		if v, ok := o[name]; ok {
			part[name] = v
		}
	}
	return part
}
