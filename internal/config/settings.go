package config

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"berth/internal/safeurl"
)

// Setting is one setting of berth.
type Setting struct {
	Name        string // of the environment variable
	Default     string // empty: none
	Unit        string // unit or form of the value
	Description string // what the setting sets; one or two sentences
	Secret      bool   // errors and pages must not show the value
	set         setter // nil: another package reads the variable
}

// Section is a group of settings on one topic.
type Section struct {
	Title    string
	Settings []Setting
}

// Sections returns all settings by topic, in the order of docs/settings.md. The page docs/settings.md is
// generated from Sections.
func Sections() []Section {
	return []Section{
		processSettings,
		traceSettings,
		keystoneSettings,
		placementSettings,
		networkingSettings,
		leaseSettings,
		cloudSettings,
		odlSettings,
		corsSettings,
		cliSettings,
		devSettings,
	}
}

func settingsByName() map[string]Setting {
	byName := map[string]Setting{}
	for _, section := range Sections() {
		for _, s := range section.Settings {
			byName[s.Name] = s
		}
	}
	return byName
}

// Variables returns the names of all settings, sorted.
func Variables() []string { return slices.Sorted(maps.Keys(settingsByName())) }

// Usage prints every setting with the setting's default, unit and description.
func Usage(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	settings := settingsByName()
	for _, name := range Variables() {
		s := settings[name]
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", name, s.Default, s.Unit, s.Description)
	}
	_ = t.Flush()
}

// redact returns the value with placeholders for its secrets: the whole value of a secret setting, and the
// user, the password and the query of a URL.
func (s Setting) redact(value string) string {
	if s.Secret {
		return "(secret)"
	}
	return safeurl.RedactValue(value)
}
