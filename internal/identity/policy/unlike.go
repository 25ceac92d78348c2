package policy

import "slices"

// Unlike is the value of an attribute of a target if the value is unknown, but differs from this text. With
// Unlike, DecideEarly says whether the caller may see an object of another project, before any object is
// read.
type Unlike string

// differs reports whether the attribute to which the pattern refers has another value than each of the texts.
func (p pattern) differs(target Target, texts ...string) bool {
	if len(p) != 1 || p[0].Name == "" {
		return false
	}
	other, ok := target[p[0].Name].(Unlike)
	return ok && !slices.ContainsFunc(texts, func(text string) bool { return text != string(other) })
}
