package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/uuid"
)

// noun is a collection of the API whose objects are listed, shown, made, changed and deleted in one way.
type noun struct {
	name      string // on the command line
	path      string // of the collection
	one, many string // keys around one object and around several; one is empty where objects stand bare
	id, label string // keys of the ID and of the name
	filter    string // query key that finds a name; empty: look through all
	isID      func(string) bool
	columns   []string // of the list
	fields    []field
}

func isUUID(s string) bool {
	_, err := uuid.Parse(s)
	return len(s) == 36 && err == nil
}

var digits = regexp.MustCompile(`^[0-9]+$`)

// resolve turns a name or an ID into an ID.
func (n *noun) resolve(ctx context.Context, s *session, word string) (string, error) {
	if n.isID(word) {
		return strings.ToLower(word), nil
	}
	query := url.Values{}
	if n.filter != "" {
		query.Set(n.filter, word)
	}
	all, err := n.all(ctx, s, query)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, o := range all {
		if o[n.label] == word {
			ids = append(ids, fmt.Sprint(o[n.id]))
		}
	}
	switch len(ids) {
	case 0:
		return "", fail(exitNotFound, "`starter "+n.name+" list` shows what there is.", "no %s is named %q", n.name, word)
	case 1:
		return ids[0], nil
	default:
		return "", fail(exitConflict, "Name it by its ID: "+strings.Join(ids, ", "), "%d %ss are named %q", len(ids), n.name, word)
	}
}

// all lists the collection.
func (n *noun) all(ctx context.Context, s *session, query url.Values) ([]object, error) {
	path := n.path
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var envelope object
	if err := s.api.do(ctx, "GET", path, nil, &envelope); err != nil {
		return nil, err
	}
	all, ok := objects(envelope[n.many])
	if !ok {
		return nil, fail(exitOther, "Is --url a berth API?", "GET %s answered without %q", path, n.many)
	}
	return all, nil
}

// get shows one object.
func (n *noun) get(ctx context.Context, s *session, id string) (object, error) {
	var o object
	if err := s.api.do(ctx, "GET", n.at(id), nil, &o); err != nil {
		return nil, err
	}
	return n.bare(o), nil
}

func (n *noun) create(ctx context.Context, s *session, body object) (object, error) {
	var o object
	if err := s.api.do(ctx, "POST", n.path, n.wrap(body), &o); err != nil {
		return nil, err
	}
	return n.bare(o), nil
}

func (n *noun) update(ctx context.Context, s *session, id string, body object, headers ...string) (object, error) {
	var o object
	if err := s.api.do(ctx, "PUT", n.at(id), n.wrap(body), &o, headers...); err != nil {
		return nil, err
	}
	return n.bare(o), nil
}

// remove deletes an object; done is false if that was accepted but will take longer.
func (n *noun) remove(ctx context.Context, s *session, id string, headers ...string) (done bool, err error) {
	status, err := s.api.send(ctx, "DELETE", n.at(id), nil, nil, headers...)
	return status != http.StatusAccepted, err
}

func (n *noun) at(id string) string { return n.path + "/" + url.PathEscape(id) }

func (n *noun) wrap(body object) object {
	if n.one == "" || n.bareBody() {
		return body
	}
	return object{n.one: body}
}

// bareBody tells of Blazar's requests, which have no key around them though the answers have.
func (n *noun) bareBody() bool { return strings.HasPrefix(n.path, "/reservation/") }

func (n *noun) bare(o object) object {
	if inner, ok := o[n.one].(object); ok && n.one != "" {
		return inner
	}
	return o
}

// word is the shortest way to name an object on the command line.
func (n *noun) word(o object) string {
	if name, ok := o[n.label].(string); ok && name != "" {
		return name
	}
	return fmt.Sprint(o[n.id])
}

// objects reads a decoded list of objects.
func objects(v any) ([]object, bool) {
	items, ok := v.([]any)
	all := make([]object, 0, len(items))
	for _, item := range items {
		o, isObject := item.(object)
		ok = ok && isObject
		all = append(all, o)
	}
	return all, ok
}
