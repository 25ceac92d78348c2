package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/google/uuid"
)

// Request is an HTTP request to the controller.
type Request struct {
	Method string
	Path   string
	Body   json.RawMessage // nil: none
}

// object is a decoded JSON object. Numbers in an object are of type json.Number and keep all their digits.
type object = map[string]any

// WriteRequest returns the request that makes the entry's change at the controller. WriteRequest returns an
// error if the request cannot be created.
func WriteRequest(e Entry) (Request, error) {
	k, list, err := collectionOf(e)
	if err != nil {
		return Request{}, err
	}
	switch {
	case e.Operation == Create:
		return writeRequest("POST", list, e, k)
	case e.Operation == Update && k.noUpdate:
		return Request{}, fmt.Errorf("the controller cannot update objects of type %q", k.typ)
	case e.Operation == Update:
		return writeRequest("PUT", itemPath(list, e), e, k)
	case e.Operation == Delete:
		return Request{Method: "DELETE", Path: itemPath(list, e)}, nil
	default:
		return Request{}, fmt.Errorf("unknown operation %q", e.Operation)
	}
}

// ReadRequest returns the request that reads the entry's object from the controller.
func ReadRequest(e Entry) (Request, error) {
	_, list, err := collectionOf(e)
	if err != nil {
		return Request{}, err
	}
	return Request{Method: "GET", Path: itemPath(list, e)}, nil
}

// ReplaceRequest returns the request that overwrites an existing object with the data of a create.
func ReplaceRequest(e Entry) (Request, error) {
	e.Operation = Update
	return WriteRequest(e)
}

// nestedRequest returns the request that creates the nested objects of the entry's object.
func nestedRequest(e Entry, nested []Change) (Request, error) {
	k := byType[NestedType(e.Object.Type)]
	all := make([]object, len(nested))
	for i, c := range nested {
		o, err := decodeObject(c.Data)
		if err == nil {
			err = k.filter(o, Create)
		}
		if err != nil {
			return Request{}, fmt.Errorf("invalid data of the %s %s: %w", k.typ, c.Object.ID, err)
		}
		all[i] = o
	}
	body, err := json.Marshal(map[string][]object{k.listKey(): all})
	if err != nil {
		return Request{}, fmt.Errorf("encode the %ss of the %s: %w", k.typ, e.Object.Type, err)
	}
	return Request{Method: "POST", Path: k.nestedPath(e.Object.ID), Body: body}, nil
}

// collectionOf returns the type of the entry's object and the path of its collection at the controller.
func collectionOf(e Entry) (k objectType, list string, err error) {
	k, ok := byType[e.Object.Type]
	switch {
	case !ok:
		return k, "", fmt.Errorf("the controller has no object type %q", e.Object.Type)
	case e.Object.ID == "":
		return k, "", fmt.Errorf("the %s has no ID", e.Object.Type)
	case k.parent == "":
		return k, "/" + k.collection, nil
	}
	o, err := decodeObject(e.Data)
	if err != nil {
		return k, "", fmt.Errorf("invalid data of the %s: %w", e.Object.Type, err)
	}
	outer, _ := o[k.parent+"_id"].(string)
	if outer == "" {
		return k, "", fmt.Errorf("the %s has no %s_id", e.Object.Type, k.parent)
	}
	return k, k.nestedPath(outer), nil
}

// nestedPath returns the path of the collection that is nested in a parent object.
func (k objectType) nestedPath(outer string) string {
	return "/" + byType[k.parent].collection + "/" + url.PathEscape(outer) + "/" + k.collection
}

func itemPath(list string, e Entry) string { return list + "/" + url.PathEscape(e.Object.ID) }

func writeRequest(method, path string, e Entry, k objectType) (Request, error) {
	o, err := decodeObject(e.Data)
	if err == nil {
		err = k.filter(o, e.Operation)
	}
	if err != nil {
		return Request{}, fmt.Errorf("invalid data of the %s: %w", e.Object.Type, err)
	}
	body, err := json.Marshal(map[string]object{e.Object.Type: o})
	if err != nil {
		return Request{}, fmt.Errorf("encode the %s: %w", e.Object.Type, err)
	}
	return Request{Method: method, Path: path, Body: body}, nil
}

// filter removes and converts attributes of an object as the controller requires.
func (k objectType) filter(o object, op Operation) error {
	withoutNulls(o, k.notIfNull...)
	for _, name := range k.neverSent {
		delete(o, name)
	}
	if op == Update {
		for _, name := range k.notInUpdate {
			delete(o, name)
		}
	}
	copyAlias(o, "project_id", "tenant_id")
	copyAlias(o, "tenant_id", "project_id")
	shapeProjects(o)
	if k.shape == nil {
		return nil
	}
	return k.shape(o, op)
}

// copyAlias copies the attribute `from` to its alias `to` if the object has no attribute `to`.
func copyAlias(o object, from, to string) {
	value, ok := o[from]
	if _, both := o[to]; ok && !both {
		o[to] = value
	}
}

// projectNamespace is the namespace of the UUIDs that stand for project IDs which are not UUIDs.
var projectNamespace = uuid.MustParse("6f7d2c0e-5a1b-4c53-9b5e-2f8c3d1a7e40")

// shapeProjects replaces each project ID that is not a UUID by a UUID that depends only on the project ID, in
// the whole object. Without Keystone a project ID can be any text, and the controller answers 500 to a tenant
// that is not a UUID. berth's rows keep the project ID, so before a comparison with the controller's object,
// berth replaces the ID in the row's object in the same way.
func shapeProjects(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			shapeProjects(item)
		}
	case object:
		for name, value := range v {
			project, ok := value.(string)
			if ok && (name == "project_id" || name == "tenant_id") {
				v[name] = projectUUID(project)
			}
			shapeProjects(value)
		}
	}
}

// projectUUID returns the tenant ID that the controller gets for a project.
func projectUUID(project string) string {
	if project == "" || hexID.MatchString(strings.ReplaceAll(project, "-", "")) {
		return project
	}
	return uuid.NewSHA1(projectNamespace, []byte(project)).String()
}

func decodeObject(raw json.RawMessage) (object, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if d.More() {
		return nil, fmt.Errorf("more than one JSON value")
	}
	o, ok := v.(object)
	if !ok {
		return nil, fmt.Errorf("not a JSON object")
	}
	return o, nil
}
