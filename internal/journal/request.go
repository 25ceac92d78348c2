package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
)

// Request is what the controller is asked, relative to its base URL.
type Request struct {
	Method string
	Path   string
	Body   json.RawMessage // nil for none
}

// object is a JSON object whose numbers keep their digits.
type object = map[string]any

// RequestOf is the request that tells the controller about the entry. It fails for an entry that no request
// can express; see Unsendable.
func RequestOf(e Entry) (Request, error) {
	k, list, err := placeOf(e)
	if err != nil {
		return Request{}, err
	}
	switch {
	case e.Operation == Create:
		return write("POST", list, e, k)
	case e.Operation == Update && k.fixed:
		return Request{}, fmt.Errorf("the controller has no update of a %s", k.typ)
	case e.Operation == Update:
		return write("PUT", one(list, e), e, k)
	case e.Operation == Delete:
		return Request{Method: "DELETE", Path: one(list, e)}, nil
	default:
		return Request{}, fmt.Errorf("unknown operation %q", e.Operation)
	}
}

// Read is the request that shows the entry's object as the controller has it.
func Read(e Entry) (Request, error) {
	_, list, err := placeOf(e)
	if err != nil {
		return Request{}, err
	}
	return Request{Method: "GET", Path: one(list, e)}, nil
}

// Replace is the request that makes an object which the controller has already what a create says.
func Replace(e Entry) (Request, error) {
	e.Operation = Update
	return RequestOf(e)
}

// placeOf finds the collection that the entry's object belongs to.
func placeOf(e Entry) (k kind, list string, err error) {
	k, ok := byType[e.Object.Type]
	switch {
	case !ok:
		return k, "", fmt.Errorf("the controller has no objects of type %q", e.Object.Type)
	case e.Object.ID == "":
		return k, "", fmt.Errorf("the %s has no ID", e.Object.Type)
	case k.within == "":
		return k, "/" + k.collection, nil
	}
	o, err := decodeObject(e.Data)
	if err != nil {
		return k, "", fmt.Errorf("data of the %s: %w", e.Object.Type, err)
	}
	outer, _ := o[k.within+"_id"].(string)
	if outer == "" {
		return k, "", fmt.Errorf("the %s has no %s_id", e.Object.Type, k.within)
	}
	return k, k.inside(outer), nil
}

// inside is the collection of a kind within that object.
func (k kind) inside(outer string) string {
	return "/" + byType[k.within].collection + "/" + url.PathEscape(outer) + "/" + k.collection
}

func one(list string, e Entry) string { return list + "/" + url.PathEscape(e.Object.ID) }

func write(method, path string, e Entry, k kind) (Request, error) {
	o, err := decodeObject(e.Data)
	if err == nil {
		err = k.filter(o, e.Operation)
	}
	if err != nil {
		return Request{}, fmt.Errorf("data of the %s: %w", e.Object.Type, err)
	}
	body, err := json.Marshal(map[string]object{e.Object.Type: o})
	if err != nil {
		return Request{}, fmt.Errorf("encode the %s: %w", e.Object.Type, err)
	}
	return Request{Method: method, Path: path, Body: body}, nil
}

// filter brings an object into the form in which the controller takes it.
func (k kind) filter(o object, op Operation) error {
	withoutNulls(o, k.unlessNull...)
	for _, name := range k.never {
		delete(o, name)
	}
	if op == Update {
		for _, name := range k.update {
			delete(o, name)
		}
	}
	twin(o, "project_id", "tenant_id")
	twin(o, "tenant_id", "project_id")
	if k.shape == nil {
		return nil
	}
	return k.shape(o, op)
}

// twin gives the attribute to the value of its other name, where only that one is there.
func twin(o object, from, to string) {
	value, ok := o[from]
	if _, both := o[to]; ok && !both {
		o[to] = value
	}
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
