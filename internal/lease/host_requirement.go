package lease

import (
	"bytes"
	"encoding/json"
	"math/big"
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

// MetBy reports whether a host with the given properties meets the requirement. A host without the property
// meets only the requirement that the property equals null. MetBy compares two numbers as numbers, and all
// other values as strings.
func (r Requirement) MetBy(properties map[string]string) bool {
	have, ok := properties[r.Key]
	if r.Value == nullValue {
		return r.Op == "==" && !ok || r.Op == "!=" && ok
	}
	if !ok {
		return false
	}
	c := compare(have, r.Value)
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

// isDecimal reports whether s is a decimal number. The number of digits is bounded, so that a comparison
// cannot be made expensive.
func isDecimal(s string) bool {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	whole, fraction, hasFraction := strings.Cut(s, ".")
	return isDigits(whole) && (!hasFraction || isDigits(fraction))
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

func compare(a, b string) int {
	if isDecimal(a) && isDecimal(b) {
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		return x.Cmp(y)
	}
	return strings.Compare(a, b)
}
