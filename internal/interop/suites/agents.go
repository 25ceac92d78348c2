package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"berth/internal/devstack"
)

// agentTest is the Go test in internal/interop that runs the agents of a Neutron release with a berth of its
// own.
const agentTest = "TestNeutronAgents_BringPortsUp"

// runAgents runs agentTest with the agents of the workspace's packages and adds the result.
func (r testRun) runAgents(test string, found results) error {
	programs, err := filepath.Abs("bin")
	if err != nil {
		return err
	}
	progress("%s: run the agents", r.name)
	command := exec.Command("go", "test", "-count", "1", "-run", "^"+agentTest+"$", "./internal/interop")
	command.Env = append(
		os.Environ(),
		"BERTH_TEST_PROGRAMS="+programs,
		"BERTH_TEST_NEUTRON_RELEASE="+strings.TrimPrefix(r.packages, "neutron-"),
	)
	var printed bytes.Buffer
	command.Stdout, command.Stderr = &printed, &printed
	failed := devstack.Run(r.cloud.ctx, command)
	if err := context.Cause(r.cloud.ctx); err != nil {
		return err
	}
	found[test] = ""
	if failed != nil {
		found[test] = "The test of the agents fails: " + printed.String()
	}
	return nil
}
