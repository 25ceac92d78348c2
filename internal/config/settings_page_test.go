package config_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/config"
)

var update = flag.Bool("update", false, "write docs/settings.md from the table of settings")

const settingsPage = "../../docs/settings.md"

// TestSettingsPage_EqualsTable fails when docs/settings.md differs from the table of settings. To update
// docs/settings.md, run `go test ./internal/config -run SettingsPage -update`.
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
	if d := cmp.Diff(string(got), want); d != "" {
		t.Errorf(
			"docs/settings.md: got other settings than the table has; to update the page, run go test ./internal/config -run SettingsPage -update (-page +table):\n%s",
			d,
		)
	}
}

// page renders docs/settings.md.
func page() string {
	var b strings.Builder
	b.WriteString(settingsHead)
	for _, section := range config.Sections() {
		fmt.Fprintf(&b,
			"\n## %s\n\n| Variable | Default | Unit or form | Description |\n|---|---|---|---|\n",
			section.Title)
		for _, s := range section.Settings {
			value := ""
			if s.Default != "" {
				value = "`" + s.Default + "`"
			}
			if s.Secret && s.Default == "" {
				value = "(secret)"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n",
				s.Name, value, s.Unit, strings.ReplaceAll(s.Description, "|", "\\|"))
		}
	}
	return b.String()
}

const settingsHead = `# Settings

<!-- Generated from internal/config/settings_*.go by go test ./internal/config -run SettingsPage -update. Do not edit. -->

Every process of berth reads its settings once, when it starts. ` + "`worker -h`" + ` prints the same list.

- The environment sets a value. An empty variable counts as not set.
- ` + "`BERTH_CONFIG`" + ` names a YAML file with the same settings. Its keys are the names of the variables in lower case without
  ` + "`BERTH_`" + `, for example ` + "`listen: 127.0.0.1:8778`" + `. A value in the environment overrides the value in the file.
- A secret can be in a file instead of the environment: the variable with the suffix ` + "`_FILE`" + ` names the file, for example
  ` + "`BERTH_DATABASE_URL_FILE=/run/secrets/database`" + `. This holds for every setting whose value is secret.
- berth refuses to start with an unknown variable that begins with ` + "`BERTH_`" + `, or with an unknown key. The error names the most similar known name.
- A duration is a number with a unit, for example ` + "`10s`, `5m` or `720h`" + `.
- The URL of a service with HTTP must not contain a user and a password; settings of their own contain the credentials.
- Temporal's own settings define the connection to Temporal: ` + "`TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`" + `, the TLS settings, and
  the profiles of the ` + "`temporal`" + ` command line.
`
