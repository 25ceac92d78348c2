package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// suite is a test suite. The printed table of results has a row for each suite.
type suite struct {
	name string // the prefix of the tests' names
	pkg  string // the Python package of the suite, or the package that the suite uses
}

var suites = []suite{
	{"tempest.api.network", "tempest"},
	{"neutron_tempest_plugin.api", "neutron-tempest-plugin"},
	{"blazar_tempest_plugin.tests.api", "blazar-tempest-plugin"},
	{"openstack.tests.functional.network", "openstacksdk"},
	{"openstack.tests.functional.cloud.test_network", "openstacksdk"},
	{"openstackclient.tests.functional.network", "python-openstackclient"},
	{"test_chi_lease", "python-chi"},
	{"test_nova_network", "nova"},
	{"neutron_agents_25", "neutron"},
	{"neutron_agents_26", "neutron"},
	{"neutron_agents_27", "neutron"},
	{"neutron_agents_28", "neutron"},
	{"neutron_agents_29", "neutron"},
}

// workspace is a folder from which tests run that need the same environment.
type workspace struct {
	name     string
	packages string // tools/PACKAGES.txt lists the Python packages
	// prefixes of the names of the tests; if prefixes of two workspaces match a test, the longer prefix
	// decides
	tests []string
	// the folder with the tests in the Python packages, or in the folder libraries; empty: Tempest finds the
	// tests
	folder      string
	concurrency string // the number of processes that run tests
	agents      bool   // the test is a Go test of berth that runs the agents of the packages
	env         func(c *cloud) []string
}

// workspaces are the workspaces of all suites. The tests of blazar-tempest-plugin run in one process, because
// the tests in a gabbi file depend on each other. These tests send their requests to port 80, so they also
// need an HTTP proxy, which sends the requests to berth instead. The tests of agents run in one process,
// because they change the same agents. The tests of agents in openstacksdk run as an administrator; by
// default, they would run as an ordinary user.
var workspaces = []workspace{
	{
		name:        "tempest",
		packages:    "suites",
		tests:       []string{"tempest.api.network.", "neutron_tempest_plugin.api."},
		concurrency: "2",
	},
	{
		name:        "blazar",
		packages:    "suites",
		tests:       []string{"blazar_tempest_plugin.tests.api."},
		concurrency: "1",
		env:         func(c *cloud) []string { return []string{"HTTP_PROXY=" + c.proxy} },
	},
	{
		name:        "sdk",
		packages:    "suites",
		tests:       []string{"openstack.tests.functional.network."},
		folder:      "openstack/tests/functional/network",
		concurrency: "2",
	},
	{
		name:        "sdk-cloud",
		packages:    "suites",
		tests:       []string{"openstack.tests.functional.cloud.test_network."},
		folder:      "openstack/tests/functional/cloud",
		concurrency: "2",
	},
	{
		name:        "sdk-agent",
		packages:    "suites",
		tests:       []string{"openstack.tests.functional.network.v2.test_agent"},
		folder:      "openstack/tests/functional/network",
		concurrency: "1",
		env:         func(*cloud) []string { return []string{"OPENSTACKSDK_DEMO_CLOUD=devstack-admin"} },
	},
	{
		name:        "client",
		packages:    "suites",
		tests:       []string{"openstackclient.tests.functional.network."},
		folder:      "openstackclient/tests/functional/network",
		concurrency: "2",
	},
	{
		name:     "client-agent",
		packages: "suites",
		tests: []string{"openstackclient.tests.functional.network.v2.test_network_agent.",
			"openstackclient.tests.functional.network.v2.test_network.NetworkTests.test_network_dhcp_agent"},
		folder:      "openstackclient/tests/functional/network",
		concurrency: "1",
	},
	{
		name:        "chi",
		packages:    "chi",
		tests:       []string{"test_chi_lease."},
		folder:      "libraries/chi",
		concurrency: "1",
		env:         (*cloud).userEnv,
	},
	{
		name:        "nova",
		packages:    "nova",
		tests:       []string{"test_nova_network."},
		folder:      "libraries/nova",
		concurrency: "1",
		env:         func(c *cloud) []string { return []string{"NOVA_CONF=" + filepath.Join(c.dir, "nova.conf")} },
	},
	{
		name:     "agents-25",
		packages: "neutron-25",
		tests:    []string{"neutron_agents_25."},
		agents:   true,
	},
	{
		name:     "agents-26",
		packages: "neutron-26",
		tests:    []string{"neutron_agents_26."},
		agents:   true,
	},
	{
		name:     "agents-27",
		packages: "neutron-27",
		tests:    []string{"neutron_agents_27."},
		agents:   true,
	},
	{
		name:     "agents-28",
		packages: "neutron-28",
		tests:    []string{"neutron_agents_28."},
		agents:   true,
	},
	{
		name:     "agents-29",
		packages: "neutron-29",
		tests:    []string{"neutron_agents_29."},
		agents:   true,
	},
}

// workspaceOf returns the name of the workspace that runs the test, or "" if the test belongs to no suite.
func workspaceOf(test string) string {
	name, longest := "", ""
	for _, w := range workspaces {
		for _, prefix := range w.tests {
			if strings.HasPrefix(test, prefix) && len(prefix) > len(longest) {
				name, longest = w.name, prefix
			}
		}
	}
	return name
}

// sortTests sorts tests by name, and removes duplicates.
func sortTests(tests []string) []string {
	slices.Sort(tests)
	return slices.Compact(tests)
}

// versions returns the version of the Python package of each suite.
func (c *cloud) versions() (map[string]string, error) {
	found := map[string]string{}
	for _, s := range suites {
		python := c.pythons[packagesOf(s)]
		const show = "import sys, importlib.metadata; print(importlib.metadata.version(sys.argv[1]))"
		out, err := output(c.ctx, exec.Command(string(python), "-c", show, s.pkg))
		if err != nil {
			return nil, err
		}
		found[s.name] = strings.TrimSpace(string(out))
	}
	return found, nil
}

func packagesOf(s suite) string {
	ofSuite := func(test string) bool { return strings.HasPrefix(test, s.name+".") }
	for _, w := range workspaces {
		if slices.ContainsFunc(w.tests, ofSuite) {
			return w.packages
		}
	}
	return ""
}

// dir returns the folder of the workspace.
func (w workspace) dir(c *cloud) string { return filepath.Join(c.dir, w.name) }
