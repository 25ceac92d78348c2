package neutron_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/portstore"
)

func TestTrunk_SubportsFollowParent(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	port := func(more string) string { return c.port(net, more)["id"].(string) }
	parent, one, two := port(`,"name":"parent"`), port(""), port("")
	on := func(id string, segment int) object {
		return object{"port_id": id, "segmentation_type": "vlan", "segmentation_id": float64(segment)}
	}

	created := c.must(201, "POST", "/v2.0/trunks", fmt.Sprintf(`{"trunk":{"port_id":%q,"name":"t","sub_ports":[{"port_id":%q,"segmentation_type":"vlan","segmentation_id":7}]}}`, parent, one))["trunk"].(object)
	path := "/v2.0/trunks/" + created["id"].(string)
	grown := c.must(
		200, "PUT", path+"/add_subports",
		fmt.Sprintf(`{"sub_ports":[{"port_id":%q,"segmentation_type":"vlan","segmentation_id":"8"}]}`, two),
	)
	listed := c.must(200, "GET", path+"/get_subports", "")
	shown := c.must(200, "GET", path, "")["trunk"].(object)

	why, _ := shown["berth:why"].(object)
	delete(shown, "berth:why")
	if want := "DOWN: its parent port " + parent + " is not bound to a host"; why["sentence"] != want {
		t.Errorf("explanation of a trunk without a host: got %v, want the sentence %q", why, want)
	}
	if d := cmp.Diff(shown, grown); d != "" {
		t.Errorf(
			"GET of a new trunk: want the same trunk as in the response to the POST that created it (-POST +GET):\n%s",
			d,
		)
	}
	if d := cmp.Diff(object{"sub_ports": []any{on(one, 7), on(two, 8)}}, listed); d != "" {
		t.Error(d)
	}
	for _, moving := range []string{"created_at", "updated_at"} {
		t.Run(moving, func(t *testing.T) {
			delete(shown, moving)
		})
	}
	want := object{
		"id":              created["id"],
		"name":            "t",
		"description":     "",
		"project_id":      "admin",
		"tenant_id":       "admin",
		"admin_state_up":  true,
		"port_id":         parent,
		"status":          "DOWN",
		"sub_ports":       []any{on(one, 7), on(two, 8)},
		"tags":            []any{},
		"revision_number": 2.0,
	}
	if d := cmp.Diff(want, shown); d != "" {
		t.Error(d)
	}
	if got := ids(c.must(200, "GET", "/v2.0/trunks?port_id="+parent, ""), "trunks"); len(got) != 1 {
		t.Errorf("trunks of the parent port: got %v, want one", got)
	}
	less := c.must(200, "PUT", path+"/remove_subports", fmt.Sprintf(`{"sub_ports":[{"port_id":%q}]}`, one))
	if d := cmp.Diff([]any{on(two, 8)}, less["sub_ports"]); d != "" {
		t.Error(d)
	}
	c.must(200, "PUT", path, `{"trunk":{"admin_state_up":false}}`)
	if got := c.fault("DELETE", path, "", "If-Match", "revision_number=1"); got != "412 RevisionNumberConstraintFailed" {
		t.Error(got)
	}
	if got, want := c.faultMessage("DELETE", path, ""), "409 TrunkDisabled: Trunk "+created["id"].(string)+" is currently disabled."; got != want {
		t.Errorf("delete a disabled trunk: got %s, want %s", got, want)
	}
	c.must(200, "PUT", path, `{"trunk":{"admin_state_up":true}}`)
	c.must(204, "DELETE", path, "")
	c.must(204, "DELETE", "/v2.0/ports/"+parent, "")
}

// A trunk says what blocks it; a member does not see the host of the block.
func TestTrunk_WhyNamesItsBlocks(t *testing.T) {
	t.Parallel()
	admin := open(t)
	member := admin
	member = member.as("user:p")
	net, _ := member.createNetwork("10.0.0.0/24")
	parent := member.port(net, "")["id"].(string)
	id := member.must(201, "POST", "/v2.0/trunks", fmt.Sprintf(`{"trunk":{"port_id":%q}}`, parent))["trunk"].(object)["id"].(string)
	o := portstore.Object{Type: "trunk", ID: uuid.MustParse(id)}
	if _, err := admin.store.Network.AddBlock(t.Context(), o, network.Report{Entity: "QOS", Host: "cmp-7", Event: network.ReportBlock}); err != nil {
		t.Fatal(err)
	}
	for host, c := range map[string]cloud{"cmp-7": admin, "its host": member} {
		why, _ := c.must(200, "GET", "/v2.0/trunks/"+id, "")["trunk"].(object)["berth:why"].(object)
		waiting, _ := why["waiting"].([]any)
		if len(waiting) != 1 || waiting[0].(object)["for"] != "QOS" ||
			!strings.Contains(waiting[0].(object)["sentence"].(string), "it waits for QOS on "+host+" since") {
			t.Errorf("explanation of a trunk for %s: got %v, want the block QOS on %s", c.token, why, host)
		}
		if list := c.must(200, "GET", "/v2.0/trunks", "")["trunks"].([]any); list[0].(object)["berth:why"] != nil {
			t.Errorf("list of trunks: got %v, want no explanation", list)
		}
	}
}

// The parent port shows the trunk's subports. The VIF details of a trunk's parent port contain the name of
// the trunk's bridge.
func TestTrunk_ParentPortShowsTrunkDetails(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	parent, sub := c.port(net, "")["id"].(string), c.port(net, `,"mac_address":"fa:16:3e:00:00:07"`)["id"].(string)
	c.port(net, "")
	if alone := c.must(200, "GET", "/v2.0/ports/"+parent, "")["port"].(object); alone["trunk_details"] != nil {
		t.Errorf("trunk_details of a port without a trunk: got %v, want null", alone["trunk_details"])
	}
	trunk := c.must(201, "POST", "/v2.0/trunks", fmt.Sprintf(`{"trunk":{"port_id":%q,"sub_ports":[{"port_id":%q,"segmentation_type":"vlan","segmentation_id":7}]}}`, parent, sub))["trunk"].(object)["id"].(string)

	bound := c.must(200, "PUT", "/v2.0/ports/"+parent, `{"port":{"binding:host_id":"cmp-1","device_owner":"compute:nova"}}`)["port"].(object)

	want := object{
		"trunk_id": trunk,
		"sub_ports": []any{
			object{
				"port_id":           sub,
				"segmentation_type": "vlan",
				"segmentation_id":   7.0,
				"mac_address":       "fa:16:3e:00:00:07",
			},
		},
	}
	shown := c.must(200, "GET", "/v2.0/ports/"+parent, "")["port"].(object)
	for how, p := range map[string]object{"answered": bound, "shown": shown} {
		t.Run(how, func(t *testing.T) {
			bridge := p["binding:vif_details"].(object)["bridge_name"]
			if d := cmp.Diff(want, p["trunk_details"]); d != "" || bridge != "tbr-"+trunk[:10] {
				t.Errorf(
					"parent port %s: got bridge %v, want the trunk's; trunk_details (-want +got):\n%s",
					how, bridge, d,
				)
			}
		})
	}
	journaled := 0
	for _, p := range c.must(200, "GET", "/v2.0/ports", "")["ports"].([]any) {
		if p.(object)["trunk_details"] != nil {
			journaled++
		}
	}
	of := c.must(200, "GET", "/v2.0/ports/"+parent+"/bindings/cmp-1", "")["binding"].(object)["vif_details"].(object)["bridge_name"]
	carried := c.must(200, "GET", "/v2.0/ports/"+sub, "")["port"].(object)["binding:vif_details"].(object)["bridge_name"]
	if journaled != 1 || of != "tbr-"+trunk[:10] || carried != "br-int" {
		t.Errorf(
			"ports with trunk_details: got %d, want 1; bridge of the parent's binding: got %v, want the trunk's bridge; bridge of the subport's binding: got %v, want br-int",
			journaled, of, carried,
		)
	}
}

func TestTrunk_Filters(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	var active, down []string
	for i := range 5 {
		p := c.port(net, "")["id"].(string)
		id := c.must(201, "POST", "/v2.0/trunks", fmt.Sprintf(`{"trunk":{"port_id":%q}}`, p))["trunk"].(object)["id"].(string)
		if i%2 == 0 {
			c.must(200, "PUT", "/v2.0/ports/"+p,
				`{"port":{"binding:host_id":"cmp-1","device_owner":"network:dhcp"}}`)
			active = append(active, id)
		} else {
			down = append(down, id)
		}
	}
	slices.Sort(active)
	slices.Sort(down)
	for query, want := range map[string][]string{
		"status=ACTIVE":         active,
		"status=DOWN":           down,
		"status=BUILD":          {},
		"status=ACTIVE&limit=2": active[:2],
		"status=ACTIVE&limit=2&marker=" + active[1]:                       active[2:],
		"status=ACTIVE&limit=2&page_reverse=True&marker=" + active[2]:     active[:2],
		"status=DOWN&sort_key=id&sort_dir=desc":                           {down[1], down[0]},
		"status=DOWN&status=ACTIVE&limit=2&sort_key=name&sort_dir=asc":    slices.Sorted(slices.Values(append(slices.Clone(active), down...)))[:2],
		"status=ACTIVE&id=" + down[0] + "&id=" + active[0] + "&fields=id": {active[0]},
	} {
		t.Run(query, func(t *testing.T) {
			c := c.in(t)
			if d := cmp.Diff(want, ids(c.must(200, "GET", "/v2.0/trunks?"+query, ""), "trunks")); d != "" {
				t.Errorf("list of trunks with the query %s (-want +got):\n%s", query, d)
			}
		})
	}
}

func TestTrunk_ErrorTypes(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	port := func(more string) string { return c.port(net, more)["id"].(string) }
	parent, sub, free := port(""), port(""), port("")
	used, bound := port(`,"device_id":"x"`), port(`,"binding:host_id":"cmp-1"`)
	other := c.as("ann:other")
	trunk := func(c cloud, parent, sub string) string {
		t.Helper()
		return c.fault("POST", "/v2.0/trunks", fmt.Sprintf(
			`{"trunk":{"port_id":%q,"sub_ports":[{"port_id":%q,"segmentation_type":"vlan","segmentation_id":7}]}}`,
			parent,
			sub,
		))
	}
	path := "/v2.0/trunks/" + c.must(201, "POST", "/v2.0/trunks", fmt.Sprintf(`{"trunk":{"port_id":%q,"sub_ports":[{"port_id":%q,"segmentation_type":"vlan","segmentation_id":7}]}}`, parent, sub))["trunk"].(object)["id"].(string)
	add := func(body string, ports ...any) string {
		t.Helper()
		return c.fault("PUT", path+"/add_subports", `{"sub_ports":[`+fmt.Sprintf(body, ports...)+`]}`)
	}
	unknownID := "6c2a1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b11"

	for got, want := range map[string]string{
		"parent twice: " + trunk(c, parent, free):                                                         "409 ParentPortInUse",
		"parent is a subport: " + trunk(c, sub, free):                                                     "409 TrunkPortInUse",
		"subport twice: " + trunk(c, free, sub):                                                           "409 TrunkPortInUse",
		"subport is a parent: " + trunk(c, free, parent):                                                  "409 ParentPortInUse",
		"subport is its parent: " + trunk(c, free, free):                                                  "409 ParentPortInUse",
		"parent bound: " + trunk(c, bound, free):                                                          "409 ParentPortInUse",
		"no parent: " + trunk(c, unknownID, free):                                                         "404 PortNotFound",
		"no subport: " + trunk(c, free, unknownID):                                                        "404 PortNotFound",
		"of another: " + trunk(other, free, free):                                                         "404 PortNotFound",
		"added in use: " + add(`{"port_id":%q,"segmentation_type":"vlan","segmentation_id":8}`, used):     "409 PortInUse",
		"segment taken: " + add(`{"port_id":%q,"segmentation_type":"vlan","segmentation_id":7}`, free):    "409 DuplicateSubPort",
		"no segment: " + add(`{"port_id":%q}`, free):                                                      "400 InvalidInput",
		"segment: " + add(`{"port_id":%q,"segmentation_type":"vlan","segmentation_id":4095}`, free):       "400 InvalidInput",
		"type: " + add(`{"port_id":%q,"segmentation_id":8,"segmentation_type":"x"}`, free):                "400 InvalidInput",
		"no list: " + c.fault("PUT", path+"/add_subports", `{"sub_ports":null}`):                          "400 InvalidInput",
		"not there: " + c.fault("PUT", path+"/remove_subports", `{"sub_ports":[{"port_id":"`+free+`"}]}`): "404 SubPortNotFound",
		"port of a trunk: " + c.fault("DELETE", "/v2.0/ports/"+parent, ""):                                "409 PortInUseAsTrunkParent",
		"port on a trunk: " + c.fault("DELETE", "/v2.0/ports/"+sub, ""):                                   "409 PortInUseAsSubPort",
		"unseen: " + other.fault("GET", path, ""):                                                         "404 TrunkNotFound",
		"parent changed: " + c.fault("PUT", path, `{"trunk":{"port_id":"`+free+`"}}`):                     "400 HTTPBadRequest",
	} {
		t.Run(got, func(t *testing.T) {
			if what, got, _ := strings.Cut(got, ": "); got != want {
				t.Errorf("request about a trunk, case %s: want %s, got %s", what, want, got)
			}
		})
	}
	c.must(200, "PUT", path, `{"trunk":{"admin_state_up":false}}`)
	if got := add(`{"port_id":%q,"segmentation_type":"vlan","segmentation_id":8}`, free); got != "409 TrunkDisabled" {
		t.Errorf("add a subport to a disabled trunk: got %s, want 409 TrunkDisabled", got)
	}
	c.must(200, "PUT", path, `{"trunk":{"admin_state_up":true}}`)
	c.must(200, "PUT", "/v2.0/ports/"+parent, `{"port":{"binding:host_id":"cmp-1"}}`)
	if got := c.fault("DELETE", path, ""); got != "409 TrunkInUse" {
		t.Errorf("delete a trunk whose parent port is bound: got %s, want 409 TrunkInUse", got)
	}
}

func TestTrunk_SubportSegmentation(t *testing.T) {
	t.Parallel()
	c := open(t)
	net := func(more string) string {
		return c.must(201, "POST", "/v2.0/networks", `{"network":{`+more+`}}`)["network"].(object)["id"].(string)
	}
	port := func(net string) string { return c.port(net, "")["id"].(string) }
	vlan := net(
		`"provider:network_type":"vlan","provider:physical_network":"p","provider:segmentation_id":30`,
	)
	vxlan := net(`"mtu":1400`)
	trunk := c.must(201, "POST", "/v2.0/trunks", fmt.Sprintf(`{"trunk":{"port_id":%q,"sub_ports":[{"port_id":%q,"segmentation_type":"inherit"}]}}`, port(vlan), port(vlan)))["trunk"].(object)
	if got := trunk["sub_ports"].([]any)[0].(object); got["segmentation_type"] != "vlan" ||
		got["segmentation_id"] != 30.0 {
		t.Errorf("subport with segmentation_type inherit: got %v, want the VLAN 30 of its network", got)
	}

	path := "/v2.0/trunks/" + trunk["id"].(string) + "/add_subports"
	low := "/v2.0/trunks/" + c.must(201, "POST", "/v2.0/trunks", fmt.Sprintf(`{"trunk":{"port_id":%q}}`, port(vxlan)))["trunk"].(object)["id"].(string) + "/add_subports"
	for name, tc := range map[string]struct{ path, port, said, want string }{
		"the same VLAN":      {path, port(vlan), `"segmentation_type":"inherit"`, "409 DuplicateSubPort"},
		"no VLAN to inherit": {path, port(vxlan), `"segmentation_type":"inherit"`, "400 InvalidInput"},
		"no type":            {path, port(vxlan), `"segmentation_type":null,"segmentation_id":3`, "400 InvalidInput"},
		"longer frames":      {low, port(vlan), `"segmentation_type":"vlan","segmentation_id":3`, "409 SubPortMtuGreaterThanTrunkPortMtu"},
	} {
		t.Run(name, func(t *testing.T) {
			c := c.in(t)
			if got := c.fault("PUT", tc.path, fmt.Sprintf(`{"sub_ports":[{"port_id":%q,%s}]}`, tc.port, tc.said)); got != tc.want {
				t.Errorf("add a subport, case %s: want %s, got %s", name, tc.want, got)
			}
		})
	}
	c.must(200, "PUT", path, fmt.Sprintf(
		`{"sub_ports":[{"port_id":%q,"segmentation_type":"vlan","segmentation_id":31}]}`,
		port(vxlan),
	))
}

// The subports in one request must differ in their ports and in their segmentations. If they do not, the type
// of Neutron's error depends on whether the request creates the trunk or adds the subports to a trunk.
func TestTrunk_SubportsOfOneRequest(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	port := func() string { return c.port(net, "")["id"].(string) }
	parent, one, two := port(), port(), port()
	path := "/v2.0/trunks/" + c.must(201, "POST", "/v2.0/trunks", fmt.Sprintf(`{"trunk":{"port_id":%q}}`, port()))["trunk"].(object)["id"].(string)
	on := func(port, more string) string { return fmt.Sprintf(`{"port_id":%q%s}`, port, more) }
	const seven = `,"segmentation_type":"vlan","segmentation_id":7`

	for reason, list := range map[string]string{
		"Non unique UUID for subport: '" + one + "'":                         on(one, seven) + "," + on(one, `,"segmentation_type":"vlan","segmentation_id":8`),
		"Segmentation ID '7' for '" + two + "' is not unique":                on(one, seven) + "," + on(two, seven),
		"Invalid subport details '" + on(one, `,"segmentation_id":7`):        on(one, `,"segmentation_id":7`),
		"Invalid subport details '" + on(one, `,"segmentation_type":"vlan"`): on(one, `,"segmentation_type":"vlan"`),
		"A valid port UUID must be specified":                                `{}`,
		"Invalid UUID for subport: 'here'":                                   `{"port_id":"here"}`,
	} {
		t.Run(reason, func(t *testing.T) {
			c := c.in(t)
			for want, got := range map[string]string{
				"400 HTTPBadRequest: Invalid input for sub_ports. Reason: " + reason: c.faultMessage("POST", "/v2.0/trunks", fmt.Sprintf(`{"trunk":{"port_id":%q,"sub_ports":[%s]}}`, parent, list)),
				"400 InvalidInput: Invalid input for operation: " + reason:           c.faultMessage("PUT", path+"/add_subports", `{"sub_ports":[`+list+`]}`),
			} {
				if !strings.HasPrefix(got, want) {
					t.Errorf("request with the subports %s: got %s, want %s", list, got, want)
				}
			}
			if got := c.fault("PUT", path+"/remove_subports", `{"sub_ports":[`+list+`]}`); got != "400 InvalidInput" {
				t.Errorf("remove the subports %s: got %s, want 400 InvalidInput", list, got)
			}
		})
	}

	disabled := c.must(201, "POST", "/v2.0/trunks", fmt.Sprintf(`{"trunk":{"port_id":%q,"admin_state_up":false,"sub_ports":[%s]}}`, parent, on(one, seven)))["trunk"].(object)
	if n := len(disabled["sub_ports"].([]any)); n != 1 {
		t.Errorf("subports of a trunk that was created disabled: got %d, want 1", n)
	}
}

// A port with a host and no device is not in use, as long as no server has the port. The trunk gives the
// subport the host of its parent.
func TestTrunk_SubportsMayHaveAHost(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	port := func(more string) string { return c.port(net, more)["id"].(string) }
	subport := func(id string, vlan int) string {
		return fmt.Sprintf(
			`"sub_ports":[{"port_id":%q,"segmentation_type":"vlan","segmentation_id":%d}]`, id, vlan,
		)
	}
	parent, first, second := port(""), port(`,"binding:host_id":"cmp-1"`), port(`,"binding:host_id":"cmp-1"`)
	path := "/v2.0/trunks/" + c.must(201, "POST", "/v2.0/trunks", fmt.Sprintf(`{"trunk":{"port_id":%q,%s}}`, parent, subport(first, 7)))["trunk"].(object)["id"].(string)
	c.must(200, "PUT", path+"/add_subports", `{`+subport(second, 8)+`}`)
	for _, id := range []string{first, second} {
		p := c.must(200, "GET", "/v2.0/ports/"+id, "")["port"].(object)
		if p["device_owner"] != network.DeviceOwnerSubport || p["binding:host_id"] != "" {
			t.Errorf(
				"subport of a parent without a host: got device owner %v and host %v, want %s and none",
				p["device_owner"], p["binding:host_id"], network.DeviceOwnerSubport,
			)
		}
	}
	c.must(200, "PUT", path+"/remove_subports", fmt.Sprintf(`{"sub_ports":[{"port_id":%q}]}`, second))
	c.must(200, "PUT", "/v2.0/ports/"+second, `{"port":{"binding:host_id":"cmp-1","device_id":"server"}}`)
	want := "409 PortInUse: Unable to complete operation on port " + second + " for network " + net + ". Port already has an attached device server."
	if got := c.faultMessage("PUT", path+"/add_subports", `{`+subport(second, 8)+`}`); got != want {
		t.Errorf("add the port of a server: want %s, got %s", want, got)
	}
}
