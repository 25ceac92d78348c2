package openapi

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Of returns the schema of the JSON of a Go type in a response. Every field of a struct is required unless
// its JSON tag has omitempty; a pointer may be null.
func Of[T any]() Schema { return schemaOf(reflect.TypeFor[T]()) }

// InputOf returns the schema of the JSON of a struct in a request: the fields that the parameter `required`
// names are required, and no other fields than those of the struct are allowed.
func InputOf[T any](required ...string) Schema {
	fields := Fields{}
	addFields(reflect.TypeFor[T](), fields, nil)
	for name, s := range fields {
		fields[name] = inputs(s)
	}
	return Input(fields, required...)
}

// inputs makes the fields of the objects below a schema optional, and refuses unknown fields.
func inputs(s Schema) Schema {
	fields, ok := s["properties"].(Fields)
	if ok {
		all := Fields{}
		for name, field := range fields {
			all[name] = inputs(field)
		}
		return Input(all)
	}
	if items, ok := s["items"].(Schema); ok {
		return s.with("items", inputs(items))
	}
	return s
}

// special contains the schemas of types that encode themselves.
var special = map[reflect.Type]func() Schema{
	reflect.TypeFor[time.Time]():       Time,
	reflect.TypeFor[uuid.UUID]():       UUID,
	reflect.TypeFor[netip.Addr]():      String,
	reflect.TypeFor[netip.Prefix]():    String,
	reflect.TypeFor[json.RawMessage](): Any,
}

func schemaOf(t reflect.Type) Schema {
	if s, ok := special[t]; ok {
		return s()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem()).Nullable()
	case reflect.Bool:
		return Boolean()
	case reflect.Int,
		reflect.Int8,
		reflect.Int16,
		reflect.Int32,
		reflect.Int64,
		reflect.Uint,
		reflect.Uint8,
		reflect.Uint16,
		reflect.Uint32,
		reflect.Uint64:
		return Integer()
	case reflect.Float32, reflect.Float64:
		return Number()
	case reflect.String:
		return String()
	case reflect.Slice, reflect.Array:
		return Array(schemaOf(t.Elem()))
	case reflect.Map:
		return Map(schemaOf(t.Elem()))
	case reflect.Struct:
		fields, optional := Fields{}, []string{}
		addFields(t, fields, &optional)
		return Object(fields, optional...)
	default:
		return Any()
	}
}

// addFields adds the fields of a struct, including those of embedded structs, and the names of the optional
// fields.
func addFields(t reflect.Type, fields Fields, optional *[]string) {
	for f := range reflectFields(t) {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case f.Anonymous && name == "":
			addFields(f.Type, fields, optional)
			continue
		case name == "-" || !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		fields[name] = schemaOf(f.Type)
		if omitted := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero"); omitted &&
			optional != nil {
			*optional = append(*optional, name)
			if f.Type.Kind() == reflect.Pointer { // a nil pointer is omitted, so null never occurs
				fields[name] = schemaOf(f.Type.Elem())
			}
		}
	}
}

func reflectFields(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}
