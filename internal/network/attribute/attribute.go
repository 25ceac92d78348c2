// Package attribute describes the attributes of network objects. The description of an attribute contains the
// attribute's name in the Networking API, says who may set and who may see the attribute, and has the
// functions that read the attribute from a request and write it in each view of the object. berth builds
// every view of a network object only from the descriptions in package attribute. Package attribute contains
// none of the rules of package network and does not read the database.
package attribute

import (
	"encoding/json"
	"errors"
	"strings"
)

// Operations is the set of requests in which an attribute may be set.
type Operations int

const (
	OnCreate Operations = 1 << iota
	OnUpdate
	Required // a create without the attribute is refused
	OnWrite  = OnCreate | OnUpdate
)

// String returns the name that policy rules use for the operation, such as `create` in
// create_port:mac_address.
func (o Operations) String() string {
	if o == OnUpdate {
		return "update"
	}
	return "create"
}

// Select returns the view of an object with only the named attributes. If the list of names is empty, Select
// returns the whole view.
func Select(view map[string]any, names []string) map[string]any {
	if len(names) == 0 {
		return view
	}
	kept := map[string]any{}
	for _, name := range names {
		if v, ok := view[name]; ok {
			kept[name] = v
		}
	}
	return kept
}

// Definition describes one attribute. The type parameter Object is the type of the objects that have the
// attribute. The type parameter Change is the type of a request to create or update an Object.
type Definition[Object, Change any] struct {
	Name       string
	SettableOn Operations
	// by default only administrators may set the attribute; a policy rule decides
	AdminOnlyWrite bool
	// everyone may create an object with the value false, although AdminOnlyWrite is set
	FalseAllowed bool
	// by default only administrators and services may see the attribute, filter by it and sort by it; a
	// policy rule decides
	AdminOnlyRead bool
	Set           func(*Change, json.RawMessage) error // reads the request's value into the change
	// field of the store's list queries; empty: no filter by the attribute
	FilterField string
	// canonical form of a filter's value, or ErrNoMatch; nil: the text itself
	FilterValue func(string) (string, error)
	Sortable    bool   // lists can be sorted by FilterField
	ObjectName  string // name in the versioned object; empty: Name
	Views       Views[Object]
}

// Views holds, for each view of an object, the function that returns the attribute's value. If the function
// of a view is nil, the view does not contain the attribute.
type Views[Object any] struct {
	REST       func(Object) any // Networking API
	RPC        func(Object) any // dictionaries sent to agents
	Versioned  func(Object) any // oslo.versionedobjects, as agents of the OVO push and pull API read them
	Controller func(Object) any // OpenDaylight's northbound API
}

// everywhere returns the Views of an attribute that has the same value in all views.
func everywhere[Object any](value func(Object) any) Views[Object] {
	return Views[Object]{
		REST:       value,
		RPC:        value,
		Versioned:  value,
		Controller: value,
	}
}

// nested returns the Views of an attribute that is a nested object in the versioned object and a plain value
// in all other views.
func nested[Object any](value, versioned func(Object) any) Views[Object] {
	return Views[Object]{
		REST:       value,
		RPC:        value,
		Versioned:  versioned,
		Controller: value,
	}
}

// notVersioned returns the views of an attribute that the versioned object does not have.
func notVersioned[Object any](value func(Object) any) Views[Object] {
	return nested(value, nil)
}

// absent is the value that a function of Views returns if an object does not have the attribute. The views of
// an object omit each attribute whose value is absent.
type absent struct{}

// view builds one view of an object. The parameter `in` returns the name of an attribute in the view and the
// function that returns the attribute's value. If an attribute's function for the view is nil or returns
// absent, the view omits the attribute.
func view[Object, Change any](
	table []Definition[Object, Change],
	o Object,
	in func(Definition[Object, Change]) (string, func(Object) any),
) map[string]any {
	all := make(map[string]any, len(table))
	for _, d := range table {
		name, value := in(d)
		if value == nil {
			continue
		}
		if v := value(o); v != (absent{}) {
			all[name] = v
		}
	}
	return all
}

// Into returns a function for the field Set of a Definition. The function that Into returns reads the value
// of the attribute from the request and stores a pointer to the value in a field of the change.
func Into[Change, Value any](
	field func(*Change) **Value,
	read func(json.RawMessage) (Value, error),
) func(*Change, json.RawMessage) error {
	return func(c *Change, raw json.RawMessage) error {
		v, err := read(raw)
		if err == nil {
			*field(c) = &v
		}
		return err
	}
}

// ProjectInto reads project_id or tenant_id; null means the same as no value. If a request contains both
// project_id and tenant_id, their values must be equal.
func ProjectInto[Change any](field func(*Change) **string) func(*Change, json.RawMessage) error {
	return NullIsAbsent(func(c *Change, raw json.RawMessage) error {
		v, err := Line(255)(raw)
		if err != nil {
			return err
		}
		if p := field(c); *p != nil && **p != v {
			return errors.New("project_id and tenant_id do not match")
		}
		*field(c) = &v
		return nil
	})
}

// OnlyEmpty accepts the empty value of an attribute and returns an error for every other value, because berth
// supports no other value of the attribute.
func OnlyEmpty[Change any](_ *Change, raw json.RawMessage) error {
	switch strings.ReplaceAll(string(raw), " ", "") {
	case "null", "[]", "{}", `""`:
		return nil
	}
	return errors.New("only the empty value is supported")
}

// NullIsAbsent treats null as if the request did not contain the attribute.
func NullIsAbsent[Change any](set func(*Change, json.RawMessage) error) func(*Change, json.RawMessage) error {
	return func(c *Change, raw json.RawMessage) error {
		if IsNull(raw) {
			return nil
		}
		return set(c, raw)
	}
}

// CompleteError is an error whose text is the whole message to the client. The caller sends the text of a
// CompleteError unchanged, and adds the attribute's name to the text of every other error.
type CompleteError string

func (e CompleteError) Error() string { return string(e) }
