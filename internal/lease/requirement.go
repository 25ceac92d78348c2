package lease

import (
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// Requirement is one condition on a host's properties.
type Requirement struct {
	Op, Key, Value string
}

var operators = []string{"=", "==", "!=", "<", "<=", ">", ">="}

// Null is the value that a property compares equal to which a host does not have.
const null = "null"

// ParseRequirements reads the requirement grammar: nothing, one triple ["op","$key","value"], or
// ["and", triple, …]. It is a text that holds JSON.
func ParseRequirements(text string) ([]Requirement, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal([]byte(text), &parts); err != nil || parts == nil {
		return nil, malformed(text)
	}
	if len(parts) == 0 {
		return nil, nil
	}
	var head string
	if err := json.Unmarshal(parts[0], &head); err != nil {
		return nil, malformed(text)
	}
	if head != "and" {
		r, ok := triple([]byte(text))
		if !ok {
			return nil, malformed(text)
		}
		return []Requirement{r}, nil
	}
	if len(parts) < 2 {
		return nil, malformed(text)
	}
	var all []Requirement
	for _, part := range parts[1:] {
		r, ok := triple(part)
		if !ok {
			return nil, malformed(text)
		}
		all = append(all, r)
	}
	return all, nil
}

// triple reads one condition, whose three parts are texts that are not empty.
func triple(raw []byte) (Requirement, bool) {
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

func malformed(text string) error {
	const shown = 200
	if len(text) > shown {
		text = text[:shown] + "…"
	}
	return Refuse(MalformedRequirements, "Malformed requirements %q", text)
}

// Holds tells whether a host with those properties meets the requirement. A host that lacks the property meets
// none but a comparison with null. Two numbers are compared as numbers, everything else as text.
func (r Requirement) Holds(properties map[string]string) bool {
	have, ok := properties[r.Key]
	if r.Value == null {
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

// decimal is bounded so that nobody makes us compare numbers of a million digits.
var decimal = regexp.MustCompile(`^[+-]?[0-9]{1,30}(\.[0-9]{1,30})?$`)

func compare(a, b string) int {
	if decimal.MatchString(a) && decimal.MatchString(b) {
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		return x.Cmp(y)
	}
	return strings.Compare(a, b)
}
