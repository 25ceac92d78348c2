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

// kind is how the controller knows one type of object. A new type is a new line of the table.
type kind struct {
	collection string
	shape      func(o object) error // both for a create and an update, may be nil
	update     []string             // attributes that an update must not carry
	never      []string             // attributes that the controller must never see
	unlessNull []string             // attributes that it must not see as null
}

var kinds = map[string]kind{
	"network": {
		collection: "networks",
		never:      []string{"status", "subnets"},
		update:     []string{"id", "tenant_id", "project_id"},
		unlessNull: []string{"qos_policy_id"},
	},
	"subnet": {
		collection: "subnets",
		update:     []string{"id", "network_id", "ip_version", "cidr", "tenant_id", "project_id"},
		unlessNull: []string{"segment_id", "subnetpool_id"},
	},
	"port": {
		collection: "ports",
		shape:      shapePort,
		never:      []string{"status"},
		update:     []string{"network_id", "id", "tenant_id", "project_id"},
		unlessNull: []string{"binding:profile", "dns_name", "port_security_enabled", "qos_policy_id"},
	},
}

// RequestOf is the request that tells the controller about the entry. It fails for an entry that no request
// can express; see Unsendable.
func RequestOf(e Entry) (Request, error) {
	k, err := kindOf(e)
	if err != nil {
		return Request{}, err
	}
	switch e.Operation {
	case Create:
		return write("POST", k.list(), e, k)
	case Update:
		return write("PUT", k.one(e), e, k)
	case Delete:
		return Request{Method: "DELETE", Path: k.one(e)}, nil
	default:
		return Request{}, fmt.Errorf("journal entry %d: unknown operation %q", e.Seq, e.Operation)
	}
}

// Read is the request that shows the entry's object as the controller has it.
func Read(e Entry) (Request, error) {
	k, err := kindOf(e)
	if err != nil {
		return Request{}, err
	}
	return Request{Method: "GET", Path: k.one(e)}, nil
}

// Replace is the request that makes an object which the controller has already what a create says.
func Replace(e Entry) (Request, error) {
	e.Operation = Update
	return RequestOf(e)
}

func kindOf(e Entry) (kind, error) {
	k, ok := kinds[e.Object.Type]
	switch {
	case !ok:
		return k, fmt.Errorf("journal entry %d: the controller has no objects of type %q", e.Seq, e.Object.Type)
	case e.Object.ID == "":
		return k, fmt.Errorf("journal entry %d: its %s has no ID", e.Seq, e.Object.Type)
	}
	return k, nil
}

func (k kind) list() string       { return "/" + k.collection }
func (k kind) one(e Entry) string { return "/" + k.collection + "/" + url.PathEscape(e.Object.ID) }

func write(method, path string, e Entry, k kind) (Request, error) {
	o, err := decodeObject(e.Data)
	if err == nil {
		err = k.filter(o, e.Operation)
	}
	if err != nil {
		return Request{}, fmt.Errorf("journal entry %d: data of its %s: %w", e.Seq, e.Object.Type, err)
	}
	body, err := json.Marshal(map[string]object{e.Object.Type: o})
	if err != nil {
		return Request{}, fmt.Errorf("journal entry %d: %w", e.Seq, err)
	}
	return Request{Method: method, Path: path, Body: body}, nil
}

// filter brings an object into the form in which the controller takes it.
func (k kind) filter(o object, op Operation) error {
	for _, name := range k.unlessNull {
		if value, ok := o[name]; ok && value == nil {
			delete(o, name)
		}
	}
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
	return k.shape(o)
}

// twin gives the attribute to the value of its other name, where only that one is there.
func twin(o object, from, to string) {
	value, ok := o[from]
	if _, both := o[to]; ok && !both {
		o[to] = value
	}
}

// shapePort writes the binding profile as a string and the security groups as objects.
func shapePort(o object) error {
	if profile, ok := o["binding:profile"]; ok {
		if _, text := profile.(string); !text {
			raw, err := json.Marshal(profile)
			if err != nil {
				return fmt.Errorf("binding:profile: %w", err)
			}
			o["binding:profile"] = string(raw)
		}
	}
	groups, ok := o["security_groups"]
	if !ok {
		return nil
	}
	list, ok := groups.([]any)
	if groups != nil && !ok {
		return fmt.Errorf("security_groups is not a list")
	}
	shaped := make([]any, len(list))
	for i, g := range list {
		shaped[i] = g
		if id, plain := g.(string); plain {
			shaped[i] = object{"id": id}
		}
	}
	o["security_groups"] = shaped
	return nil
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
