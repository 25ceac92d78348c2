package lease

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"berth/internal/text"
)

// Requirement is a condition on one property of a host.
type Requirement struct {
	Op, Key, Value string
}

var operators = []string{"=", "==", "!=", "<", "<=", ">", ">="}

// nullValue is the value with which a requirement tests whether a host has a property: the host meets
// ["==","$key","null"] if it does not have the property.
const nullValue = "null"

// ParseRequirements parses requirements in Blazar's grammar. The text is empty or JSON: one triple
// ["op","$key","value"], or ["and", triple, …].
func ParseRequirements(text string) ([]Requirement, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal([]byte(text), &parts); err != nil || parts == nil {
		return nil, malformedFault(text)
	}
	if len(parts) == 0 {
		return nil, nil
	}
	var head string
	if err := json.Unmarshal(parts[0], &head); err != nil {
		return nil, malformedFault(text)
	}
	if head != "and" {
		r, ok := parseTriple([]byte(text))
		if !ok {
			return nil, malformedFault(text)
		}
		return []Requirement{r}, nil
	}
	if len(parts) < 2 {
		return nil, malformedFault(text)
	}
	var all []Requirement
	for _, part := range parts[1:] {
		r, ok := parseTriple(part)
		if !ok {
			return nil, malformedFault(text)
		}
		all = append(all, r)
	}
	return all, nil
}

// parseTriple parses one condition ["op","$key","value"], whose three strings must not be empty.
func parseTriple(raw []byte) (Requirement, bool) {
	var parts []*string
	if json.Unmarshal(raw, &parts) != nil || len(parts) != 3 {
		return Requirement{}, false
	}
	for _, p := range parts {
		if p == nil || *p == "" {
			return Requirement{}, false
		}
	}
	key, isKey := strings.CutPrefix(*parts[1], "$")
	if !isKey || key == "" || !slices.Contains(operators, *parts[0]) {
		return Requirement{}, false
	}
	op := *parts[0]
	if op == "=" {
		op = "=="
	}
	return Requirement{Op: op, Key: key, Value: *parts[2]}, true
}

func malformedFault(requirements string) error {
	return Faultf(MalformedRequirements, "Malformed requirements %q", text.Excerpt(requirements, 200))
}

// NormalizeRequirements returns requirements in the form in which berth stores them: the same JSON without
// blanks between its tokens and without needless escapes. NormalizeRequirements returns malformed
// requirements unchanged, so that ParseRequirements can refuse them.
func NormalizeRequirements(text string) string {
	if _, err := ParseRequirements(text); err != nil {
		return text
	}
	if strings.TrimSpace(text) == "" {
		return ""
	}
	var list any
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the operators < and > stay readable
	if json.Unmarshal([]byte(text), &list) != nil || e.Encode(list) != nil {
		return text // impossible: ParseRequirements accepts only lists of strings
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// MetBy reports whether a host meets the requirement if its property r.Key has the value `have`, or if it
// does not have the property (`has` is false). A host without the property meets only the requirement that
// the property equals null. MetBy compares two numbers as numbers, and all other values as strings.
func (r Requirement) MetBy(have string, has bool) bool {
	if r.Value == nullValue {
		return r.Op == "==" && !has || r.Op == "!=" && has
	}
	if !has {
		return false
	}
	c := compareValues(have, r.Value)
	switch r.Op {
	case "==":
		return c == 0
	case "!=":
		return c != 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	default:
		return c >= 0
	}
}

// allMet reports whether all requirements are met. The function `property` returns the value of a property,
// and whether the property exists.
func allMet(requirements []Requirement, property func(key string) (string, bool)) bool {
	return !slices.ContainsFunc(requirements, func(r Requirement) bool { return !r.MetBy(property(r.Key)) })
}

func compareValues(a, b string) int {
	if x, ok := parseDecimal(a); ok {
		if y, ok := parseDecimal(b); ok {
			return x.compare(y)
		}
	}
	return strings.Compare(a, b)
}

// decimal is a decimal number as text. Decimals are compared digit by digit and need no memory, because one
// lease can compare hundreds of requirements with every host of a cloud.
type decimal struct {
	negative        bool
	whole, fraction string // without leading or trailing zeros
}

// parseDecimal parses a decimal number. The result is false if s is not a decimal number, or if it has more
// than 30 digits before or after the point.
func parseDecimal(s string) (decimal, bool) {
	negative := strings.HasPrefix(s, "-")
	if negative || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	whole, fraction, hasFraction := strings.Cut(s, ".")
	if !isDigits(whole) || hasFraction && !isDigits(fraction) {
		return decimal{}, false
	}
	d := decimal{negative, strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")}
	d.negative = d.negative && d.whole+d.fraction != "" // zero has no sign
	return d, true
}

func isDigits(s string) bool {
	const longest = 30
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) > 0 && len(s) <= longest
}

func (d decimal) compare(other decimal) int {
	switch {
	case d.negative && other.negative:
		return other.compareDigits(d)
	case d.negative:
		return -1
	case other.negative:
		return 1
	}
	return d.compareDigits(other)
}

func (d decimal) compareDigits(other decimal) int {
	return cmp.Or(
		cmp.Compare(len(d.whole), len(other.whole)),
		strings.Compare(d.whole, other.whole),
		strings.Compare(d.fraction, other.fraction),
	)
}
