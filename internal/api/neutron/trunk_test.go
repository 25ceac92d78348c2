package neutron_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTrunkCarriesItsSubports(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.ground("10.0.0.0/24")
	port := func(more string) string { return c.port(net, more)["id"].(string) }
	parent, one, two := port(`,"name":"parent"`), port(""), port("")
	on := func(id string, segment int) object {
		return object{"port_id": id, "segmentation_type": "vlan", "segmentation_id": float64(segment)}
	}

	made := c.must(201, "POST", "/v2.0/trunks", fmt.Sprintf(`{"trunk":{"port_id":%q,"name":"t","sub_ports":[{"port_id":%q,"segmentation_type":"vlan","segmentation_id":7}]}}`, parent, one))["trunk"].(object)
	path := "/v2.0/trunks/" + made["id"].(string)
	grown := c.must(200, "PUT", path+"/add_subports", fmt.Sprintf(`{"sub_ports":[{"port_id":%q,"segmentation_id":"8"}]}`, two))
	listed := c.must(200, "GET", path+"/get_subports", "")
	shown := c.must(200, "GET", path, "")["trunk"].(object)

	if d := cmp.Diff(shown, grown); d != "" {
		t.Errorf("shown is not what was answered: %s", d)
	}
	if d := cmp.Diff(object{"sub_ports": []any{on(one, 7), on(two, 8)}}, listed); d != "" {
		t.Error(d)
	}
	for _, moving := range []string{"created_at", "updated_at"} {
		delete(shown, moving)
	}
	want := object{"id": made["id"], "name": "t", "description": "", "project_id": "admin", "tenant_id": "admin", "admin_state_up": true,
		"port_id": parent, "status": "DOWN", "sub_ports": []any{on(one, 7), on(two, 8)}, "tags": []any{}, "revision_number": 2.0}
	if d := cmp.Diff(want, shown); d != "" {
		t.Error(d)
	}
	if got := ids(c.must(200, "GET", "/v2.0/trunks?port_id="+parent, ""), "trunks"); len(got) != 1 {
		t.Errorf("trunks of the port: %v", got)
	}
	less := c.must(200, "PUT", path+"/remove_subports", fmt.Sprintf(`{"sub_ports":[{"port_id":%q}]}`, one))
	if d := cmp.Diff([]any{on(two, 8)}, less["sub_ports"]); d != "" {
		t.Error(d)
	}
	c.must(200, "PUT", path, `{"trunk":{"admin_state_up":false}}`)
	if got := c.fault("DELETE", path, "", "If-Match", "revision_number=1"); got != "412 RevisionNumberConstraintFailed" {
		t.Error(got)
	}
	c.must(204, "DELETE", path, "")
	c.must(204, "DELETE", "/v2.0/ports/"+parent, "")
}

func TestRefusedTrunksAreNamedAsClientsKnowThem(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.ground("10.0.0.0/24")
	port := func(more string) string { return c.port(net, more)["id"].(string) }
	parent, sub, free, used, bound := port(""), port(""), port(""), port(`,"device_id":"x"`), port(`,"binding:host_id":"cmp-1"`)
	other := c.as("ann:other")
	trunk := func(c cloud, parent, sub string) string {
		t.Helper()
		return c.fault("POST", "/v2.0/trunks", fmt.Sprintf(`{"trunk":{"port_id":%q,"sub_ports":[{"port_id":%q,"segmentation_id":7}]}}`, parent, sub))
	}
	path := "/v2.0/trunks/" + c.must(201, "POST", "/v2.0/trunks", fmt.Sprintf(`{"trunk":{"port_id":%q,"sub_ports":[{"port_id":%q,"segmentation_id":7}]}}`, parent, sub))["trunk"].(object)["id"].(string)
	add := func(body string, ports ...any) string {
		t.Helper()
		return c.fault("PUT", path+"/add_subports", `{"sub_ports":[`+fmt.Sprintf(body, ports...)+`]}`)
	}
	nobody := "6c2a1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b11"

	for got, want := range map[string]string{
		"parent twice: " + trunk(c, parent, free):                                                         "409 PortInUseAsTrunkParent",
		"parent is a subport: " + trunk(c, sub, free):                                                     "409 PortInUseAsSubPort",
		"subport twice: " + trunk(c, free, sub):                                                           "409 PortInUseAsSubPort",
		"subport is a parent: " + trunk(c, free, parent):                                                  "409 PortInUseAsTrunkParent",
		"subport is its parent: " + trunk(c, free, free):                                                  "409 PortInUseAsTrunkParent",
		"parent bound: " + trunk(c, bound, free):                                                          "409 ParentPortInUse",
		"no parent: " + trunk(c, nobody, free):                                                            "404 PortNotFound",
		"no subport: " + trunk(c, free, nobody):                                                           "404 PortNotFound",
		"of another: " + trunk(other, free, free):                                                         "404 PortNotFound",
		"added in use: " + add(`{"port_id":%q,"segmentation_id":8}`, used):                                "409 PortInUse",
		"added bound: " + add(`{"port_id":%q,"segmentation_id":8}`, bound):                                "409 PortInUse",
		"segment taken: " + add(`{"port_id":%q,"segmentation_id":7}`, free):                               "409 DuplicateSubPort",
		"no segment: " + add(`{"port_id":%q}`, free):                                                      "400 HTTPBadRequest",
		"segment: " + add(`{"port_id":%q,"segmentation_id":4095}`, free):                                  "400 HTTPBadRequest",
		"type: " + add(`{"port_id":%q,"segmentation_id":8,"segmentation_type":"x"}`, free):                "400 HTTPBadRequest",
		"no list: " + c.fault("PUT", path+"/add_subports", `{"sub_ports":null}`):                          "400 HTTPBadRequest",
		"not there: " + c.fault("PUT", path+"/remove_subports", `{"sub_ports":[{"port_id":"`+free+`"}]}`): "404 SubPortNotFound",
		"port of a trunk: " + c.fault("DELETE", "/v2.0/ports/"+parent, ""):                                "409 PortInUseAsTrunkParent",
		"port on a trunk: " + c.fault("DELETE", "/v2.0/ports/"+sub, ""):                                   "409 PortInUseAsSubPort",
		"unseen: " + other.fault("GET", path, ""):                                                         "404 TrunkNotFound",
		"parent changed: " + c.fault("PUT", path, `{"trunk":{"port_id":"`+free+`"}}`):                     "400 HTTPBadRequest",
	} {
		if what, got, _ := strings.Cut(got, ": "); got != want {
			t.Errorf("%s: want %s, got %s", what, want, got)
		}
	}
	c.must(200, "PUT", path, `{"trunk":{"admin_state_up":false}}`)
	if got := add(`{"port_id":%q,"segmentation_id":8}`, free); got != "409 TrunkDisabled" {
		t.Errorf("a disabled trunk: %s", got)
	}
	c.must(200, "PUT", path, `{"trunk":{"admin_state_up":true}}`)
	c.must(200, "PUT", "/v2.0/ports/"+parent, `{"port":{"binding:host_id":"cmp-1"}}`)
	if got := c.fault("DELETE", path, ""); got != "409 TrunkInUse" {
		t.Errorf("a trunk in use: %s", got)
	}
}
