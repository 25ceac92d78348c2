package server_test

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"

	"berth/activities"
	"berth/internal/contract"
)

// payloadNames returns the JSON members of all payloads in Temporal: those of workflows, signals, updates and
// queries, and the arguments and results of activities. Histories of running workflows contain them.
func payloadNames() []string {
	w := payloadWalk{seen: map[reflect.Type]bool{}}
	for _, payload := range []any{
		contract.Input{}, contract.Report{}, contract.ReportResult{}, contract.Why{},
	} {
		w.visit(reflect.TypeOf(payload))
	}
	for _, function := range activities.New(activities.Options{}).Functions() {
		typ := reflect.TypeOf(function)
		for i := range typ.NumIn() {
			w.visit(typ.In(i))
		}
		for i := range typ.NumOut() {
			w.visit(typ.Out(i))
		}
	}
	return w.names
}

type payloadWalk struct {
	seen  map[reflect.Type]bool
	names []string
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// visit adds the members of the structs of which a value of the given type consists.
func (w *payloadWalk) visit(typ reflect.Type) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		w.visit(typ.Elem())
		return
	case reflect.Struct:
	default:
		return
	}
	if w.seen[typ] || typ.Implements(jsonMarshaler) || typ.Implements(textMarshaler) {
		return
	}
	w.seen[typ] = true
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" && options == "" || !field.IsExported() {
			continue
		}
		if !field.Anonymous {
			if name == "" {
				name = field.Name
			}
			w.names = append(w.names, "payload "+typ.String()+"."+name+" "+field.Type.String())
		}
		w.visit(field.Type)
	}
}
