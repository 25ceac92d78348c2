package inventory

import "slices"

// Rule is a condition on a set of traits or aggregates: at least one of each list of alternatives, and none of the
// forbidden ones.
type Rule struct {
	Required  [][]string
	Forbidden []string
}

// IsEmpty reports whether the rule has no condition.
func (r Rule) IsEmpty() bool { return len(r.Required) == 0 && len(r.Forbidden) == 0 }

// MetBy reports whether the union of the sets meets the rule.
func (r Rule) MetBy(there ...[]string) bool {
	for _, set := range there {
		if overlap(r.Forbidden, set) {
			return false
		}
	}
	for _, alternatives := range r.Required {
		if !slices.ContainsFunc(there, func(set []string) bool { return overlap(alternatives, set) }) {
			return false
		}
	}
	return true
}

// Names returns all names in the rule.
func (r Rule) Names() []string { return append(slices.Concat(r.Required...), r.Forbidden...) }

func overlap(a, b []string) bool {
	for _, name := range a {
		if slices.Contains(b, name) {
			return true
		}
	}
	return false
}
