package neutron_test

import (
	"slices"
	"testing"
)

func TestAgent_NetworkCanMoveToAnotherDHCPAgent(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	p := c.port(net, `,"binding:host_id":"cmp-1","device_owner":"compute:x"`)
	agents := c.must(200, "GET", "/v2.0/networks/"+net+"/dhcp-agents", "")
	if len(ids(agents, "agents")) != 1 {
		t.Fatalf("DHCP agents to which the new network was scheduled: got %v, want one agent", agents)
	}
	agent := "/v2.0/agents/" + ids(agents, "agents")[0]
	hosted := agent + "/dhcp-networks"

	if got := c.fault("POST", hosted, `{"network_id":"`+net+`"}`); got != "409 NetworkHostedByDHCPAgent" {
		t.Errorf("schedule the network to the same agent again: got %s, want 409 NetworkHostedByDHCPAgent", got)
	}
	c.must(204, "DELETE", hosted+"/"+net, `{}`)
	why := c.must(200, "GET", "/v2.0/ports/"+p["id"].(string), "")["port"].(object)["berth:why"].(object)
	if n := len(why["waiting"].([]any)); n != 1 {
		t.Errorf("berth:why of the port after the DHCP agent was unscheduled: got %v, want one entity for whose report the port waits", why)
	}
	if got := c.fault("DELETE", hosted+"/"+net, ""); got != "409 NetworkNotHostedByDhcpAgent" {
		t.Errorf("unschedule the network a second time: got %s, want 409 NetworkNotHostedByDhcpAgent", got)
	}
	if status, body, _ := c.raw("POST", hosted, `{"network_id":"`+net+`"}`); status != 201 || body != nil {
		t.Errorf("schedule the network: got %d %v, want 201 without a body", status, body)
	}
	if got := ids(c.must(200, "GET", hosted, ""), "networks"); !slices.Equal(got, []string{net}) {
		t.Errorf("networks on the DHCP agent: got %v, want only the scheduled network", got)
	}
	down := c.must(200, "PUT", agent, `{"agent":{"admin_state_up":false}}`)["agent"].(object)
	if down["admin_state_up"] != false || down["alive"] != true {
		t.Errorf("the disabled agent: got %v, want admin_state_up false and alive true", down)
	}
	for filter, want := range map[string]int{"DHCP+agent": 1, "dhcp+AGENT": 1, "DHCP": 0} {
		if n := len(ids(c.must(200, "GET", "/v2.0/agents?alive=True&sort_key=agent_type&sort_dir=asc&agent_type="+filter, ""), "agents")); n != want {
			t.Errorf("agents that are alive and have the type %s: got %d, want %d", filter, n, want)
		}
	}
	c.must(204, "DELETE", agent, "")
	if got := c.fault("GET", agent, ""); got != "404 AgentNotFound" {
		t.Error(got)
	}
}
