package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// releaseVariable is an environment variable with the release of Neutron whose agents the tests run: N for the packages of
// tools/neutron-N.txt. Without the variable, the tests run Debian's agents.
const releaseVariable = "BERTH_TEST_NEUTRON_RELEASE"

// agentRelease is a release of Neutron. The zero value is the release of Debian's packages.
type agentRelease struct {
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
	return agentRelease{strings.TrimSpace(string(path))}
}

// consoleScript runs a program of a Python package. The program's own script cannot run, because tools/venv.sh has moved its folder.
const consoleScript = `#!%PYTHON%
import os
import sys
from importlib.metadata import entry_points
program, = entry_points(group="console_scripts", name=os.path.basename(sys.argv[0]))
sys.exit(program.load()())
`

// writePrograms writes the programs of the release into the folder `bin` of dir.
func (r agentRelease) writePrograms(t *testing.T, dir string) {
	t.Helper()
	if r.python == "" {
		return
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := strings.Replace(consoleScript, "%PYTHON%", r.python, 1)
	for _, program := range []string{dhcpAgent, ovsAgent, l3Agent, metadataAgent, "privsep-helper"} {
		if err := os.WriteFile(filepath.Join(dir, "bin", program), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
