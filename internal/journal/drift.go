package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Canary returns the check network, which exists only in the journal and at the controller. If it is missing at the
// controller, the controller has lost its data.
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

// ListRequests returns the requests that list the controller's objects of a type. The parameter `within`
// lists the IDs of the parent objects of a type with nested collections.
func ListRequests(typ string, within []string) []Request {
	k := byType[typ]
	if k.parent == "" {
		return []Request{{Method: "GET", Path: "/" + k.collection}}
	}
	var all []Request
	for _, outer := range within {
		all = append(all, Request{Method: "GET", Path: k.nestedPath(outer)})
	}
	return all
}

// ParentType returns the type of the parent whose objects contain the collections of this type; empty for most types.
func ParentType(typ string) string { return byType[typ].parent }

// ListKey returns the envelope key of a list of objects of a type.
func ListKey(typ string) string { return byType[typ].listKey() }

// maxIDLength is longer than every ID that an OpenStack API returns.
const maxIDLength = 255

// ParseListedID returns the ID of an object in a list response.
func ParseListedID(typ string, raw json.RawMessage) (id string, err error) {
	var o struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(raw, &o); err != nil || o.ID == "" || len(o.ID) > maxIDLength || strings.ContainsRune(o.ID, 0) {
		return "", fmt.Errorf("the controller lists a %s without a valid ID", typ)
	}
	return canonicalUUID(o.ID), nil
}

// StorableObject returns what the database can store of an unknown object at the controller: the whole object, or only what a
// delete request needs.
func StorableObject(typ, id string, raw json.RawMessage) json.RawMessage {
	o, err := decodeObject(raw)
	if whole, _ := json.Marshal(o); err == nil && isStorable(whole) {
		return whole
	}
	least := object{"id": id}
	if outer := byType[typ].parent + "_id"; outer != "_id" {
		least[outer] = o[outer]
	}
	if kept, _ := json.Marshal(least); isStorable(kept) {
		return kept
	}
	return json.RawMessage(`{}`)
}

// isStorable reports whether PostgreSQL can store the JSON: no NUL characters, no numbers outside of float64.
func isStorable(raw []byte) bool {
	var any any
	return json.Unmarshal(raw, &any) == nil && !bytes.Contains(raw, []byte(`\u0000`))
}

// DifferingAttributes returns the names of the attributes that differ and that an update can correct. It ignores attributes
// that the controller does not return.
func DifferingAttributes(typ string, shall, has json.RawMessage) []string {
	k := byType[typ]
	want, err := decodeObject(shall)
	if err == nil {
		err = k.filter(want, Update)
	}
	if err != nil || k.noUpdate {
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

// UnwrapObject returns the object of a response to ReadRequest, without its envelope.
func UnwrapObject(typ string, body []byte) (json.RawMessage, error) {
	var envelope map[string]json.RawMessage
	if err := json.Unmarshal(body, &envelope); err != nil {
		return nil, fmt.Errorf("decode the controller's %s: %w", typ, err)
	}
	o, ok := envelope[typ]
	if !ok {
		return nil, fmt.Errorf("the controller's response contains no %s", typ)
	}
	return o, nil
}
