package placement

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
)

// Schemas and patterns that several bodies share.
var (
	classPattern  = regexp.MustCompile(`^[A-Z0-9_]+$`)
	customPattern = regexp.MustCompile(`^CUSTOM_[A-Z0-9_]+$`)
	keyPattern    = regexp.MustCompile(`^[0-9a-fA-F-]{36}$`)
	groupPattern  = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	hexPattern    = regexp.MustCompile(`^[0-9a-f]{32}$`)

	// in any format that Python's UUID parser accepts, with a length limit
	someUUID = &schema{
		kind:      "string",
		uuid:      true,
		maxLength: 64,
	}
	someName   = &schema{kind: "string", minLength: 1, maxLength: 255}
	customName = &schema{
		kind:      "string",
		minLength: 1,
		maxLength: 255,
		pattern:   customPattern,
	}
	integer = &schema{kind: "integer"}
	amount  = &schema{kind: "integer", minimum: bound(1)}
)

func bound(f float64) *float64 { return &f }

// decode reads the JSON body of the request and checks the body against the schema.
func (c *call) decode(expected *schema) (any, error) {
	raw, err := osapi.Body(c.Request)
	if err != nil {
		return nil, err
	}
	c.raw = raw
	v, err := osapi.ParseJSON(raw)
	if err != nil {
		return nil, fault(http.StatusBadRequest, "Malformed JSON: %s", err)
	}
	if m := expected.check(v); m != nil {
		return nil, fault(http.StatusBadRequest, "JSON does not validate: %s", m)
	}
	return v, nil
}

// decodeObject reads the JSON body of the request, which must be a JSON object, and checks the body against
// the schema.
func (c *call) decodeObject(expected *schema) (map[string]any, error) {
	v, err := c.decode(expected)
	if err != nil {
		return nil, err
	}
	return v.(map[string]any), nil
}

// decodeQuery reads the query parameters and checks them against the schema. If the query repeats a
// parameter, decodeQuery uses only the last value of the parameter.
func (c *call) decodeQuery(expected *schema) (map[string]string, error) {
	values := c.URL.Query()
	object, texts := map[string]any{}, map[string]string{}
	for name := range values {
		texts[name] = last(values[name])
		object[name] = texts[name]
	}
	if m := expected.check(object); m != nil {
		return nil, fault(http.StatusBadRequest, "Invalid query string parameters: %s", m)
	}
	return texts, nil
}

// optional returns the value of a query parameter. If the query does not contain the parameter, optional
// returns nil.
func optional(query map[string]string, name string) *string {
	if v, ok := query[name]; ok {
		return &v
	}
	return nil
}

// stringOf converts a value that has passed the schema check to a string.
func stringOf(v any) string {
	s, _ := v.(string)
	return s
}

// uuidDigits returns the 32 hexadecimal digits of a UUID in any format that Python's parser accepts.
func uuidDigits(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "urn:", ""), "uuid:", "")
	return strings.ToLower(strings.ReplaceAll(strings.Trim(s, "{}"), "-", ""))
}

func isUUID(s string) bool { return hexPattern.MatchString(uuidDigits(s)) }

// canonicalUUID converts a UUID to the canonical form. canonicalUUID accepts every format that Python's UUID
// parser accepts; for any other text the result `ok` is false.
func canonicalUUID(s string) (id string, ok bool) {
	if !isUUID(s) {
		return "", false
	}
	return uuid.MustParse(uuidDigits(s)).String(), true
}
