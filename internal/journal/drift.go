package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Canary returns the change that creates the check network: a network that berth creates at the controller
// only as a check. If it is missing at the controller later, the controller has lost its data. The check
// network exists only in the journal and at the controller, not in the Networking API.
func Canary() Change {
	const id = "bd8db3a8-2b30-4083-a8b3-b3fd46401142"
	return Change{
		Object:    Ref{Type: "network", ID: id},
		Operation: Create,
		Data: json.RawMessage(
			`{"id":"` + id + `","tenant_id":"` + id + `","project_id":"` + id + `","name":"Sync Canary Network","admin_state_up":false}`,
		),
		Project: id,
		Name:    "Sync Canary Network",
	}
}

// ListRequests returns the requests that list the controller's objects of a type. For a type whose
// collections are nested in parent objects, `within` lists the IDs of the parents.
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

// ParentType returns the parent type of a type: each object of the parent type contains a collection of this
// type. For most types ParentType returns "".
func ParentType(typ string) string { return byType[typ].parent }

// ListKey returns the JSON key under which the controller returns a list of objects of a type.
func ListKey(typ string) string { return byType[typ].listKey() }

// maxIDLength is the maximum length of an ID. maxIDLength is longer than every ID that an OpenStack API
// returns.
const maxIDLength = 255

// ParseListedID returns the ID of an object in the controller's response to a list request.
func ParseListedID(typ string, raw json.RawMessage) (id string, err error) {
	var o struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(raw, &o); err != nil || o.ID == "" || len(o.ID) > maxIDLength ||
		strings.ContainsRune(o.ID, 0) {
		return "", fmt.Errorf("the controller lists a %s without a valid ID", typ)
	}
	return canonicalUUID(o.ID), nil
}

// StorableObject returns JSON that the database can store for an object that only the controller has. The
// JSON is the whole object or, if the database cannot store that, only the attributes that a delete request
// needs.
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

// isStorable reports whether PostgreSQL can store the JSON. PostgreSQL cannot store JSON with NUL characters
// or with numbers beyond the range of float64.
func isStorable(raw []byte) bool {
	var any any
	return json.Unmarshal(raw, &any) == nil && !bytes.Contains(raw, []byte(`\u0000`))
}

// DifferingAttributes returns the names of the attributes that differ between berth's object and the
// controller's object and that an update can correct. DifferingAttributes ignores attributes that the
// controller does not return, also in nested objects. The result contains revision_number only if the
// controller has a higher number, because the controller then ignores every update. A lower number at the
// controller is normal: a port that becomes ACTIVE gets a new revision without a journal entry.
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
		other, shown := got[name]
		if !shown || sameValue(want[name], other, true) ||
			name == "revision_number" && !isHigher(other, want[name]) {
			continue
		}
		differ = append(differ, name)
	}
	return differ
}

// isHigher reports whether a is a higher revision number than b. A value that is not a number is not higher.
func isHigher(a, b any) bool {
	x, ok := asNumber(a)
	y, both := asNumber(b)
	if !ok || !both {
		return false
	}
	higher, err := x.Int64()
	lower, err2 := y.Int64()
	return err == nil && err2 == nil && higher > lower
}

// UnwrapObject returns the object in the response to ReadRequest, without its JSON envelope.
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
