package placement

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// schema is a JSON schema. The errors of a schema have the wording of Python's jsonschema library, because
// Placement's clients and their tests look for this wording.
type schema struct {
	kind     string // object, array, string, integer or number
	nullable bool

	required []string
	fields   map[string]*schema
	keys     *regexp.Regexp // pattern that the keys outside `fields` must match
	each     *schema        // schema of the values of the keys outside `fields`
	open     bool           // keys that are not in `fields` and do not match `keys` are allowed
	minKeys  int

	items    *schema
	minItems int
	unique   bool

	minLength, maxLength int // maxLength 0 means no limit
	pattern              *regexp.Regexp
	uuid                 bool

	minimum, maximum *float64
}

// maxElements is the maximum number of items of an array, and of keys of an object whose keys are not in
// `fields`.
const maxElements = 1000

// mismatch is the error for a JSON value that violates a schema.
type mismatch struct {
	why, keyword, path string
}

func (m *mismatch) Error() string {
	return fmt.Sprintf("%s Failed validating '%s' in schema%s", m.why, m.keyword, m.path)
}

// mismatchf returns a mismatch with a formatted text. The path of the new mismatch is empty; mismatch.below
// later adds elements to the path.
func mismatchf(keyword, format string, args ...any) *mismatch {
	return &mismatch{why: fmt.Sprintf(format, args...), keyword: keyword}
}

// below puts keys before the path of a mismatch. The path leads from an outer schema to the inner schema that
// the value violates.
func (m *mismatch) below(keys ...string) *mismatch {
	if m == nil {
		return nil
	}
	for _, key := range slices.Backward(keys) {
		m.path = "[" + repr(key) + "]" + m.path
	}
	return m
}

// check compares a value from osapi.ParseJSON with the schema. If several parts of the value violate the
// schema, check returns only the first mismatch.
func (s *schema) check(v any) *mismatch {
	if v == nil && s.nullable {
		return nil
	}
	switch s.kind {
	case "object":
		if object, ok := v.(map[string]any); ok {
			return s.checkObject(object)
		}
	case "array":
		if array, ok := v.([]any); ok {
			return s.checkArray(array)
		}
	case "string":
		if text, ok := v.(string); ok {
			return s.checkString(text)
		}
	case "integer", "number":
		if number, ok := v.(json.Number); ok && (s.kind == "number" || isInteger(number)) {
			return s.checkNumber(number)
		}
	}
	if s.nullable {
		return mismatchf("type", "%s is not of type '%s', 'null'", repr(v), s.kind)
	}
	return mismatchf("type", "%s is not of type '%s'", repr(v), s.kind)
}

func (s *schema) checkObject(object map[string]any) *mismatch {
	for _, name := range s.required {
		if _, ok := object[name]; !ok {
			return mismatchf("required", "%s is a required property", repr(name))
		}
	}
	if len(object) < s.minKeys {
		return mismatchf("minProperties", "%s does not have enough properties", repr(object))
	}
	if s.each != nil && len(object) > maxElements {
		return mismatchf("maxProperties", "an object with %d properties, more than %d.",
			len(object), maxElements)
	}
	if m := s.unexpected(object); m != nil {
		return m
	}
	for _, name := range sorted(object) {
		var m *mismatch
		field, known := s.fields[name]
		switch {
		case known:
			m = field.check(object[name]).below("properties", name)
		case s.keys != nil && s.keys.MatchString(name):
			m = s.each.check(object[name]).below("patternProperties", s.keys.String())
		case s.keys == nil && s.each != nil:
			m = s.each.check(object[name]).below("additionalProperties")
		}
		if m != nil {
			return m
		}
	}
	return nil
}

// unexpected refuses keys that the object must not have.
func (s *schema) unexpected(object map[string]any) *mismatch {
	if s.open {
		return nil
	}
	var names []string
	for name := range object {
		if s.fields[name] == nil && (s.keys == nil || !s.keys.MatchString(name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = repr(name)
	}
	list := strings.Join(names, ", ")
	switch {
	case len(names) == 0:
		return nil
	case s.keys != nil && len(names) == 1:
		return mismatchf("additionalProperties", "%s does not match any of the regexes: %s",
			list, repr(s.keys.String()))
	case s.keys != nil:
		return mismatchf("additionalProperties", "%s do not match any of the regexes: %s",
			list, repr(s.keys.String()))
	case len(names) == 1:
		return mismatchf("additionalProperties",
			"Additional properties are not allowed (%s was unexpected)", list)
	default:
		return mismatchf("additionalProperties",
			"Additional properties are not allowed (%s were unexpected)", list)
	}
}

func (s *schema) checkArray(array []any) *mismatch {
	if len(array) < s.minItems {
		return mismatchf("minItems", "%s should be non-empty", repr(array))
	}
	if len(array) > maxElements {
		return mismatchf("maxItems", "a list with %d items, more than %d.", len(array), maxElements)
	}
	known := map[string]bool{}
	for _, v := range array {
		if m := s.items.check(v).below("items"); m != nil {
			return m
		}
		if text, ok := v.(string); ok && s.unique {
			if known[text] {
				return mismatchf("uniqueItems", "%s has non-unique elements", repr(array))
			}
			known[text] = true
		}
	}
	return nil
}

func (s *schema) checkString(text string) *mismatch {
	length := utf8.RuneCountInString(text)
	switch {
	case length < s.minLength:
		return mismatchf("minLength", "%s should be non-empty", repr(text))
	case s.maxLength > 0 && length > s.maxLength:
		return mismatchf("maxLength", "%s is too long", repr(text))
	case s.pattern != nil && !s.pattern.MatchString(text):
		return mismatchf("pattern", "%s does not match %s", repr(text), repr(s.pattern.String()))
	case s.uuid && !isUUID(text):
		return mismatchf("format", "%s is not a 'uuid'", repr(text))
	}
	return nil
}

func (s *schema) checkNumber(number json.Number) *mismatch {
	f, _ := number.Float64() // a number beyond the range of float64 becomes infinite
	switch {
	case s.minimum != nil && f < *s.minimum:
		return mismatchf("minimum", "%s is less than the minimum of %s", number, plain(*s.minimum))
	case s.maximum != nil && f > *s.maximum:
		return mismatchf("maximum", "%s is greater than the maximum of %s", number, plain(*s.maximum))
	}
	return nil
}

// plain formats a JSON number. If the number is an integer, plain formats the number without an exponent.
func plain(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// isInteger reports whether a JSON number is an integer. The notation of the number does not matter: 1000,
// 1000.0 and 1e3 are integers.
func isInteger(number json.Number) bool {
	if !strings.ContainsAny(number.String(), ".eE") {
		return true
	}
	f, err := number.Float64()
	return err == nil && f == math.Trunc(f)
}

// intOf returns a JSON integer as an int64. If the integer is outside the range of int64, intOf returns the
// nearest int64.
func intOf(v any) int64 {
	number, _ := v.(json.Number)
	if i, err := number.Int64(); err == nil {
		return i
	}
	f, _ := number.Float64()
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(f)
}

// repr writes a value as Python's repr does.
func repr(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		return "'" + v + "'"
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = repr(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, name := range sorted(v) {
			parts = append(parts, repr(name)+": "+repr(v[name]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	default:
		return fmt.Sprint(v)
	}
}

func sorted(object map[string]any) []string {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
