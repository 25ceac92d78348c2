package inventory

import "slices"

// Rule is a condition on a set of traits or aggregates. A set meets the rule if the set contains at least one
// name of each list in Required, and no name of Forbidden.
type Rule struct {
	Required  [][]string
	Forbidden []string
}

// IsEmpty reports whether the rule accepts every set.
func (r Rule) IsEmpty() bool { return len(r.Required) == 0 && len(r.Forbidden) == 0 }

// MetBy reports whether the union of the given sets meets the rule.
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

// Names returns all names of traits or aggregates in the rule.
func (r Rule) Names() []string { return append(slices.Concat(r.Required...), r.Forbidden...) }

func overlap(a, b []string) bool {
	for _, name := range a {
		if slices.Contains(b, name) {
			return true
		}
	}
	return false
}
