package server_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth/internal/config"
	"berth/internal/server"
)

// policySettings maps the setting of each policy file to the name of a rule of the API.
var policySettings = map[string]string{
	"BERTH_POLICY_FILE":             "placement:usages",
	"BERTH_NETWORKING_POLICY_FILE":  "get_port",
	"BERTH_RESERVATION_POLICY_FILE": "blazar:leases:get",
}

func TestOpenPolicies_InvalidFileIsRefusedWithSettingAndLine(t *testing.T) {
	t.Parallel()
	for setting, rule := range policySettings {
		t.Run(setting, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "policy.yaml")
			if err := os.WriteFile(path, []byte("\n"+`"`+rule+`": "nonsense"`), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Load([]string{setting + "=" + path})
			if err != nil {
				t.Fatal(err)
			}
			_, err = server.OpenPolicies(cfg)
			if want := setting + ": " + path + ": line 2: " + rule; err == nil ||
				!strings.HasPrefix(err.Error(), want) {
				t.Errorf("open an invalid policy file: got error %v, want one that begins with %q", err, want)
			}
		})
	}
}

func TestPolicySettings_EachFileIsTested(t *testing.T) {
	t.Parallel()
	for _, name := range config.Variables() {
		if strings.HasSuffix(name, "POLICY_FILE") && policySettings[name] == "" {
			t.Errorf(
				"the setting %s is not in the table policySettings, want each setting of a policy file",
				name,
			)
		}
	}
	for name := range policySettings {
		if !slices.Contains(config.Variables(), name) {
			t.Errorf("the table policySettings has %s, which is no setting", name)
		}
	}
}
