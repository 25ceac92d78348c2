package placement

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
)

// The forms that many bodies share.
var (
	classPattern  = regexp.MustCompile(`^[A-Z0-9_]+$`)
	customPattern = regexp.MustCompile(`^CUSTOM_[A-Z0-9_]+$`)
	keyPattern    = regexp.MustCompile(`^[0-9a-fA-F-]{36}$`)
	groupPattern  = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	hexPattern    = regexp.MustCompile(`^[0-9a-f]{32}$`)

	someUUID   = &schema{kind: "string", uuid: true, maxLength: 64} // in any form, but no endless one
	someName   = &schema{kind: "string", minLength: 1, maxLength: 255}
	customName = &schema{kind: "string", minLength: 1, maxLength: 255, pattern: customPattern}
	integer    = &schema{kind: "integer"}
	amount     = &schema{kind: "integer", minimum: bound(1)}
)

func bound(f float64) *float64 { return &f }

// input reads the body, which must be JSON of that form.
func (c *call) input(form *schema) (any, error) {
	raw, err := osapi.Body(c.Request)
	if err != nil {
		return nil, err
	}
	v, err := osapi.ParseJSON(raw)
	if err != nil {
		return nil, fault(http.StatusBadRequest, "Malformed JSON: %s", err)
	}
	if m := form.check(v); m != nil {
		return nil, fault(http.StatusBadRequest, "JSON does not validate: %s", m)
	}
	return v, nil
}

// object is input for bodies that are objects.
func (c *call) object(form *schema) (map[string]any, error) {
	v, err := c.input(form)
	if err != nil {
		return nil, err
	}
	return v.(map[string]any), nil
}

// query reads the query, whose parameters must be of that form. Of a repeated one the last counts.
func (c *call) query(form *schema) (map[string]string, error) {
	values := c.URL.Query()
	object, texts := map[string]any{}, map[string]string{}
	for name := range values {
		texts[name] = last(values[name])
		object[name] = texts[name]
	}
	if m := form.check(object); m != nil {
		return nil, fault(http.StatusBadRequest, "Invalid query string parameters: %s", m)
	}
	return texts, nil
}

// given is the parameter of a query, nil if it was not sent.
func given(query map[string]string, name string) *string {
	if v, ok := query[name]; ok {
		return &v
	}
	return nil
}

// text is the string that a checked value is.
func text(v any) string {
	s, _ := v.(string)
	return s
}

// digits reduces a UUID, in any form that Python's parser takes, to its 32 digits.
func digits(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "urn:", ""), "uuid:", "")
	return strings.ToLower(strings.ReplaceAll(strings.Trim(s, "{}"), "-", ""))
}

func isUUID(s string) bool { return hexPattern.MatchString(digits(s)) }

// canonical writes a UUID, in any form that Python's parser takes, the usual way; ok is false if it is none.
func canonical(s string) (id string, ok bool) {
	if !isUUID(s) {
		return "", false
	}
	return uuid.MustParse(digits(s)).String(), true
}
