package neutron_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNetwork_DeleteRemovesItsServicePorts(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, subnet := c.createNetwork("10.0.0.0/24")
	served := "/v2.0/ports/" + c.port(net, `,"device_owner":"network:dhcp","device_id":"dhcp-1"`)["id"].(string)
	web := "/v2.0/ports/" + c.port(net, ``)["id"].(string)

	if got := c.fault("DELETE", "/v2.0/subnets/"+subnet, ""); got != "409 SubnetInUse" {
		t.Errorf("a subnet with a user's port is deleted: %s", got)
	}
	c.must(204, "DELETE", web, "")
	c.must(204, "DELETE", "/v2.0/subnets/"+subnet, "")
	if got := c.must(200, "GET", served, "")["port"].(object); len(got["fixed_ips"].([]any)) != 0 || got["revision_number"] != 2.0 {
		t.Errorf("the port that serves the network: %v", got)
	}
	router := "/v2.0/ports/" + c.port(net, `,"device_owner":"network:router_interface"`)["id"].(string)
	if got := c.fault("DELETE", "/v2.0/networks/"+net, ""); got != "409 NetworkInUse" {
		t.Errorf("a network with a router is deleted: %s", got)
	}
	c.must(204, "DELETE", router, "")
	c.must(204, "DELETE", "/v2.0/networks/"+net, "")
	if got := c.fault("GET", served, ""); got != "404 PortNotFound" {
		t.Errorf("the port that served the network: %s", got)
	}
	journaled := c.journaledChanges()
	if d := cmp.Diff([]string{"delete port", "delete network"}, journaled[len(journaled)-2:]); d != "" {
		t.Error(d)
	}
}

func TestSubnet_DeleteRemovesSLAACAddresses(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	six := c.must(201, "POST", "/v2.0/subnets", fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":6,"cidr":"fd00::/64","ipv6_address_mode":"slaac"}}`, net))["subnet"].(object)["id"].(string)
	before := c.port(net, `,"binding:host_id":"cmp-1","device_owner":"compute:nova"`)
	path := "/v2.0/ports/" + before["id"].(string)
	router := "/v2.0/ports/" + c.port(net, `,"device_owner":"network:router_interface","fixed_ips":[{"subnet_id":"`+six+`"}]`)["id"].(string)
	if n := len(before["fixed_ips"].([]any)); n != 2 {
		t.Fatalf("the port has %d addresses", n)
	}

	if got := c.fault("DELETE", "/v2.0/subnets/"+six, ""); got != "409 SubnetInUse" {
		t.Errorf("a router loses its address: %s", got)
	}
	c.must(204, "DELETE", router, "")
	c.must(204, "DELETE", "/v2.0/subnets/"+six, "")

	after := c.must(200, "GET", path, "")["port"].(object)
	if d := cmp.Diff(before["fixed_ips"].([]any)[:1], after["fixed_ips"].([]any)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(before["berth:why"], after["berth:why"]); d != "" {
		t.Errorf("what the port waits for changed: %s", d)
	}
}

func TestSubnet_DeleteRacesWithPortDelete(t *testing.T) {
	t.Parallel()
	c := open(t)
	for range 5 {
		net := c.must(201, "POST", "/v2.0/networks", `{"network":{}}`)["network"].(object)["id"].(string)
		six := c.must(201, "POST", "/v2.0/subnets", fmt.Sprintf(`{"subnet":{"network_id":%q,"ip_version":6,"cidr":"fd00::/64","ipv6_address_mode":"slaac"}}`, net))
		paths := []string{"/v2.0/subnets/" + six["subnet"].(object)["id"].(string)}
		for range 6 {
			paths = append(paths, "/v2.0/ports/"+c.port(net, `,"device_owner":"network:dhcp"`)["id"].(string))
		}
		var requests sync.WaitGroup
		for _, path := range paths {
			requests.Go(func() {
				if status, o, _ := c.raw("DELETE", path, ""); status != 204 {
					t.Errorf("DELETE %s: %d %v", path, status, o)
				}
			})
		}
		requests.Wait()
		c.must(204, "DELETE", "/v2.0/networks/"+net, "")
	}
}
