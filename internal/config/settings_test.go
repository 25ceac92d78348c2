package config_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"berth/internal/config"
)

func TestUsage_ListsSettingsWithDefaults(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	config.Usage(&b)
	for _, want := range []string{"BERTH_LISTEN", "127.0.0.1:8778", "BERTH_DEV_TEMPORAL_PORT", "7233", "BERTH_CONFIG"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("printed usage: want it to contain the setting %s, got:\n%s", want, b.String())
		}
	}
}

func TestSections_EverySettingHasUnitAndDescription(t *testing.T) {
	t.Parallel()
	var names []string
	for _, section := range config.Sections() {
		for _, s := range section.Settings {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				if s.Unit == "" {
					t.Error("setting without a unit; want every setting to have a unit")
				}
				sentence := regexp.MustCompile(`^(on: |off: |[A-Z]|berth |noauth |breadth-first |The ).*\.$`)
				if !sentence.MatchString(s.Description) {
					t.Errorf("description of the setting: got %q, want a sentence", s.Description)
				}
			})
			if slices.Contains(names, s.Name) {
				t.Errorf("the table of settings contains %s twice, want once", s.Name)
			}
			names = append(names, s.Name)
		}
	}
}
