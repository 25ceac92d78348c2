package neutron_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"berth/internal/api/neutron"
	"berth/internal/identity"
	"berth/internal/store/networkstore"
	"berth/internal/store/storetest"
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
		t.Errorf(
			"schedule the network to the same agent again: got %s, want 409 NetworkHostedByDHCPAgent",
			got,
		)
	}
	c.must(204, "DELETE", hosted+"/"+net, `{}`)
	why := c.must(200, "GET", "/v2.0/ports/"+p["id"].(string), "")["port"].(object)["berth:why"].(object)
	if n := len(why["waiting"].([]any)); n != 1 {
		t.Errorf(
			"berth:why of the port after the DHCP agent was unscheduled: got %v, want one entity for whose report the port waits",
			why,
		)
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

// The role of the server may not read the column configurations, so a request that succeeds has not read it.
func TestAgent_FieldsDecideWhetherConfigurationsAreRead(t *testing.T) {
	t.Parallel()
	server := storetest.URL(t)
	c := openOn(t, server, networkstore.Config{})
	net, _ := c.createNetwork("10.0.0.0/24")
	role := "reader_" + strings.ReplaceAll(net, "-", "")
	storetest.ExecScript(t, server, strings.ReplaceAll(`
		create role READER;
		grant all on all tables in schema public to READER;
		revoke select on agent from READER;
		grant select (id, agent_type, host, binary_name, topic, description, admin_up, availability_zone, created_at, started_at, heartbeat_at, versions)
			on agent to READER;`, "READER", role))
	limited, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	query := limited.Query()
	query.Set("role", role)
	limited.RawQuery = query.Encode()
	reader := storetest.Open(t, limited.String())
	c.url = serveAPI(t, neutron.New(reader.Network, identity.Noauth{})) + "/networking"
	for _, path := range []string{"/v2.0/agents", "/v2.0/networks/" + net + "/dhcp-agents"} {
		t.Run(path, func(t *testing.T) {
			c := c.in(t)
			list := c.must(200, "GET", path+"?fields=host&fields=berth:held", "")["agents"].([]any)
			if len(list) == 0 || list[0].(object)["host"] == nil ||
				list[0].(object)["configurations"] != nil {
				t.Errorf("agents with the fields host and berth:held: got %v", list)
			}
			c.must(500, "GET", path+"?fields=host&fields=configurations", "")
			c.must(500, "GET", path, "")
		})
	}
}
