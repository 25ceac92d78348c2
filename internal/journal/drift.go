package journal

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Canary is a network that exists at the controller and in the journal alone. That it is missing says that the
// controller lost its data.
func Canary() Change {
	const id = "bd8db3a8-2b30-4083-a8b3-b3fd46401142"
	return Change{
		Object:    Ref{Type: "network", ID: id},
		Operation: Create,
		Data:      json.RawMessage(`{"id":"` + id + `","tenant_id":"` + id + `","project_id":"` + id + `","name":"Sync Canary Network","admin_state_up":false}`),
		Project:   id,
		Name:      "Sync Canary Network",
	}
}

// Collections are the requests that list what the controller has of a type. within names the objects that have a
// collection of their own, for the type that Within names.
func Collections(typ string, within []string) []Request {
	k := byType[typ]
	if k.within == "" {
		return []Request{{Method: "GET", Path: "/" + k.collection}}
	}
	var all []Request
	for _, outer := range within {
		all = append(all, Request{Method: "GET", Path: k.inside(outer)})
	}
	return all
}

// Within is the type whose objects have a collection of that type's objects each; empty for most.
func Within(typ string) string { return byType[typ].within }

// Listed reads the controller's answer to one of the Collections: its objects by ID.
func Listed(typ string, body []byte) (map[string]json.RawMessage, error) {
	var envelope map[string][]json.RawMessage
	if err := json.Unmarshal(body, &envelope); err != nil {
		return nil, fmt.Errorf("the controller's list of every %s cannot be read: %w", typ, err)
	}
	list, ok := envelope[byType[typ].many()]
	if !ok {
		return nil, fmt.Errorf("the controller's list of every %s has no %q", typ, byType[typ].many())
	}
	objects := make(map[string]json.RawMessage, len(list))
	for _, raw := range list {
		var o struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(raw, &o); err != nil || o.ID == "" {
			return nil, fmt.Errorf("the controller lists a %s without an ID", typ)
		}
		objects[dashed(o.ID)] = raw
	}
	return objects, nil
}

// Differences names the attributes in which the controller's object is not what it shall be, as far as an update
// can mend them. Attributes that the controller does not show are none of them.
func Differences(typ string, shall, has json.RawMessage) []string {
	k := byType[typ]
	want, err := decodeObject(shall)
	if err == nil {
		err = k.filter(want, Update)
	}
	if err != nil || k.fixed {
		return nil
	}
	got, err := decodeObject(has)
	if err != nil {
		return []string{"everything"}
	}
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if other, shown := got[name]; shown && !sameValue(want[name], other) {
			differ = append(differ, name)
		}
	}
	return differ
}

// Shown reads the controller's answer to Read: the object without its envelope.
func Shown(typ string, body []byte) (json.RawMessage, error) {
	var envelope map[string]json.RawMessage
	if err := json.Unmarshal(body, &envelope); err != nil {
		return nil, fmt.Errorf("the controller's %s cannot be read: %w", typ, err)
	}
	o, ok := envelope[typ]
	if !ok {
		return nil, fmt.Errorf("the controller's answer shows no %s", typ)
	}
	return o, nil
}
