package neutron

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/db"
)

// listOptions are the query keys that control sorting, paging and the returned attributes. Every query key
// that is not in listOptions is a filter.
var listOptions = []string{"fields", "sort_key", "sort_dir", "limit", "marker", "page_reverse"}

// listRequest reads the filters, the order and the page from the query of a list request.
func (res resource[N, C]) listRequest(r *http.Request) (db.Listing, error) {
	q, requester := r.URL.Query(), accessOf(r)
	l := db.Listing{
		Reverse: attribute.Booleans[strings.ToLower(q.Get("page_reverse"))],
		Fields:  requestedFields(r),
	}
	for _, name := range sortedKeys(q) {
		if slices.Contains(listOptions, name) {
			continue
		}
		conditions, err := res.filter(name, q[name], requester)
		if err != nil {
			return l, err
		}
		l.Where = append(l.Where, conditions...)
	}
	var err error
	if l.Sort, err = res.sortOrder(nonEmpty(q["sort_key"]), nonEmpty(q["sort_dir"]), requester); err != nil {
		return l, err
	}
	if text := q.Get("limit"); text != "" {
		if l.Limit, err = strconv.Atoi(text); err != nil || l.Limit < 0 {
			return l, network.Faultf(network.BadRequest,
				"Bad limit request: Limit must be an integer 0 or greater and not '%s'.", excerpt(text))
		}
	}
	l.Marker, err = res.marker(r, q.Get("marker"))
	return l, err
}

func sortedKeys(q url.Values) []string {
	keys := make([]string, 0, len(q))
	for k := range q {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// nonEmpty returns the values that are not empty.
func nonEmpty(values []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
}

// excerpt shortens a text from the client for an error message.
func excerpt(s string) string { return attribute.Excerpt(json.RawMessage(s)) }

// filter converts a query key and its values to conditions of the store. If the key is an attribute, the
// conditions select the objects whose attribute has one of the values.
func (res resource[N, C]) filter(name string, values []string, requester *access) ([]db.Condition, error) {
	if special, ok := res.filters[name]; ok {
		return special(values)
	}
	if _, ok := tagFilters[name]; ok && res.tags.read != nil {
		return tagCondition(name, values)
	}
	at := slices.IndexFunc(res.attributes, func(a attribute.Definition[N, C]) bool {
		return a.Name == name && a.FilterField != "" &&
			(!a.AdminOnlyRead || requester.forAll("get_"+res.singular+":"+name))
	})
	if at < 0 {
		return nil, badRequest("['%s'] is invalid attribute for filtering", excerpt(name))
	}
	a := res.attributes[at]
	c := db.Condition{Field: a.FilterField, In: []string{}}
	for _, v := range values {
		if a.FilterValue != nil {
			var err error
			if v, err = a.FilterValue(v); err == attribute.ErrNoMatch {
				continue
			} else if err != nil {
				return nil, err
			}
		}
		c.In = append(c.In, v)
	}
	return []db.Condition{c}, nil
}

// sortOrder combines each sort key with the sort direction at the same index.
func (res resource[N, C]) sortOrder(keys, directions []string, requester *access) ([]db.Order, error) {
	if len(keys) != len(directions) {
		return nil, badRequest("The number of sort_keys and sort_dirs must be same")
	}
	var order []db.Order
	for i, key := range keys {
		at := slices.IndexFunc(res.attributes, func(a attribute.Definition[N, C]) bool {
			return a.Name == key && a.Sortable &&
				(!a.AdminOnlyRead || requester.forAll("get_"+res.singular+":"+key))
		})
		if at < 0 {
			return nil, badRequest("['%s'] is invalid attribute for sort_keys", excerpt(key))
		}
		if directions[i] != "asc" && directions[i] != "desc" {
			return nil, badRequest(
				"['%s'] is invalid value for sort_dirs, valid value is 'asc' and 'desc'",
				excerpt(directions[i]),
			)
		}
		o := db.Order{Field: res.attributes[at].FilterField, Descending: directions[i] == "desc"}
		sameKey := func(earlier db.Order) bool { return earlier.Field == o.Field }
		if !slices.ContainsFunc(order, sameKey) { // a repeated sort key has no effect
			order = append(order, o)
		}
	}
	return order, nil
}

// marker reads the query parameter `marker`: the ID of the object after which the page begins. marker returns
// an error if the caller cannot see the object with this ID.
func (res resource[N, C]) marker(r *http.Request, text string) (uuid.UUID, error) {
	if text == "" {
		return uuid.Nil, nil
	}
	_, id, err := res.find(r, text)
	if err != nil {
		return uuid.Nil, osapi.Fault(http.StatusNotFound, res.notFoundType, "%s %s could not be found.",
			res.label(), excerpt(text))
	}
	return id, nil
}

// requestedFields returns the names of the attributes that the query requests. If the query requests no
// attributes, the response contains all attributes.
func requestedFields(r *http.Request) []string {
	names := nonEmpty(r.URL.Query()["fields"])
	slices.Sort(names)
	return slices.Compact(names)
}

// links builds the links from a page with the given objects to the next and the previous page. The links
// contain all query parameters of the request; only `marker` and `page_reverse` differ.
func links(r *http.Request, l db.Listing, ids []uuid.UUID) []object {
	var first, last uuid.UUID
	if len(ids) > 0 {
		first, last = ids[0], ids[len(ids)-1]
	}
	full := len(ids) >= l.Limit
	link := func(rel string, marker uuid.UUID, reverse bool) object {
		q := r.URL.Query()
		q.Del("marker")
		q.Del("page_reverse")
		if marker != uuid.Nil {
			q.Set("marker", marker.String())
		}
		if reverse {
			q.Set("page_reverse", "True")
		}
		return object{
			"rel":  rel,
			"href": baseURL(r) + strings.TrimPrefix(r.URL.Path, prefix) + "?" + q.Encode(),
		}
	}
	all := []object{}
	if l.Reverse || full {
		all = append(all, link("next", last, false))
	}
	if !l.Reverse || full {
		all = append(all, link("previous", first, true))
	}
	return all
}
