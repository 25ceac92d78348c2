package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
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

// ListKey is the envelope around a list of objects of a type.
func ListKey(typ string) string { return byType[typ].many() }

// longestID is longer than any ID that an API of ours or of a service that records here gives.
const longestID = 255

// Listed reads the ID of an object in one of the Collections.
func Listed(typ string, raw json.RawMessage) (id string, err error) {
	var o struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(raw, &o); err != nil || o.ID == "" || len(o.ID) > longestID || strings.ContainsRune(o.ID, 0) {
		return "", fmt.Errorf("the controller lists a %s without an ID", typ)
	}
	return dashed(o.ID), nil
}

// Kept is what can be kept of an object that the controller has and nobody knows: all of it, or, where the database has no
// way to express that, as much as its removal needs.
func Kept(typ, id string, raw json.RawMessage) json.RawMessage {
	o, err := decodeObject(raw)
	if whole, _ := json.Marshal(o); err == nil && expressible(whole) {
		return whole
	}
	least := object{"id": id}
	if outer := byType[typ].within + "_id"; outer != "_id" {
		least[outer] = o[outer]
	}
	if kept, _ := json.Marshal(least); expressible(kept) {
		return kept
	}
	return json.RawMessage(`{}`)
}

// expressible tells whether the database can keep that JSON: no NUL characters, no numbers beyond a float.
func expressible(raw []byte) bool {
	var any any
	return json.Unmarshal(raw, &any) == nil && !bytes.Contains(raw, []byte(`\u0000`))
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
