package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// releaseVariable is an environment variable with the release of Neutron whose agents the tests run: N for
// the packages of tools/neutron-N.txt. Without the variable, the tests run Debian's agents.
const releaseVariable = "BERTH_TEST_NEUTRON_RELEASE"

// agentRelease is a release of Neutron. The zero value is the release of Debian's packages.
type agentRelease struct {
	name   string // the first number of the version; "" for Debian's release
	python string // the Python interpreter that has the packages of the release
}

// testedRelease returns the release whose agents the tests run, and installs it if it is not installed.
func testedRelease(t *testing.T) agentRelease {
	t.Helper()
	name := os.Getenv(releaseVariable)
	if name == "" {
		return agentRelease{}
	}
	find := exec.CommandContext(t.Context(), "../../tools/venv.sh", "neutron-"+name)
	find.Stderr = os.Stderr
	path, err := find.Output()
	if err != nil {
		t.Fatalf("install the packages of tools/neutron-%s.txt: %v", name, err)
	}
	return agentRelease{name, strings.TrimSpace(string(path))}
}

// consoleScript runs a program of a Python package. The program's own script cannot run if tools/venv.sh has
// moved its folder. The SR-IOV agent gets a stand-in for its network card.
const consoleScript = `#!%PYTHON%
import os
import sys
from importlib.metadata import entry_points
name = os.path.basename(sys.argv[0])
main = next(p for p in entry_points(group="console_scripts") if p.name == name).load()
if name == "neutron-sriov-nic-agent":
    import network_card
sys.exit(main())
`

// writePrograms writes the programs of the release into the folder `bin` of dir. Debian's own programs run
// unchanged, except the SR-IOV agent, which needs the stand-in for a network card.
func (r agentRelease) writePrograms(t *testing.T, dir string) {
	t.Helper()
	python, programs := r.python, []string{
		dhcpAgent,
		ovsAgent,
		l3Agent,
		metadataAgent,
		sriovAgent,
		macvtapAgent,
		"privsep-helper",
	}
	if python == "" {
		python, programs = "/usr/bin/python3", []string{sriovAgent}
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := strings.Replace(consoleScript, "%PYTHON%", python, 1)
	for _, program := range programs {
		if err := os.WriteFile(filepath.Join(dir, "bin", program), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
