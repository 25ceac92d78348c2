package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"berth/internal/identity"
)

// Target contains those attributes of the object of a request that a rule can compare, for example
// "project_id". The values of a Target are strings, booleans, numbers, UUIDs or nil.
type Target map[string]any

// Decision is the result of a rule for a caller and a target. The values of a Decision are ordered: "and" is
// the minimum of its parts, "or" is the maximum.
type Decision int

// The values of a Decision.
const (
	Denied  Decision = iota
	Depends          // the result depends on attributes of the target that are not known yet
	Allowed
)

func decisionOf(allowed bool) Decision {
	if allowed {
		return Allowed
	}
	return Denied
}

// Check is a parsed rule: a tree of conditions.
type Check interface {
	decide(q question) Decision
	parts() []Check // the conditions that this check combines
	String() string // in the grammar of oslo.policy
}

// question is the input of a check: the caller, the target and the rules.
type question struct {
	rules  map[string]Check
	caller identity.Caller
	target Target
	// an attribute that the target lacks is unknown; if open is false, a condition on such an attribute is
	// false
	open bool
}

// missing returns the result of a condition on an attribute that the target lacks.
func (q question) missing() Decision {
	if q.open {
		return Depends
	}
	return Denied
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
		Quoted string // Text as the rule has it, with its quotes
		Wanted pattern
	} // 'text':VALUE
	claim struct {
		Name   string
		Wanted pattern
	} // user_id:VALUE and other attributes of the caller
	field struct {
		Resource, Name, Wanted string
		Pattern                *regexp.Regexp // nil: the attribute must be equal to Wanted
	} // field:RESOURCE:NAME=VALUE, a condition of Neutron on the target's attribute NAME
)

func (c constant) decide(question) Decision { return decisionOf(bool(c)) }
func (c constant) parts() []Check           { return nil }
func (c constant) String() string {
	if c {
		return "@"
	}
	return "!"
}

func (c all) decide(q question) Decision {
	result := Allowed
	for _, part := range c {
		if result = min(result, part.decide(q)); result == Denied {
			break
		}
	}
	return result
}
func (c all) parts() []Check { return c }
func (c all) String() string { return joinText(c, " and ") }

func (c oneOf) decide(q question) Decision {
	result := Denied
	for _, part := range c {
		if result = max(result, part.decide(q)); result == Allowed {
			break
		}
	}
	return result
}
func (c oneOf) parts() []Check { return c }
func (c oneOf) String() string { return joinText(c, " or ") }

func (c not) decide(q question) Decision { return Allowed - c.Check.decide(q) }
func (c not) parts() []Check             { return []Check{c.Check} }
func (c not) String() string             { return "not " + nestedText(c.Check) }

func (c rule) decide(q question) Decision {
	if named, ok := q.rules[string(c)]; ok {
		return named.decide(q)
	}
	return Denied
}
func (c rule) parts() []Check { return nil }
func (c rule) String() string { return "rule:" + string(c) }

// decide compares the names of roles case-insensitively.
func (c role) decide(q question) Decision {
	if len(q.caller.Roles) == 0 {
		return Denied
	}
	wanted, ok := c.Wanted.fill(q.target)
	if !ok {
		return q.missing()
	}
	isWanted := func(held string) bool { return strings.EqualFold(held, wanted) }
	return decisionOf(slices.ContainsFunc(q.caller.Roles, isWanted))
}
func (c role) parts() []Check { return nil }
func (c role) String() string { return "role:" + c.Wanted.String() }

func (c literal) decide(q question) Decision {
	if c.Wanted.differs(q.target, c.Text) {
		return Denied
	}
	wanted, ok := c.Wanted.fill(q.target)
	if !ok {
		return q.missing()
	}
	return decisionOf(wanted == c.Text)
}
func (c literal) parts() []Check { return nil }
func (c literal) String() string { return c.Quoted + ":" + c.Wanted.String() }

func (c claim) decide(q question) Decision {
	values := claims[c.Name](q.caller)
	if len(values) == 0 || c.Wanted.differs(q.target, values...) {
		return Denied
	}
	wanted, ok := c.Wanted.fill(q.target)
	if !ok {
		return q.missing()
	}
	return decisionOf(slices.Contains(values, wanted))
}
func (c claim) parts() []Check { return nil }
func (c claim) String() string { return c.Name + ":" + c.Wanted.String() }

// attribute returns the names under which the target may have the attribute: its own name; or, if the target
// belongs to an object of the named kind, such as the network of a port, the name with the kind before it.
func (c field) attributes() [2]string {
	return [2]string{c.Name, strings.TrimSuffix(c.Resource, "s") + ":" + c.Name}
}

func (c field) decide(q question) Decision {
	for _, name := range c.attributes() {
		if value, ok := q.target[name]; ok {
			if _, unknown := value.(Unlike); unknown {
				return q.missing()
			}
			text := pythonString(value)
			return decisionOf(
				value != nil &&
					(c.Pattern == nil && text == c.Wanted || c.Pattern != nil && c.Pattern.MatchString(text)),
			)
		}
	}
	return q.missing()
}
func (c field) parts() []Check { return nil }
func (c field) String() string { return "field:" + c.Resource + ":" + c.Name + "=" + c.Wanted }

// joinText joins the texts of several conditions.
func joinText(parts []Check, word string) string {
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = nestedText(part)
	}
	return strings.Join(texts, word)
}

// nestedText returns the text of a condition inside another condition, in parentheses if the condition has
// several parts.
func nestedText(c Check) string {
	switch c.(type) {
	case all, oneOf:
		return "(" + c.String() + ")"
	}
	return c.String()
}

// referredRules returns the names of the rules to which the check refers directly.
func referredRules(c Check) (names []string) {
	if name, ok := c.(rule); ok {
		return []string{string(name)}
	}
	for _, part := range c.parts() {
		names = append(names, referredRules(part)...)
	}
	return names
}

// comparedAttributes returns the conditions of the check on the target, without those in rules to which the
// check refers. For each condition, comparedAttributes returns the names of the attributes any one of which
// decides the condition.
func comparedAttributes(c Check) (conditions [][]string) {
	var wanted pattern
	switch c := c.(type) {
	case role:
		wanted = c.Wanted
	case literal:
		wanted = c.Wanted
	case claim:
		wanted = c.Wanted
	case field:
		names := c.attributes()
		return [][]string{names[:]}
	}
	for _, piece := range wanted {
		if piece.Name != "" {
			conditions = append(conditions, []string{piece.Name})
		}
	}
	for _, part := range c.parts() {
		conditions = append(conditions, comparedAttributes(part)...)
	}
	return conditions
}

// claims maps the name of each attribute of the caller to which rules may refer to a function that returns
// the attribute's values. If the caller lacks an attribute, the function returns no value, so every
// comparison with the attribute is false.
var claims = map[string]func(identity.Caller) []string{
	"user_id":    func(c identity.Caller) []string { return nonEmpty(c.User) },
	"project_id": func(c identity.Caller) []string { return nonEmpty(c.Project) },
	// the name of project_id in older policy files of Neutron
	"tenant_id": func(c identity.Caller) []string { return nonEmpty(c.Project) },
	"roles":     func(c identity.Caller) []string { return c.Roles },
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

// literal text, or the name of the attribute to which a reference refers; the other field is empty
type piece struct{ Text, Name string }

// fill replaces each reference in the pattern by the value of the target's attribute. The result ok is false
// if the target lacks one of the attributes.
func (p pattern) fill(target Target) (text string, ok bool) {
	if len(p) == 1 { // nearly every pattern, so it needs no buffer
		return p[0].fill(target)
	}
	var b strings.Builder
	for _, part := range p {
		s, known := part.fill(target)
		if !known {
			return "", false
		}
		b.WriteString(s)
	}
	return b.String(), true
}

func (p piece) fill(target Target) (text string, ok bool) {
	if p.Name == "" {
		return p.Text, true
	}
	value, known := target[p.Name]
	if _, unknown := value.(Unlike); !known || unknown {
		return "", false
	}
	return pythonString(value), true
}

func (p pattern) String() string {
	var b strings.Builder
	for _, part := range p {
		if part.Name != "" {
			b.WriteString("%(" + part.Name + ")s")
			continue
		}
		b.WriteString(strings.ReplaceAll(part.Text, "%", "%%"))
	}
	return b.String()
}

// pythonString converts a value to a string as Python's function str does, because oslo.policy compares the
// strings that str returns.
func pythonString(value any) string {
	switch value := value.(type) {
	case nil:
		return "None"
	case string:
		return value
	case bool:
		if value {
			return "True"
		}
		return "False"
	default:
		return fmt.Sprint(value)
	}
}
