// Package openapi builds the OpenAPI 3.1 documents of berth's APIs. Each API describes its operations in Go:
// the requests and the responses of an operation come from the same tables and types that the API uses.
// Package openapi joins the descriptions with the routes of the API, so that a document has exactly the
// routes that the API has.
package openapi

import (
	"maps"
	"slices"
)

// Schema is a JSON schema (draft 2020-12) as a JSON object.
type Schema map[string]any

// Fields contains the schemas of the fields of an object.
type Fields map[string]Schema

// Named returns the schema with a name. The document contains a schema with a name once, below
// components/schemas, and refers to it.
func (s Schema) Named(name string) Schema { return s.with(componentKey, name) }

// Describe returns the schema with a description.
func (s Schema) Describe(text string) Schema { return s.with("description", text) }

// With returns an object's schema with another schema of one of its fields. With panics if the object has no
// such field, because this is a mistake in the description of an API.
func (s Schema) With(name string, field Schema) Schema {
	fields, ok := s["properties"].(Fields)
	if _, known := fields[name]; !ok || !known {
		panic("openapi: the object has no field " + name)
	}
	fields = maps.Clone(fields)
	fields[name] = field
	return s.with("properties", fields)
}

// Nullable returns the schema of a value that may also be null.
func (s Schema) Nullable() Schema {
	if typ, ok := s["type"].(string); ok && s["enum"] == nil && s["const"] == nil && s[componentKey] == nil {
		return s.with("type", []string{typ, "null"})
	}
	return Schema{"anyOf": []Schema{s, {"type": "null"}}}
}

func (s Schema) with(key string, value any) Schema {
	c := maps.Clone(s)
	c[key] = value
	return c
}

// Any returns the schema of any JSON value.
func Any() Schema { return Schema{} }

// String returns the schema of a string.
func String() Schema { return Schema{"type": "string"} }

// Text returns the schema of a string with at most `limit` characters.
func Text(limit int) Schema { return Schema{"type": "string", "maxLength": limit} }

// Name returns the schema of a string that is not empty and has at most `limit` characters.
func Name(limit int) Schema { return Schema{"type": "string", "minLength": 1, "maxLength": limit} }

// Boolean returns the schema of a boolean.
func Boolean() Schema { return Schema{"type": "boolean"} }

// Integer returns the schema of an integer.
func Integer() Schema { return Schema{"type": "integer"} }

// Between returns the schema of an integer in a range that includes both limits.
func Between(low, high int64) Schema {
	return Schema{"type": "integer", "minimum": low, "maximum": high}
}

// Number returns the schema of a number.
func Number() Schema { return Schema{"type": "number"} }

// UUID returns the schema of a UUID.
func UUID() Schema { return Schema{"type": "string", "format": "uuid"} }

// Time returns the schema of a time in RFC 3339.
func Time() Schema { return Schema{"type": "string", "format": "date-time"} }

// Null returns the schema of null.
func Null() Schema { return Schema{"type": "null"} }

// Const returns the schema of one value.
func Const(value any) Schema { return Schema{"const": value} }

// Enum returns the schema of a string that is one of the values.
func Enum[S ~string](values ...S) Schema { return Schema{"type": "string", "enum": values} }

// Array returns the schema of an array.
func Array(items Schema) Schema { return Schema{"type": "array", "items": items} }

// Map returns the schema of an object with any keys, whose values have the schema `values`.
func Map(values Schema) Schema { return Schema{"type": "object", "additionalProperties": values} }

// OneOf returns the schema of a value for which exactly one of the schemas is valid.
func OneOf(schemas ...Schema) Schema { return Schema{"oneOf": schemas} }

// AnyOf returns the schema of a value for which at least one of the schemas is valid.
func AnyOf(schemas ...Schema) Schema { return Schema{"anyOf": schemas} }

// Object returns the schema of an object in a response: the object has all fields except those that the
// parameter `optional` names, which may be missing. A later version may add fields.
func Object(fields Fields, optional ...string) Schema {
	required := []string{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(optional, name) {
			required = append(required, name)
		}
	}
	s := Schema{"type": "object", "properties": fields}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// Input returns the schema of an object in a request: the object must have the fields that the parameter
// `required` names, and it may have no other fields than `fields`.
func Input(fields Fields, required ...string) Schema {
	s := Schema{"type": "object", "properties": fields, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// Open returns an object's schema that also allows other fields, whose values have the schema `values`.
func (s Schema) Open(values Schema) Schema { return s.with("additionalProperties", values) }

// ErrorSchema returns the schema of the errors that osapi.WriteError writes.
func ErrorSchema() Schema {
	return Object(Fields{"error": Object(Fields{"code": Integer(), "message": String()})})
}
