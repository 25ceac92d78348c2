package neutron_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
	"berth/internal/store/networkstore"
)

// zoned reports the heartbeat of an agent in an availability zone, and returns the ID of the agent.
func (c cloud) zoned(kind, host, zone string) string {
	c.t.Helper()
	if _, err := c.store.Network.ReportState(c.t.Context(), network.AgentState{
		Type:           kind,
		Host:           host,
		Zone:           zone,
		Configurations: json.RawMessage(`{}`),
	}); err != nil {
		c.t.Fatal(err)
	}
	return ids(c.must(200, "GET", "/v2.0/agents?host="+host, ""), "agents")[0]
}

func TestAvailabilityZone_ListedFromTheAgents(t *testing.T) {
	t.Parallel()
	c := open(t) // has a DHCP agent and an L2 agent without a zone
	east := c.zoned(network.DHCPAgent, "net-2", "east")
	c.zoned(network.DHCPAgent, "net-3", "nova")
	c.zoned(network.L3Agent, "net-4", "nova")
	c.zoned(network.OVSAgent, "cmp-2", "west")
	c.must(200, "PUT", "/v2.0/agents/"+east, `{"agent":{"admin_state_up":false}}`)
	c.zoned(network.DHCPAgent, "net-3", "") // a report without the zone keeps the zone

	zone := func(name, resource, state string) object {
		return object{"name": name, "resource": resource, "state": state}
	}
	all := []any{
		zone("east", "network", "unavailable"),
		zone("nova", "network", "available"),
		zone("nova", "router", "available"),
	}
	for query, want := range map[string][]any{
		"":                                  all,
		"?name=east":                        all[:1],
		"?resource=router":                  all[2:],
		"?state=available":                  all[1:],
		"?state=available&resource=network": all[1:2],
		"?name=west":                        {},
		"?fields=name&name=east":            {object{"name": "east"}},
	} {
		t.Run(query, func(t *testing.T) {
			if d := cmp.Diff(want, c.in(t).as("ann:demo").must(200, "GET", "/v2.0/availability_zones"+query, "")["availability_zones"]); d != "" {
				t.Errorf("list availability zones with the query %s (-want +got):\n%s", query, d)
			}
		})
	}
	if got := c.fault("GET", "/v2.0/availability_zones?moon=1", ""); got != "400 HTTPBadRequest" {
		t.Errorf("list availability zones with an unknown filter: got %s, want 400 HTTPBadRequest", got)
	}
	if got := c.must(200, "GET", "/v2.0/agents/"+east, "")["agent"].(object)["availability_zone"]; got != "east" {
		t.Errorf("availability zone of the agent: got %v, want east", got)
	}
	if got := ids(c.must(200, "GET", "/v2.0/agents?availability_zone=east", ""), "agents"); len(got) != 1 ||
		got[0] != east {
		t.Errorf("agents in the zone east: got %v, want %s", got, east)
	}
}

// A network that requests availability zones is served only by DHCP agents in these zones.
func TestAvailabilityZone_HintsChooseTheDHCPAgent(t *testing.T) {
	t.Parallel()
	c := open(t)
	east := c.zoned(network.DHCPAgent, "net-2", "east")
	west := c.zoned(network.DHCPAgent, "net-3", "west")
	networkIn := func(hints string) (id string) {
		t.Helper()
		id = c.must(201, "POST", "/v2.0/networks", `{"network":{"availability_zone_hints":`+hints+`}}`)["network"].(object)["id"].(string)
		c.must(201, "POST", "/v2.0/subnets",
			`{"subnet":{"network_id":"`+id+`","ip_version":4,"cidr":"10.0.0.0/24"}}`)
		return id
	}
	hosts := func(net string) []string {
		return ids(c.must(200, "GET", "/v2.0/networks/"+net+"/dhcp-agents", ""), "agents")
	}
	expect := func(when, net string, want ...string) {
		t.Helper()
		if d := cmp.Diff(want, hosts(net)); d != "" {
			t.Errorf("DHCP agents of the network %s (-want +got):\n%s", when, d)
		}
	}

	var inEast string
	for range 3 { // also when the agent in the zone has more networks than the others
		inEast = networkIn(`["east"]`)
		expect("that requests the zone east", inEast, east)
	}
	shown := c.must(200, "GET", "/v2.0/networks/"+inEast, "")["network"].(object)
	if d := cmp.Diff([]any{[]any{"east"}, []any{"east"}}, []any{shown["availability_zone_hints"], shown["availability_zones"]}); d != "" {
		t.Errorf("hints and zones of the network (-want +got):\n%s", d)
	}
	if got := hosts(networkIn(`["east","west"]`)); len(got) != 1 || got[0] != west {
		t.Errorf(
			"DHCP agents of a network that requests both zones: got %v, want the one with fewer networks",
			got,
		)
	}

	c.must(204, "DELETE", "/v2.0/agents/"+east, "")
	expect("after the only agent in its zone was deleted", inEast, []string{}...)
	again := c.zoned(network.DHCPAgent, "net-4", "east")
	expect("after a new agent in its zone reported", inEast, again)
}

// A network that requests no availability zone is served only by DHCP agents in the default zones.
func TestAvailabilityZone_DefaultZonesChooseTheDHCPAgent(t *testing.T) {
	t.Parallel()
	// has a DHCP agent without a zone
	c := openWith(t, networkstore.Config{DefaultZones: []string{"west", "moon"}})
	east := c.zoned(network.DHCPAgent, "net-2", "east")
	expect := func(when, net string, want ...string) {
		t.Helper()
		if d := cmp.Diff(want, ids(c.must(200, "GET", "/v2.0/networks/"+net+"/dhcp-agents", ""), "agents")); d != "" {
			t.Errorf("DHCP agents of the network %s (-want +got):\n%s", when, d)
		}
	}
	create := func(body string) string {
		t.Helper()
		shown := c.must(201, "POST", "/v2.0/networks", `{"network":`+body+`}`)["network"].(object)
		c.must(201, "POST", "/v2.0/subnets",
			`{"subnet":{"network_id":"`+shown["id"].(string)+`","ip_version":4,"cidr":"10.0.0.0/24"}}`)
		return shown["id"].(string)
	}
	plain := create(`{}`)
	expect("without hints while no agent is in the default zones", plain, []string{}...)
	expect("that requests the zone east", create(`{"availability_zone_hints":["east"]}`), east)
	west := c.zoned(network.DHCPAgent, "net-3", "west")
	expect("without hints after an agent in a default zone reported", plain, west)
	hints := c.must(200, "GET", "/v2.0/networks/"+plain, "")["network"].(object)["availability_zone_hints"]
	if len(hints.([]any)) != 0 {
		t.Errorf("hints of the network that requests no zone: got %v, want none", hints)
	}
}

func TestAvailabilityZone_InvalidHints(t *testing.T) {
	t.Parallel()
	c := openWith(t, networkstore.Config{})
	c.zoned(network.DHCPAgent, "net-2", "east")
	c.zoned(network.OVSAgent, "cmp-2", "west")
	for hints, want := range map[string]string{
		`["moon"]`:        "404 AvailabilityZoneNotFound: AvailabilityZone moon could not be found.",
		`["east","west"]`: "404 AvailabilityZoneNotFound: AvailabilityZone west could not be found.",
		`["east","east"]`: "400 HTTPBadRequest: Invalid input for availability_zone_hints. Reason: Duplicate items in the list: 'east'.",
		`"east"`:          "400 HTTPBadRequest: Invalid input for availability_zone_hints. Reason: 'east' is not a list.",
	} {
		t.Run(hints, func(t *testing.T) {
			if got := c.in(t).faultMessage("POST", "/v2.0/networks", `{"network":{"availability_zone_hints":`+hints+`}}`); got != want {
				t.Errorf("create a network with the hints %s: want %s, got %s", hints, want, got)
			}
		})
	}
	if got := c.fault("POST", "/v2.0/networks", `{"network":{"availability_zone_hints":[""]}}`); got != "400 HTTPBadRequest" {
		t.Errorf("create a network with an empty hint: got %s, want 400 HTTPBadRequest", got)
	}
	net := c.must(201, "POST", "/v2.0/networks", `{"network":{}}`)["network"].(object)
	if got := c.fault("PUT", "/v2.0/networks/"+net["id"].(string), `{"network":{"availability_zone_hints":["east"]}}`); got != "400 HTTPBadRequest" {
		t.Errorf("update the hints of a network: got %s, want 400 HTTPBadRequest", got)
	}
	if d := cmp.Diff([]any{[]any{}, []any{}}, []any{net["availability_zone_hints"], net["availability_zones"]}); d != "" {
		t.Errorf("hints and zones of a network without hints (-want +got):\n%s", d)
	}
}
