package placement

import (
	"bytes"
	"encoding/json"
	"slices"

	"berth/internal/inventory"
)

// orderedObject is a JSON object with its members in order.
type orderedObject []member

// member is one member of a JSON object.
type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o orderedObject) MarshalJSON() ([]byte, error) {
	b := bytes.NewBufferString("{")
	for i, m := range o {
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(append(append(name, ':'), value...))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// rawMember is one member of a JSON object; the value of the member is not decoded yet.
type rawMember struct {
	name  string
	value json.RawMessage
}

// members returns the members of a JSON object in their order. The object has passed the schema check.
func members(object json.RawMessage) (all []rawMember) {
	d := json.NewDecoder(bytes.NewReader(object))
	_, _ = d.Token()
	for d.More() {
		name, _ := d.Token()
		m := rawMember{name: name.(string)}
		if d.Decode(&m.value) != nil {
			return all
		}
		all = append(all, m)
	}
	return all
}

// memberOf returns the value of one member of a JSON object.
func memberOf(object json.RawMessage, name string) json.RawMessage {
	for _, m := range members(object) {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// allocationOrder returns the allocations of one consumer in the order in which the client has written them.
// The parameter `allocations` is a list before microversion 1.12, and an object from microversion 1.12 on.
func allocationOrder(allocations json.RawMessage) (order []inventory.InventoryKey) {
	seen := map[string]bool{}
	add := func(provider string, share json.RawMessage) {
		if seen[provider] { // a later entry of the list replaces an earlier entry of the same provider
			order = slices.DeleteFunc(order,
				func(k inventory.InventoryKey) bool { return k.Provider == provider })
		}
		seen[provider] = true
		for _, r := range members(memberOf(share, "resources")) {
			order = append(order, inventory.InventoryKey{Provider: provider, Class: r.name})
		}
	}
	var list []json.RawMessage
	if json.Unmarshal(allocations, &list) != nil {
		for _, m := range members(allocations) {
			add(m.name, m.value)
		}
		return order
	}
	for _, share := range list {
		var provider string
		// the schema has checked the type
		_ = json.Unmarshal(memberOf(memberOf(share, "resource_provider"), "uuid"), &provider)
		add(provider, share)
	}
	return order
}
