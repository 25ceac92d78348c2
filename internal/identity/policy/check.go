package policy

import (
	"fmt"
	"slices"
	"strings"

	"berth/internal/identity"
)

// Target contains those attributes of the object of a request that a rule can compare, for example "project_id". The values of a Target are
// strings, booleans, numbers or nil.
type Target map[string]any

// Check is a parsed rule: a tree of conditions.
type Check interface {
	holds(q question) bool
	refers() []string // names of the rules to which this check refers
}

// question is the input of a check: the caller, the target and the rules.
type question struct {
	rules  map[string]Check
	caller identity.Caller
	target Target
}

type (
	constant bool    // @ and !
	all      []Check // and
	oneOf    []Check // or
	not      struct{ Check Check }
	rule     string                   // rule:NAME
	role     struct{ Wanted pattern } // role:NAME
	literal  struct {
		Text   string
		Wanted pattern
	} // 'text':VALUE
	claim struct {
		Name   string
		Wanted pattern
	} // user_id:VALUE and other attributes of the caller
)

func (c constant) holds(question) bool { return bool(c) }
func (c constant) refers() []string    { return nil }

func (c all) holds(q question) bool {
	return !slices.ContainsFunc(c, func(part Check) bool { return !part.holds(q) })
}
func (c all) refers() []string { return references(c) }

func (c oneOf) holds(q question) bool {
	return slices.ContainsFunc(c, func(part Check) bool { return part.holds(q) })
}
func (c oneOf) refers() []string { return references(c) }

func (c not) holds(q question) bool { return !c.Check.holds(q) }
func (c not) refers() []string      { return c.Check.refers() }

func (c rule) holds(q question) bool {
	named, ok := q.rules[string(c)]
	return ok && named.holds(q)
}
func (c rule) refers() []string { return []string{string(c)} }

// holds compares the names of roles case-insensitively.
func (c role) holds(q question) bool {
	wanted, ok := c.Wanted.fill(q.target)
	return ok && slices.ContainsFunc(q.caller.Roles, func(held string) bool { return strings.EqualFold(held, wanted) })
}
func (c role) refers() []string { return nil }

func (c literal) holds(q question) bool {
	wanted, ok := c.Wanted.fill(q.target)
	return ok && wanted == c.Text
}
func (c literal) refers() []string { return nil }

func (c claim) holds(q question) bool {
	wanted, ok := c.Wanted.fill(q.target)
	return ok && slices.Contains(claims[c.Name](q.caller), wanted)
}
func (c claim) refers() []string { return nil }

func references(parts []Check) (names []string) {
	for _, part := range parts {
		names = append(names, part.refers()...)
	}
	return names
}

// claims maps the name of each attribute of the caller to which rules may refer to a function that returns the attribute's values. If the
// caller lacks an attribute, the function returns no value, so every comparison with the attribute is false.
var claims = map[string]func(identity.Caller) []string{
	"user_id":    func(c identity.Caller) []string { return nonEmpty(c.User) },
	"project_id": func(c identity.Caller) []string { return nonEmpty(c.Project) },
	"tenant_id":  func(c identity.Caller) []string { return nonEmpty(c.Project) }, // the name of project_id in older policy files of Neutron
	"roles":      func(c identity.Caller) []string { return c.Roles },
	"system_scope": func(c identity.Caller) []string {
		if c.System {
			return []string{"all"}
		}
		return nil
	},
}

// nonEmpty returns a list that contains only s, or nil if s is empty.
func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// pattern is the right side of a condition: literal text and references to the target's values, %(name)s.
type pattern []piece

type piece struct{ Text, Name string } // literal text, or the name of the attribute to which a reference refers; the other field is empty

// fill replaces each reference in the pattern by the value of the target's attribute. The result ok is false if the target lacks one of the
// attributes.
func (p pattern) fill(target Target) (text string, ok bool) {
	var b strings.Builder
	for _, part := range p {
		b.WriteString(part.Text)
		if part.Name == "" {
			continue
		}
		value, known := target[part.Name]
		if !known {
			return "", false
		}
		b.WriteString(pythonString(value))
	}
	return b.String(), true
}

// pythonString converts a value to a string as Python's function str does, because oslo.policy compares the strings that str returns.
func pythonString(value any) string {
	switch value := value.(type) {
	case nil:
		return "None"
	case bool:
		if value {
			return "True"
		}
		return "False"
	default:
		return fmt.Sprint(value)
	}
}
