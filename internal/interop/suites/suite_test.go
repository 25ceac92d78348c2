package main

import "testing"

func TestWorkspace_LongestPrefixOfTheTestDecides(t *testing.T) {
	t.Parallel()
	for test, want := range map[string]string{
		"tempest.api.network.test_ports.PortsTestJSON.test_list_ports[id-1]":                                        "tempest",
		"openstack.tests.functional.network.v2.test_port.TestPort.test_find":                                        "sdk",
		"openstack.tests.functional.network.v2.test_agent.TestAgent.test_list":                                      "sdk-agent",
		"openstackclient.tests.functional.network.v2.test_network.NetworkTests.test_network_list":                   "client",
		"openstackclient.tests.functional.network.v2.test_network.NetworkTests.test_network_dhcp_agent":             "client-agent",
		"openstackclient.tests.functional.network.v2.test_network_agent.TestAgent.test_network_agent_list_show_set": "client-agent",
		"openstack.tests.functional.cloud.test_compute.TestCompute.test_create_server":                              "",
	} {
		if got := workspaceOf(test); got != want {
			t.Errorf("workspace of the test %s: got %q, want %q", test, got, want)
		}
	}
}

func TestSuites_EveryOneHasAWorkspace(t *testing.T) {
	t.Parallel()
	for _, s := range suites {
		if packagesOf(s) == "" {
			t.Errorf("suite %s: no workspace runs its tests, want one", s.name)
		}
	}
}
