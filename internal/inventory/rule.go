package inventory

import "slices"

// Rule is what a provider's traits or aggregates must be like: at least one of each set of alternatives, none of
// the forbidden ones.
type Rule struct {
	Required  [][]string
	Forbidden []string
}

// Anything tells whether the rule asks for nothing.
func (r Rule) Anything() bool { return len(r.Required) == 0 && len(r.Forbidden) == 0 }

// Met tells whether what is there, all the sets together, is as the rule says.
func (r Rule) Met(there ...[]string) bool {
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

// Names are all that the rule speaks of.
func (r Rule) Names() []string { return append(slices.Concat(r.Required...), r.Forbidden...) }

func overlap(a, b []string) bool {
	for _, name := range a {
		if slices.Contains(b, name) {
			return true
		}
	}
	return false
}
