package interop

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"berth/internal/journal"
	"berth/internal/server/servertest"
)

// openDaylightStory is berth with a real controller.
type openDaylightStory struct {
	*servertest.Deployment
	controller *openDaylight
	api        *servertest.Worker
}

func newOpenDaylightStory(t *testing.T) *openDaylightStory {
	t.Helper()
	return startOpenDaylightStory(t, "api,relay,temporal")
}

// startOpenDaylightStory starts a real controller and a worker with the given roles.
func startOpenDaylightStory(t *testing.T, roles string) *openDaylightStory {
	t.Helper()
	o := startOpenDaylight(t)
	d, _ := servertest.SharedDeployment(t)
	d.Settings = append(d.Settings, "BERTH_ODL_URL="+o.url)
	// The controller has the check network (canary) from the beginning. berth regularly looks for this
	// network; if it were missing, berth would start a full sync during the test.
	if status, answer := sendJSON(t, http.MethodPost, o.url+"/networks", `{"network":`+string(journal.Canary().Data)+`}`); status != http.StatusCreated {
		t.Fatalf("create the check network: got %d %s, want 201", status, answer)
	}
	s := &openDaylightStory{Deployment: d, controller: o, api: d.StartWorker(roles)}
	s.api.RegisterAgents()
	return s
}

// TestOpenDaylight_MirrorsNetworkStory creates, binds, changes and deletes the objects of a server's network,
// in a project whose ID is not a UUID. A real controller must accept every request, and an audit must find no
// difference after each step.
func TestOpenDaylight_MirrorsNetworkStory(t *testing.T) {
	t.Parallel()
	s := newOpenDaylightStory(t)

	network := s.create(
		"networks",
		"network",
		servertest.Object{"name": "blue", "provider:network_type": "vxlan", "provider:segmentation_id": 7},
	)
	subnet := s.create("subnets", "subnet", servertest.SubnetBody(network))
	group := s.create("security-groups", "security_group", servertest.Object{"name": "web"})
	rule := s.create("security-group-rules", "security_group_rule", servertest.Object{
		"security_group_id": group,
		"direction":         "ingress",
		"protocol":          "tcp",
		"port_range_min":    80,
		"port_range_max":    81,
	})
	s.create("security-group-rules", "security_group_rule", servertest.Object{
		"security_group_id": group,
		"direction":         "ingress",
		"protocol":          "sctp",
		"remote_group_id":   group,
	})
	child := s.create("ports", "port",
		servertest.Object{"network_id": network, "security_groups": []string{group}})
	port := s.create(
		"ports",
		"port",
		servertest.Object{"network_id": network, "security_groups": []string{group},
			"binding:profile": servertest.Object{
				"capabilities": []string{"switchdev"},
				"vf":           servertest.Object{"number": 1},
			}},
	)
	trunk := s.create("trunks", "trunk", servertest.Object{"port_id": port, "name": "t",
		"sub_ports": []servertest.Object{
			{"port_id": child, "segmentation_type": "vlan", "segmentation_id": 9},
		}})
	s.checkMirror("the objects are created")

	binding := servertest.PortBody(network)
	delete(binding, "network_id")
	s.api.RegisterAgents() // on a busy machine, the first heartbeats are too old by now
	s.change("ports/"+port, "port", binding)
	s.api.Must("POST", "/agent/v1/reports", servertest.ReportsBody(port))
	s.AwaitActive(s.api, []string{port})
	s.checkMirror("the port is bound and ACTIVE")

	s.change("networks/"+network, "network", servertest.Object{"name": "red"})
	s.change("subnets/"+subnet, "subnet",
		servertest.Object{"name": "green", "dns_nameservers": []string{"10.0.0.1"}})
	s.change("ports/"+child, "port", servertest.Object{"name": "child"})
	s.change("security-groups/"+group, "security_group",
		servertest.Object{"description": "of the web servers"})
	s.change("trunks/"+trunk, "trunk", servertest.Object{"name": "u"})
	s.checkMirror("the objects are changed")

	s.change("ports/"+port, "port",
		servertest.Object{"binding:host_id": "", "device_id": "", "device_owner": ""})
	for _, path := range []string{"trunks/" + trunk, "ports/" + port, "ports/" + child, "security-group-rules/" + rule, "security-groups/" + group,
		"subnets/" + subnet, "networks/" + network} {
		s.api.Must("DELETE", "/networking/v2.0/"+path, nil)
	}
	s.checkMirror("the objects are deleted")
}

// TestOpenDaylight_MirrorsRecordedTypes records journal entries for objects of all types that berth has no
// API for. A real controller must accept every request, and an audit must find no difference after the
// creates and after the updates.
func TestOpenDaylight_MirrorsRecordedTypes(t *testing.T) {
	t.Parallel()
	s := newOpenDaylightStory(t)
	record := func(operation string, body func(c collection) string) {
		s.api.Must("POST", "/journal/v1/entries",
			servertest.Object{"entries": recordedEntries(operation, body)})
		s.checkMirror("the " + operation + " of each recorded type")
	}
	record("create", func(c collection) string { return c.attributes })
	record("update", func(c collection) string { return c.changed })
}

// typeWithoutUpdate is the type whose objects the controller cannot update.
const typeWithoutUpdate = "l2gateway_connection"

// recordedEntries returns a journal entry for each type that berth has no API for.
func recordedEntries(operation string, body func(c collection) string) (entries []json.RawMessage) {
	for i, c := range append(slices.Clone(collections), members) {
		if journal.HasAPI(c.envelope) || operation == "update" && c.envelope == typeWithoutUpdate {
			continue
		}
		id := fmt.Sprintf("77777777-0000-4000-8000-%012d", i)
		if c.envelope == "pool" {
			id = memberPool
		}
		entries = append(entries, json.RawMessage(fmt.Sprintf(
			`{"operation":%q,"object_type":%q,"object_id":%q,"data":{"id":%q,"project_id":"demo",%s}}`,
			operation, c.envelope, id, id, body(c),
		)))
	}
	return entries
}

// memberPool is the ID of the pool of the recorded members.
const memberPool = "77777777-1111-4000-8000-000000000000"

// members is the collection of the members of the pool memberPool.
var members = collection{
	envelope: "member",
	attributes: `"pool_id":"` + memberPool + `","address":"10.0.0.50","protocol_port":8080,"weight":2,` +
		`"admin_state_up":true,"subnet_id":"` + sharedID(5) + `"`,
	changed: `"pool_id":"` + memberPool + `","address":"10.0.0.50","protocol_port":8080,"weight":3,` +
		`"admin_state_up":false,"subnet_id":"` + sharedID(5) + `"`,
}

func (s *openDaylightStory) create(path, typ string, o servertest.Object) string {
	s.Helper()
	return s.api.Must("POST", "/networking/v2.0/"+path, servertest.Object{typ: o})[typ].(servertest.Object)["id"].(string)
}

func (s *openDaylightStory) change(path, typ string, o servertest.Object) {
	s.Helper()
	s.api.Must("PUT", "/networking/v2.0/"+path, servertest.Object{typ: o})
}

// checkMirror waits until the journal is empty. It checks that the controller refused no request, and that an
// audit finds no difference.
func (s *openDaylightStory) checkMirror(after string) {
	s.Helper()
	s.AwaitNone("all journal entries are completed after "+after, servertest.UnfinishedEntries)
	for _, e := range s.controller.failures() {
		s.Errorf("after %s: the controller refused a request:\n%s", after, e)
	}
	s.CheckAudit(s.api, after)
}
