package policy

import (
	"slices"
	"strings"

	"berth/internal/identity"
)

// Explanation says why a condition of a rule allows or refuses a request.
type Explanation struct {
	Check   string `json:"check"`            // the condition in the grammar of oslo.policy
	Allowed bool   `json:"allowed"`          // the result of the condition
	Reason  string `json:"reason,omitempty"` // which values were compared; empty if the parts say it
	// the results of the conditions that this condition combines or refers to
	Parts []Explanation `json:"parts,omitempty"`
}

// Explain decides a rule as Allows does, and returns the result of each condition of the rule. The result
// known is false if no rule has the name.
func (p *Policy) Explain(name string, c identity.Caller, target Target) (e Explanation, known bool) {
	rules := p.current().rules
	check, known := rules[name]
	if !known {
		return Explanation{}, false
	}
	e = explain(check, question{rules: rules, caller: c, target: target})
	scopes := p.defaults[name].Scopes
	if len(scopes) == 0 {
		return e, true
	}
	s := Explanation{
		Check:   "scope of the token: " + joinScopes(scopes),
		Allowed: slices.Contains(scopes, scope(c)),
		Reason:  "the token has " + scope(c).String(),
	}
	return Explanation{
		Check:   s.Check + ", and " + nestedText(check),
		Allowed: s.Allowed && e.Allowed,
		Parts:   []Explanation{s, e},
	}, true
}

func joinScopes(scopes []Scope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = s.String()
	}
	return strings.Join(names, " or ")
}

// String returns the name of the scope.
func (s Scope) String() string {
	switch s {
	case Project:
		return "project scope"
	case System:
		return "system scope"
	default:
		return "neither project scope nor system scope"
	}
}

func explain(c Check, q question) Explanation {
	e := Explanation{Check: c.String(), Allowed: c.decide(q) == Allowed}
	switch c := c.(type) {
	case rule:
		if named, ok := q.rules[string(c)]; ok {
			e.Parts = []Explanation{explain(named, q)}
		}
	case constant:
		e.Reason = map[constant]string{true: "@ allows every request", false: "! refuses every request"}[c]
	case role:
		e.Reason = "the caller has " + listText("role", q.caller.Roles)
		e.addMissing(c.Wanted, q.target)
	case claim:
		e.Reason = "the caller has " + listText(c.Name, claims[c.Name](q.caller))
		e.addWanted(c.Wanted, q.target)
	case literal:
		e.addWanted(c.Wanted, q.target)
	case field:
		e.Reason = c.reason(q.target)
	default:
		for _, part := range c.parts() {
			e.Parts = append(e.Parts, explain(part, q))
		}
	}
	return e
}

// addWanted adds the value to which the pattern of the condition evaluates.
func (e *Explanation) addWanted(p pattern, target Target) {
	if len(p) == 1 && p[0].Name == "" {
		return // the condition itself shows the value
	}
	if wanted, ok := p.fill(target); ok {
		e.add("the target's value is '" + wanted + "'")
		return
	}
	e.addMissing(p, target)
}

// addMissing adds the attributes that the target lacks.
func (e *Explanation) addMissing(p pattern, target Target) {
	for _, piece := range p {
		if _, known := target[piece.Name]; piece.Name != "" && !known {
			e.add("the target has no " + piece.Name)
		}
	}
}

func (e *Explanation) add(reason string) {
	if e.Reason != "" {
		e.Reason += ", "
	}
	e.Reason += reason
}

func (c field) reason(target Target) string {
	for _, name := range c.attributes() {
		if value, ok := target[name]; ok {
			return "the target's " + name + " is '" + pythonString(value) + "'"
		}
	}
	return "the target has no " + c.Name
}

// listText returns the values of an attribute of the caller as text.
func listText(name string, values []string) string {
	switch len(values) {
	case 0:
		return "no " + name
	case 1:
		return "the " + name + " " + values[0]
	default:
		return "the " + strings.TrimSuffix(name, "s") + "s " + strings.Join(values, ", ")
	}
}
