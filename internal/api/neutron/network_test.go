package neutron_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
	"berth/internal/store/networkstore"
)

func TestNetwork_DefaultsOfNetworksAndServicePorts(t *testing.T) {
	t.Parallel()
	c := open(t)
	flat := c.must(201, "POST", "/v2.0/networks", `{"network":{"mtu":0,"provider:network_type":"flat","provider:physical_network":"p"}}`)["network"].(object)
	path := "/v2.0/networks/" + flat["id"].(string)
	changed := c.must(200, "PUT", path, `{"network":{"mtu":1400}}`)["network"].(object)
	back := c.must(200, "PUT", path, `{"network":{"mtu":0}}`)["network"].(object)
	if flat["mtu"] != 1500.0 || changed["mtu"] != 1400.0 || back["mtu"] != 1500.0 {
		t.Errorf(
			"MTU of the new network is %v, after setting 1400 %v, after setting 0 %v; want 1500, 1400, 1500",
			flat["mtu"], changed["mtu"], back["mtu"],
		)
	}
	want := "400 InvalidInput: Invalid input for operation: Requested MTU is too big, maximum is 1500."
	if got := c.faultMessage("PUT", path, `{"network":{"mtu":1501}}`); got != want {
		t.Errorf("set an MTU larger than that of physical networks: got %s, want %s", got, want)
	}
	for _, tc := range []struct{ body, want string }{
		{`{"network":{"provider:network_type":"flat","provider:physical_network":"p"}}`, "409 FlatNetworkInUse"},
		{`{"network":{"provider:segmentation_id":77}}`, ""},
		{`{"network":{"provider:segmentation_id":77}}`, "409 TunnelIdInUse"},
		{`{"network":{"provider:network_type":"vlan","provider:physical_network":"p","provider:segmentation_id":5}}`, ""},
		{`{"network":{"provider:network_type":"vlan","provider:physical_network":"p","provider:segmentation_id":5}}`, "409 VlanIdInUse"},
	} {
		t.Run(tc.body, func(t *testing.T) {
			c := c.in(t)
			if tc.want == "" {
				c.must(201, "POST", "/v2.0/networks", tc.body)
			} else if got := c.fault("POST", "/v2.0/networks", tc.body); got != tc.want {
				t.Errorf("create a network with the body %s: want %s, got %s", tc.body, tc.want, got)
			}
		})
	}

	net, _ := c.createNetwork("10.0.0.0/24")
	p := c.port(net, `,"device_owner":"network:distributed","security_groups":["`+c.group("g")+`"]`)
	if p["port_security_enabled"] != false || len(p["security_groups"].([]any)) != 0 {
		t.Errorf(
			"a port with device_owner network:distributed: got port security %v and groups %v, want false and none",
			p["port_security_enabled"],
			p["security_groups"],
		)
	}
	if n := len(ids(c.must(200, "GET", "/v2.0/subnets?subnetpool_id=x&sort_key=subnetpool_id&sort_dir=asc", ""), "subnets")); n != 0 {
		t.Errorf("subnets with a subnetpool_id: got %d, want 0", n)
	}
}

// A DHCP agent that serves metadata cannot give its port an IPv6 address on a network with such an MTU.
func TestNetwork_OnlyAdministratorsChooseAnMTUTooSmallForIPv6(t *testing.T) {
	t.Parallel()
	c := open(t)
	member := c.as("u:theirs")
	path := "/v2.0/networks/" + member.must(201, "POST", "/v2.0/networks", `{"network":{"mtu":1280}}`)["network"].(object)["id"].(string)
	want := "400 InvalidInput: Invalid input for operation: Requested MTU is too small, minimum is 1280."
	for _, mtu := range []int{1, 68, 1279} {
		body := fmt.Sprintf(`{"network":{"mtu":%d}}`, mtu)
		if got := member.faultMessage("POST", "/v2.0/networks", body); got != want {
			t.Errorf("a member creates a network with the MTU %d: got %s, want %s", mtu, got, want)
		}
		if got := member.faultMessage("PUT", path, body); got != want {
			t.Errorf("a member gives a network the MTU %d: got %s, want %s", mtu, got, want)
		}
		c.must(201, "POST", "/v2.0/networks", body)
		c.must(200, "PUT", path, body)
		member.must(200, "PUT", path, body) // the present value
	}
	member.must(200, "PUT", path, `{"network":{"mtu":0}}`)
}

func onVLAN(more string) string { return `{"network":{"provider:network_type":"vlan"` + more + `}}` }

// A VLAN network that names no VLAN ID gets an unused VLAN ID of the configured
// ranges, even if several requests compete for the last unused VLAN IDs.
func TestNetwork_VLANIsAllocatedFromTheRanges(t *testing.T) {
	t.Parallel()
	c := openWith(t, networkstore.Config{
		VLANs: network.VLANRanges{
			{PhysicalNetwork: "p1", Low: 100, High: 101},
			{PhysicalNetwork: "p1", Low: 200, High: 200},
			{PhysicalNetwork: "p2", Low: 7, High: 7},
		},
	})
	const path = "/v2.0/networks"
	auto := onVLAN(`,"provider:physical_network":"p1"`)
	named := onVLAN(`,"provider:physical_network":"p1","provider:segmentation_id":101`)
	var requests sync.WaitGroup
	var refused atomic.Int32
	for _, body := range []string{auto, named, auto, auto} {
		requests.Go(func() {
			if status, o, _ := c.raw("POST", path, body); status != 201 {
				refused.Add(1)
				if e := o["NeutronError"].(object)["type"]; e != "VlanIdInUse" && e != "NoNetworkAvailable" {
					t.Errorf(
						"create a VLAN network: got %d %v, want 201, VlanIdInUse or NoNetworkAvailable",
						status,
						o,
					)
				}
			}
		})
	}
	requests.Wait()
	used := map[float64]string{}
	for _, n := range c.must(200, "GET", path, "")["networks"].([]any) {
		used[n.(object)["provider:segmentation_id"].(float64)] = n.(object)["id"].(string)
	}
	if d := cmp.Diff([]float64{100, 101, 200}, slices.Sorted(maps.Keys(used))); d != "" ||
		refused.Load() != 1 {
		t.Fatalf("four requests for three VLANs: got %d refused, want 1; used VLANs (-want +got):\n%s",
			refused.Load(), d)
	}

	want := "503 NoNetworkAvailable: Unable to create the network. No project network is available for allocation."
	if got := c.faultMessage("POST", path, auto); got != want {
		t.Errorf("create a VLAN network while no VLAN is left: want %s, got %s", want, got)
	}
	c.must(204, "DELETE", path+"/"+used[200], "")
	if got := c.must(201, "POST", path, auto)["network"].(object)["provider:segmentation_id"]; got != 200.0 {
		t.Errorf("VLAN of a network after the network with the VLAN 200 was deleted: got %v, want 200", got)
	}
	elsewhere := c.must(201, "POST", path, onVLAN(""))["network"].(object)
	if elsewhere["provider:physical_network"] != "p2" || elsewhere["provider:segmentation_id"] != 7.0 {
		t.Errorf("VLAN network without a physical network: got %v, want the VLAN 7 of p2", elsewhere)
	}
	c.must(201, "POST", path, onVLAN(`,"provider:physical_network":"p2","provider:segmentation_id":4094`))
}

func TestNetwork_VLANErrors(t *testing.T) {
	t.Parallel()
	c := openWith(t,
		networkstore.Config{VLANs: network.VLANRanges{{PhysicalNetwork: "p1", Low: 100, High: 101}}})
	for more, want := range map[string]string{
		`,"provider:physical_network":"p3"`:                                 "400 InvalidInput: Invalid input for operation: physical_network 'p3' unknown for VLAN provider network.",
		`,"provider:physical_network":"p3","provider:segmentation_id":5`:    "400 InvalidInput: Invalid input for operation: physical_network 'p3' unknown for VLAN provider network.",
		`,"provider:segmentation_id":5`:                                     "400 InvalidInput: Invalid input for operation: segmentation_id requires physical_network for VLAN provider network.",
		`,"provider:physical_network":"p1","provider:segmentation_id":4095`: "400 InvalidInput: Invalid input for operation: segmentation_id out of range (1 through 4094).",
	} {
		t.Run(more, func(t *testing.T) {
			if got := c.in(t).faultMessage("POST", "/v2.0/networks", onVLAN(more)); got != want {
				t.Errorf("create a VLAN network with %s: want %s, got %s", more, want, got)
			}
		})
	}

	free := open(t) // without ranges, every physical network has all VLANs
	if got := free.fault("POST", "/v2.0/networks", onVLAN("")); got != "503 NoNetworkAvailable" {
		t.Errorf(
			"create a VLAN network without a physical network and without ranges: got %s, want 503 NoNetworkAvailable",
			got,
		)
	}
	n := free.must(201, "POST", "/v2.0/networks", onVLAN(`,"provider:physical_network":"any"`))["network"].(object)
	if vlan := n["provider:segmentation_id"].(float64); vlan < 1 || vlan > network.MaxVLAN ||
		n["provider:physical_network"] != "any" {
		t.Errorf("VLAN network without ranges: got %v, want a VLAN from 1 to 4094 on the physical network", n)
	}
}

func TestNetwork_DeleteRemovesItsServicePorts(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, subnet := c.createNetwork("10.0.0.0/24")
	served := "/v2.0/ports/" + c.port(net, `,"device_owner":"network:dhcp","device_id":"dhcp-1"`)["id"].(string)
	web := "/v2.0/ports/" + c.port(net, ``)["id"].(string)

	if got := c.fault("DELETE", "/v2.0/subnets/"+subnet, ""); got != "409 SubnetInUse" {
		t.Errorf("delete a subnet with a server's port: got %s, want 409 SubnetInUse", got)
	}
	c.must(204, "DELETE", web, "")
	c.must(204, "DELETE", "/v2.0/subnets/"+subnet, "")
	if got := c.must(200, "GET", served, "")["port"].(object); len(got["fixed_ips"].([]any)) != 0 ||
		got["revision_number"] != 2.0 {
		t.Errorf("the DHCP port after its subnet was deleted: got %v, want no fixed IPs and revision 2", got)
	}
	router := "/v2.0/ports/" + c.port(net, `,"device_owner":"network:router_interface"`)["id"].(string)
	if got := c.fault("DELETE", "/v2.0/networks/"+net, ""); got != "409 NetworkInUse" {
		t.Errorf("delete a network with a router port: got %s, want 409 NetworkInUse", got)
	}
	c.must(204, "DELETE", router, "")
	c.must(204, "DELETE", "/v2.0/networks/"+net, "")
	if got := c.fault("GET", served, ""); got != "404 PortNotFound" {
		t.Errorf("show the DHCP port of the deleted network: got %s, want 404 PortNotFound", got)
	}
	journaled := c.journaledChanges()
	if d := cmp.Diff([]string{"delete port", "delete network"}, journaled[len(journaled)-2:]); d != "" {
		t.Error(d)
	}
}

func TestExternalNetwork_VisibleToAllProjects(t *testing.T) {
	t.Parallel()
	c := open(t)
	owner, guest := c.as("u:mine"), c.as("u:theirs")
	net, subnet := owner.createNetwork("10.0.0.0/24")
	path := "/v2.0/networks/" + net
	if got := guest.fault("GET", path, ""); got != "404 NetworkNotFound" {
		t.Errorf("show another project's network: got %s, want 404 NetworkNotFound", got)
	}
	c.must(200, "PUT", path, `{"network":{"router:external":true}}`)

	got := ids(guest.must(200, "GET", "/v2.0/networks?router:external=true", ""), "networks")
	if len(got) != 1 {
		t.Errorf("external networks that another project sees: got %v, want one", got)
	}
	if got := guest.fault("GET", "/v2.0/subnets/"+subnet, ""); got != "404 SubnetNotFound" {
		t.Errorf(
			"show the subnet of another project's external network: got %s, want 404 SubnetNotFound",
			got,
		)
	}
	if got := guest.fault("POST", "/v2.0/subnets", fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":4,"cidr":"10.1.0.0/24"}}`, net)); got != "403 PolicyNotAuthorized" {
		t.Errorf(
			"create a subnet on another project's external network: got %s, want 403 PolicyNotAuthorized",
			got,
		)
	}
	port := guest.port(net, "")
	if got := c.fault("PUT", path, `{"network":{"router:external":false}}`); got != "409 InvalidSharedSetting" {
		t.Errorf(
			"make a network internal while it has another project's ports: got %s, want 409 InvalidSharedSetting",
			got,
		)
	}
	guest.must(204, "DELETE", "/v2.0/ports/"+port["id"].(string), "")
	c.must(200, "PUT", path, `{"network":{"router:external":false}}`)
}

// Clients send is_default false explicitly. Neutron would connect routers to a network whose is_default is
// true.
func TestNetwork_IsDefaultIsAlwaysFalse(t *testing.T) {
	t.Parallel()
	c := open(t)

	made := c.must(201, "POST", "/v2.0/networks", `{"network":{"is_default":false}}`)["network"].(object)
	changed := c.must(200, "PUT", "/v2.0/networks/"+made["id"].(string), `{"network":{"is_default":false,"name":"a"}}`)["network"].(object)

	if made["is_default"] != false || changed["is_default"] != false {
		t.Errorf("is_default: got %v after the creation and %v after an update, want false",
			made["is_default"], changed["is_default"])
	}
	for value, want := range map[string]string{"true": "400 HTTPBadRequest", "null": "400 InvalidInput"} {
		if got := c.fault("POST", "/v2.0/networks", `{"network":{"router:external":true,"is_default":`+value+`}}`); got != want {
			t.Errorf("create a network with is_default %s: got %s, want %s", value, got, want)
		}
	}
	c.as("ann:demo").must(201, "POST", "/v2.0/networks", `{"network":{"is_default":false}}`)
}

// A change of a subnet is also a change of its network, and a change of a port's addresses is a change of the
// port.
func TestRevision_FollowsSubnetsAndAddresses(t *testing.T) {
	t.Parallel()
	c := open(t)
	net := c.must(201, "POST", "/v2.0/networks", `{"network":{}}`)["network"].(object)["id"].(string)
	revision := func(kind, id string) float64 {
		t.Helper()
		return c.must(200, "GET", "/v2.0/"+kind+"s/"+id, "")[kind].(object)["revision_number"].(float64)
	}
	subnet := func(cidr, more string) string {
		t.Helper()
		body := fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":%d,"cidr":%q%s}}`,
			net, 4+2*strings.Count(cidr, "::"), cidr, more)
		return c.must(201, "POST", "/v2.0/subnets", body)["subnet"].(object)["id"].(string)
	}
	first := subnet("10.0.0.0/24", "")
	p := c.port(net, "")["id"].(string)
	of := func() [3]float64 {
		return [3]float64{revision("network", net), revision("subnet", first), revision("port", p)}
	}
	var six string
	for _, step := range []struct {
		name string
		do   func()
		want [3]float64 // revisions of the network, the first subnet and the port
	}{
		{"the network has a subnet and a port", func() {}, [3]float64{2, 0, 1}},
		{"a second subnet is created", func() { subnet("10.1.0.0/24", "") }, [3]float64{3, 0, 1}},
		{"the subnet is updated", func() { c.must(200, "PUT", "/v2.0/subnets/"+first, `{"subnet":{"name":"x"}}`) }, [3]float64{4, 1, 1}},
		{"the update repeats the value", func() { c.must(200, "PUT", "/v2.0/subnets/"+first, `{"subnet":{"name":"x"}}`) }, [3]float64{4, 1, 1}},
		{"a SLAAC subnet gives the port an address", func() { six = subnet("fd00::/64", `,"ipv6_address_mode":"slaac"`) }, [3]float64{5, 1, 2}},
		{"the SLAAC subnet is deleted", func() { c.must(204, "DELETE", "/v2.0/subnets/"+six, "") }, [3]float64{6, 1, 3}},
		{"the port gets another address", func() { c.must(200, "PUT", "/v2.0/ports/"+p, `{"port":{"fixed_ips":[]}}`) }, [3]float64{6, 1, 4}},
		{"the network itself is updated", func() { c.must(200, "PUT", "/v2.0/networks/"+net, `{"network":{"name":"x"}}`) }, [3]float64{7, 1, 4}},
	} {
		if step.do(); of() != step.want {
			t.Errorf("revisions of the network, its subnet and its port after: %s: got %v, want %v",
				step.name, of(), step.want)
		}
	}
	if got := c.fault("PUT", "/v2.0/networks/"+net, `{"network":{"name":"y"}}`, "If-Match", "revision_number=1"); got != "412 RevisionNumberConstraintFailed" {
		t.Errorf(
			"update the network with the revision that it had before it got subnets: got %s, want 412 RevisionNumberConstraintFailed",
			got,
		)
	}
}
