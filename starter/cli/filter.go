package cli

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// filters are the filters of a list that starter applies itself, because the API ignores them: the values by
// attribute.
type filters map[string][]string

// splitQuery splits the query of a list into the parameters that the API knows and the filters that it
// ignores.
func (r *Resource) splitQuery(query url.Values) (url.Values, filters, error) {
	if !r.IgnoresFilters {
		return query, nil, nil
	}
	known, ignored := url.Values{}, filters{}
	for name, values := range query {
		if slices.Contains(r.Parameters, name) {
			known[name] = values
		} else {
			ignored[name] = values
		}
	}
	if len(known) > 0 && len(ignored) > 0 {
		return nil, nil, UsageError(
			"the API applies %s before starter can filter by %s; give only one of them",
			strings.Join(slices.Sorted(maps.Keys(known)), " and "),
			strings.Join(slices.Sorted(maps.Keys(ignored)), " and "),
		)
	}
	return known, ignored, nil
}

// apply returns the objects that match all filters. apply returns an error if a filter names an attribute
// that no object has.
func (f filters) apply(r *Resource, all []Object) ([]Object, error) {
	if len(f) == 0 {
		return all, nil
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if err := checkAttribute(r, all, name); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(all, func(o Object) bool { return !f.match(o) }), nil
}

func (f filters) match(o Object) bool {
	for name, values := range f {
		if !slices.ContainsFunc(values, func(value string) bool { return hasValue(o[name], value) }) {
			return false
		}
	}
	return true
}

// hasValue reports whether an attribute has the value. A list has the value if one of its elements has it.
func hasValue(attribute any, value string) bool {
	switch a := attribute.(type) {
	case nil:
		return value == ""
	case []any:
		return slices.ContainsFunc(a, func(element any) bool { return hasValue(element, value) })
	case Object:
		return Cell(a) == value
	default:
		return fmt.Sprint(a) == value
	}
}
