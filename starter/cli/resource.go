package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/uuid"
)

// Resource describes a collection of the API, for example the ports. The methods of Resource list, show,
// create, change and delete the objects of every collection with the same code.
type Resource struct {
	Name string // on the command line
	Path string // URL path of the collection
	// envelope keys of one object and of a list; SingularKey is empty if the API sends the object without
	// envelope
	SingularKey, PluralKey string
	IDKey, NameKey         string // attributes that hold the ID and the name
	NameFilter             string // query parameter that filters by name; empty: Resolve reads the whole list
	IsID                   func(string) bool
	// IgnoresFilters is true if the API ignores the query parameters of a list, except Parameters. Then List
	// filters the objects itself.
	IgnoresFilters bool
	Parameters     []string
	// PageParameter is the query parameter for the next page of a list: the ID of the last object on the page
	// before. Empty: an answer contains the whole list.
	PageParameter string
	Columns       []string // columns of the list
	Fields        []Field
}

// IsUUID reports whether s is a UUID in the usual form with hyphens.
func IsUUID(s string) bool {
	_, err := uuid.Parse(s)
	return len(s) == 36 && err == nil
}

// Digits matches a decimal number.
var Digits = regexp.MustCompile(`^[0-9]+$`)

// Resolve returns the ID of the object with the given name or ID. Resolve returns an error if no object, or
// more than one object, has the given name.
func (r *Resource) Resolve(ctx context.Context, s *Session, word string) (string, error) {
	if r.IsID(word) {
		return strings.ToLower(word), nil
	}
	query := url.Values{}
	if r.NameFilter != "" {
		query.Set(r.NameFilter, word)
	}
	all, err := r.List(ctx, s, query)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, o := range all {
		if o[r.NameKey] == word {
			ids = append(ids, fmt.Sprint(o[r.IDKey]))
		}
	}
	switch len(ids) {
	case 0:
		return "", Errorf(ExitNotFound, "`starter "+r.Name+" list` lists all.", "no %s is named %q",
			r.Name, word)
	case 1:
		return ids[0], nil
	default:
		return "", Errorf(ExitConflict, "Name it by its ID: "+strings.Join(ids, ", "),
			"%d %ss are named %q", len(ids), r.Name, word)
	}
}

// List reads the collection, filtered by the query.
func (r *Resource) List(ctx context.Context, s *Session, query url.Values) ([]Object, error) {
	query, ignored, err := r.splitQuery(query)
	if err != nil {
		return nil, err
	}
	all, err := r.page(ctx, s, query)
	if err != nil {
		return nil, err
	}
	// the filters need the whole list
	for last := all; r.PageParameter != "" && len(ignored) > 0 && len(last) > 0; all = append(all, last...) {
		query.Set(r.PageParameter, Cell(last[len(last)-1][r.IDKey]))
		if last, err = r.page(ctx, s, query); err != nil {
			return nil, err
		}
	}
	return ignored.apply(r, all)
}

// page reads one page of the collection.
func (r *Resource) page(ctx context.Context, s *Session, query url.Values) ([]Object, error) {
	path := r.Path
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var envelope Object
	if err := s.API.Do(ctx, "GET", path, nil, &envelope); err != nil {
		return nil, err
	}
	all, ok := Objects(envelope[r.PluralKey])
	if !ok {
		return nil, Errorf(ExitOther, "Is --url a berth API?", "GET %s answered without %q",
			path, r.PluralKey)
	}
	return all, nil
}

// Get reads one object.
func (r *Resource) Get(ctx context.Context, s *Session, id string) (Object, error) {
	var o Object
	if err := s.API.Do(ctx, "GET", r.ObjectPath(id), nil, &o); err != nil {
		return nil, err
	}
	return r.Unwrap(o), nil
}

// Create sends a POST request and returns the new object.
func (r *Resource) Create(ctx context.Context, s *Session, body Object) (Object, error) {
	var o Object
	if err := s.API.Do(ctx, "POST", r.Path, r.wrapBody(body), &o); err != nil {
		return nil, err
	}
	return r.Unwrap(o), nil
}

// Update sends a PUT request and returns the changed object. `headers` contains the name of a header, its
// value, the name of the next header, and so on.
func (r *Resource) Update(
	ctx context.Context,
	s *Session,
	id string,
	body Object,
	headers ...string,
) (Object, error) {
	var o Object
	if err := s.API.Do(ctx, "PUT", r.ObjectPath(id), r.wrapBody(body), &o, headers...); err != nil {
		return nil, err
	}
	return r.Unwrap(o), nil
}

// Delete sends a DELETE request. done is false if the API answered 202: the deletion was accepted and still
// runs.
func (r *Resource) Delete(
	ctx context.Context,
	s *Session,
	id string,
	headers ...string,
) (done bool, err error) {
	status, err := s.API.Send(ctx, "DELETE", r.ObjectPath(id), nil, nil, headers...)
	return status != http.StatusAccepted, err
}

// ObjectPath returns the URL path of one object.
func (r *Resource) ObjectPath(id string) string { return r.Path + "/" + url.PathEscape(id) }

func (r *Resource) wrapBody(body Object) Object {
	if r.SingularKey == "" || r.takesBareBody() {
		return body
	}
	return Object{r.SingularKey: body}
}

// takesBareBody reports whether the bodies of requests have no envelope (an outer object whose only key is
// SingularKey). The bodies of Blazar's requests have no envelope, although the bodies of Blazar's answers
// have one.
func (r *Resource) takesBareBody() bool { return strings.HasPrefix(r.Path, "/reservation/") }

// Unwrap returns the object in the envelope of an answer.
func (r *Resource) Unwrap(o Object) Object {
	if inner, ok := o[r.SingularKey].(Object); ok && r.SingularKey != "" {
		return inner
	}
	return o
}

// DisplayName returns the name of the object o, or the ID of o if o has no name.
func (r *Resource) DisplayName(o Object) string {
	if name, ok := o[r.NameKey].(string); ok && name != "" {
		return name
	}
	return fmt.Sprint(o[r.IDKey])
}

// Objects converts a decoded JSON list to objects. ok is false if v is not a list of objects.
func Objects(v any) (all []Object, ok bool) {
	items, ok := v.([]any)
	all = make([]Object, 0, len(items))
	for _, item := range items {
		o, isObject := item.(Object)
		ok = ok && isObject
		all = append(all, o)
	}
	return all, ok
}
