package neutron_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
)

const notOwned = "409 DeviceIDNotOwnedByTenant"

// A DHCP agent takes each port of a network with its device_id for its own, and stops the DHCP service of the
// network when such a port is deleted. On a shared network, this is the service of all projects.
func TestSharedNetwork_OnlyDHCPPortsHaveTheDeviceIDOfADHCPAgent(t *testing.T) {
	t.Parallel()
	c := open(t)
	net := c.must(201, "POST", "/v2.0/networks", `{"network":{"shared":true}}`)["network"].(object)["id"].(string)
	guest := c.as("u:theirs")
	path := "/v2.0/ports/" + guest.port(net, "")["id"].(string)
	for _, device := range []string{
		"reserved_dhcp_port",
		"dhcp" + uuid.NewString() + "-" + net,
		"dhcp" + uuid.NewString() + "-" + net + "-100",
	} {
		create := fmt.Sprintf(`{"port":{"network_id":%q,"device_id":%q}}`, net, device)
		update := fmt.Sprintf(`{"port":{"device_id":%q}}`, device)
		for _, got := range []string{guest.fault("POST", "/v2.0/ports", create), guest.fault("PUT", path, update)} {
			if got != notOwned {
				t.Errorf("another project names the DHCP agent %s as the device: got %s, want %s",
					device, got, notOwned)
			}
		}
		served := "/v2.0/ports/" + c.port(net,
			fmt.Sprintf(`,"device_owner":"network:dhcp","device_id":%q`, device))["id"].(string)
		c.must(200, "PUT", served, `{"port":{"name":"served"}}`)
		if got := c.fault("PUT", served, `{"port":{"device_owner":""}}`); got != notOwned {
			t.Errorf("the port of the DHCP agent %s becomes a port without an owner: got %s, want %s",
				device, got, notOwned)
		}
	}
	for _, device := range []string{"dhcp-server-1", "dhcp" + uuid.NewString(), "x-" + net, ""} {
		guest.must(200, "PUT", path, fmt.Sprintf(`{"port":{"device_id":%q}}`, device))
	}
}

// The owner of a network could otherwise create a port that its DHCP agent takes for its own but cannot
// change or delete, so that the agent fails and synchronizes all its networks again and again.
func TestPort_OnlyServicesGiveItTheDeviceIDOfADHCPAgent(t *testing.T) {
	t.Parallel()
	c := open(t)
	member := c.as("u:theirs")
	net, _ := member.createNetwork("10.0.0.0/24")
	const service = `"device_owner":"network:dhcp"`
	path := "/v2.0/ports/" + member.port(net, ","+service)["id"].(string)
	for _, device := range []string{"reserved_dhcp_port", "dhcp" + uuid.NewString() + "-" + net} {
		create := fmt.Sprintf(`{"port":{"network_id":%q,"device_id":%q,%s}}`, net, device, service)
		update := fmt.Sprintf(`{"port":{"device_id":%q}}`, device)
		for _, got := range []string{member.fault("POST", "/v2.0/ports", create), member.fault("PUT", path, update)} {
			if got != notOwned {
				t.Errorf("the owner of a network gives a port the device ID %s: got %s, want %s", device, got, notOwned)
			}
		}
		c.must(201, "POST", "/v2.0/ports", create)
		c.must(200, "PUT", path, update)
		member.must(200, "PUT", path, `{"port":{"name":"served"}}`)
		c.must(200, "PUT", path, `{"port":{"device_id":""}}`)
	}
}

// OpenDaylight connects a port of a router to the router that is its device, whosever router it is
// (in Neutron, CVE-2014-0056).
func TestPort_OnlyServicesConnectItToARouter(t *testing.T) {
	t.Parallel()
	c := open(t)
	member := c.as("u:theirs")
	net, _ := member.createNetwork("10.0.0.0/24")
	router := uuid.NewString()
	for _, owner := range []string{
		"network:router_interface",
		"network:router_gateway",
		"network:ha_router_replicated_interface",
		"network:floatingip",
	} {
		device, service := fmt.Sprintf(`"device_id":%q`, router), fmt.Sprintf(`"device_owner":%q`, owner)
		if got := member.fault("POST", "/v2.0/ports", fmt.Sprintf(`{"port":{"network_id":%q,%s,%s}}`, net, device, service)); got != notOwned {
			t.Errorf("a member creates a port of a router with the owner %s: got %s, want %s", owner, got, notOwned)
		}
		for _, order := range [][2]string{{device, service}, {service, device}} {
			path := "/v2.0/ports/" + member.port(net, ","+order[0])["id"].(string)
			if got := member.fault("PUT", path, `{"port":{`+order[1]+`}}`); got != notOwned {
				t.Errorf("a member adds %s to a port with %s: got %s, want %s", order[1], order[0], got, notOwned)
			}
			c.must(200, "PUT", path, `{"port":{`+order[1]+`}}`)
			member.must(200, "PUT", path, `{"port":{"name":"uplink"}}`)
		}
	}
}
