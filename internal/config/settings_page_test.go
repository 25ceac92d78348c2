package config

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/settings.md from the table of settings")

const settingsPage = "../../docs/settings.md"

// sections groups the settings by the longest matching prefix of their names, in the order of the page.
var sections = []struct{ title, prefix string }{
	{"Processes, API and database", "BERTH_"},
	{"Keystone", "OS_"},
	{"Placement", "BERTH_CANDIDATES_"},
	{"Placement", "BERTH_HISTORY_"},
	{"Placement", "BERTH_INCOMPLETE_"},
	{"Networking", "BERTH_PORT_"},
	{"Networking", "BERTH_QUOTA"},
	{"Networking", "BERTH_TRADITIONAL_DHCP"},
	{"Networking", "BERTH_NEW_AGENTS"},
	{"Networking", "BERTH_RABBITMQ_"},
	{"Leases", "BERTH_LEASE_"},
	{"Nova and Neutron", "BERTH_NOVA_"},
	{"Nova and Neutron", "BERTH_NEUTRON_"},
	{"OpenDaylight and the journal", "BERTH_ODL_"},
	{"OpenDaylight and the journal", "BERTH_JOURNAL_"},
	{"CORS", "BERTH_CORS_"},
	{"The command line `starter`", "BERTH_URL"},
	{"The command line `starter`", "BERTH_TOKEN"},
	{"Development run (`worker --dev`) and tests", "BERTH_DATA"},
	{"Development run (`worker --dev`) and tests", "BERTH_DEV_"},
	{"Development run (`worker --dev`) and tests", "BERTH_DEMO"},
	{"Development run (`worker --dev`) and tests", "BERTH_TEMPORAL_CLI"},
	{"Processes, API and database", "BERTH_DATABASE_URL"},
}

// TestSettingsPage_EqualsTable fails when docs/settings.md differs from the table of settings.
// `go test ./internal/config -run SettingsPage -update` writes the page.
func TestSettingsPage_EqualsTable(t *testing.T) {
	t.Parallel()
	want := page()
	if *update {
		if err := os.WriteFile(settingsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(settingsPage)
	if err != nil {
		t.Fatal(err)
	}
	if d := diff.Diff(string(got), want); d != "" {
		t.Errorf("docs/settings.md is outdated; run go test ./internal/config -run SettingsPage -update:\n%s", d)
	}
}

func TestSettings_EachHasAMeaning(t *testing.T) {
	t.Parallel()
	for _, name := range Variables() {
		if variables[name].help == "" {
			t.Errorf("%s has no help text", name)
		}
	}
}

// page renders docs/settings.md.
func page() string {
	var b strings.Builder
	b.WriteString(settingsHead)
	for _, title := range titles() {
		fmt.Fprintf(&b, "\n## %s\n\n| Variable | Default | Meaning |\n|---|---|---|\n", title)
		for _, name := range slices.Sorted(maps.Keys(variables)) {
			if sectionOf(name) != title {
				continue
			}
			v := variables[name]
			value := ""
			if v.value != "" {
				value = "`" + v.value + "`"
			}
			if v.secret && v.value == "" {
				value = "(secret)"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, value, strings.ReplaceAll(v.help, "|", "\\|"))
		}
	}
	return b.String()
}

// titles lists the sections of the page, each once, in their order.
func titles() []string {
	var all []string
	for _, s := range sections {
		if !slices.Contains(all, s.title) {
			all = append(all, s.title)
		}
	}
	return all
}

// sectionOf returns the section of a setting: the one with the longest prefix of its name.
func sectionOf(name string) string {
	matching := slices.DeleteFunc(slices.Clone(sections), func(s struct{ title, prefix string }) bool { return !strings.HasPrefix(name, s.prefix) })
	return slices.MaxFunc(matching, func(a, b struct{ title, prefix string }) int { return cmp.Compare(len(a.prefix), len(b.prefix)) }).title
}

const settingsHead = `# Settings

<!-- Generated from internal/config/variables.go by go test ./internal/config -run SettingsPage -update. Do not edit. -->

Every process of berth reads its settings once, when it starts. ` + "`worker -h`" + ` prints the same list.

- The environment sets a value. An empty variable counts as not set.
- ` + "`BERTH_CONFIG`" + ` names a YAML file with the same settings. Its keys are the names of the variables in lower case without
  ` + "`BERTH_`" + `, for example ` + "`listen: 127.0.0.1:8778`" + `. The environment wins over the file.
- berth refuses to start with an unknown variable that begins with ` + "`BERTH_`" + `, or with an unknown key. The error names the nearest known one.
- A duration is a number with a unit, for example ` + "`10s`, `5m` or `720h`" + `.
- Temporal's own settings say how berth reaches Temporal: ` + "`TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`" + `, the TLS settings, and
  the profiles of the ` + "`temporal`" + ` command line.
`
