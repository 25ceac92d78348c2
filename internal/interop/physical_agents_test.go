package interop

import (
	"encoding/json"
	"iter"
	"maps"
	"os"
	"path/filepath"

	"berth/internal/server/servertest"
)

// The devices of a host that is connected to the physical network physnet1.
const (
	physicalFunction = "card1"        // the network card whose virtual functions the SR-IOV agent manages
	virtualFunction  = "0000:05:00.1" // PCI address of the card's only virtual function
	macvtapParent    = "eth1"         // the network device on which the macvtap agent's devices are
	macvtapDevice    = "macvtap0"
)

// physicalNetworkLifecycle runs the SR-IOV agent and the macvtap agent on a host of their own, and plugs,
// disables and unplugs a port of each. The SR-IOV agent has a stand-in for its network card. The macvtap
// agent needs a host with namespaces, where macvtap devices can exist, and a release whose agent can run.
func (c *agentScenario) physicalNetworkLifecycle() {
	c.Helper()
	url := c.host.broker.URL(0)
	if c.host.brokerURL != url {
		url = addVirtualHost(c.T, c.host.broker, "cmp-2")
		c.api.Starter("agent", "vhost", "create", "cmp-2", "--type", "NIC Switch agent", "--type", "Macvtap agent")
	}
	h := newAgentHost(c.Deployment, "cmp-2", c.host.broker, url)
	c.physicalHost = h
	h.addNetworkCard()
	h.start(sriovAgent)
	c.awaitAlive(h, "NIC Switch agent")
	net := c.api.Must("POST", "/networking/v2.0/networks", servertest.Object{"network": servertest.Object{"name": "physical",
		"provider:network_type": "flat", "provider:physical_network": "physnet1"}})["network"].(servertest.Object)["id"].(string)
	// the host of the DHCP agent is not connected to the physical network
	c.api.Must("POST", "/networking/v2.0/subnets", servertest.Object{"subnet": servertest.Object{
		"network_id":  net,
		"ip_version":  4,
		"cidr":        "10.30.0.0/24",
		"enable_dhcp": false,
	}})

	direct := c.createPhysicalPort(net, "hw_veb", servertest.Object{"binding:vnic_type": "direct",
		"binding:profile": servertest.Object{
			"pci_slot":         virtualFunction,
			"pci_vendor_info":  "8086:10ed",
			"physical_network": "physnet1",
		}})
	h.assignVirtualFunction(direct.mac)
	c.awaitStatus("its virtual function is assigned to a server", direct, "ACTIVE")
	c.setAttribute("port", direct.id, "admin_state_up", false)
	c.awaitStatus("it is administratively down", direct, "DOWN")
	c.await("the agent disables the link of the virtual function",
		func() string { return h.linkStateDiffers(2) })
	c.setAttribute("port", direct.id, "admin_state_up", true)
	c.awaitStatus("it is administratively up again", direct, "ACTIVE")
	h.releaseVirtualFunction()
	c.awaitStatus("its virtual function is released", direct, "DOWN")

	if h.namespacePID != 0 && h.release.runsMacvtapAgent() {
		h.addMacvtapParent()
		h.start(macvtapAgent)
		c.awaitAlive(h, "Macvtap agent")
		normal := c.createPhysicalPort(net, "macvtap", nil)
		h.ip("link", "add", "link",
			macvtapParent, "name", macvtapDevice, "address", normal.mac, "type", "macvtap")
		c.awaitStatus("its macvtap device exists", normal, "ACTIVE")
		c.setAttribute("port", normal.id, "admin_state_up", false)
		c.awaitStatus("it is administratively down", normal, "DOWN")
		c.setAttribute("port", normal.id, "admin_state_up", true)
		c.awaitStatus("it is administratively up again", normal, "ACTIVE")
		h.ip("link", "del", macvtapDevice)
		c.awaitStatus("its macvtap device is deleted", normal, "DOWN")
	}
}

// runsMacvtapAgent reports whether the macvtap agent of the release can run at all. From release 27 on it
// starts its privileged helper before it forks, so that its child waits for ever for the answers of the
// helper, which go to the parent.
func (r agentRelease) runsMacvtapAgent() bool { return r.name == "" || r.name < "27" }

// agents returns all agents that the scenario has started, by name of their program.
func (c *agentScenario) agents() iter.Seq[*servertest.Process] {
	return func(yield func(*servertest.Process) bool) {
		for _, h := range []*agentHost{c.host, c.physicalHost} {
			if h == nil {
				continue
			}
			for a := range maps.Values(h.agents) {
				if !yield(a) {
					return
				}
			}
		}
	}
}

// createPhysicalPort creates a port on the physical host, which the mechanism driver of the wanted VIF type
// must bind.
func (c *agentScenario) createPhysicalPort(network, wantVIF string, attributes servertest.Object) serverPort {
	c.Helper()
	body := servertest.PortBody(network)
	body["binding:host_id"] = c.physicalHost.name
	maps.Copy(body, attributes)
	return c.newServerPort(body, wantVIF)
}

// addNetworkCard creates the files of the network card, as the kernel shows them in /sys/class/net. Its
// virtual function is not assigned.
func (h *agentHost) addNetworkCard() {
	h.Helper()
	if err := os.MkdirAll(h.file("sys/"+physicalFunction+"/device"), 0o755); err != nil {
		h.Fatal(err)
	}
	if err := os.Symlink("../"+virtualFunction, h.file("sys/"+physicalFunction+"/device/virtfn0")); err != nil {
		h.Fatal(err)
	}
	h.writeFile("sys/"+physicalFunction+"/device/sriov_numvfs", "1\n")
	h.releaseVirtualFunction()
	h.writeFile("virtual_functions.json", `{"0": {"mac": "00:00:00:00:00:00", "link_state": 0}}`)
}

// assignVirtualFunction does what libvirt does when a server with a port starts: the virtual function gets
// the port's MAC address and leaves the host's network devices.
func (h *agentHost) assignVirtualFunction(mac string) {
	h.Helper()
	h.writeFile("virtual_functions.json", `{"0": {"mac": "`+mac+`", "link_state": 0}}`)
	if err := os.RemoveAll(h.file("sys/" + physicalFunction + "/device/virtfn0.net")); err != nil {
		h.Fatal(err)
	}
}

// releaseVirtualFunction does what libvirt does when the server stops: the virtual function is a network
// device of the host again.
func (h *agentHost) releaseVirtualFunction() {
	h.Helper()
	if err := os.MkdirAll(h.file("sys/"+physicalFunction+"/device/virtfn0.net/card1v0"), 0o755); err != nil {
		h.Fatal(err)
	}
}

// linkStateDiffers returns "" if the link of the virtual function has the wanted state: 0 for automatic, 1
// for enabled, 2 for disabled, as in IFLA_VF_LINK_STATE of the kernel.
func (h *agentHost) linkStateDiffers(want int) string {
	text, err := os.ReadFile(filepath.Join(h.dir, "virtual_functions.json"))
	if err != nil {
		h.Fatal(err)
	}
	var functions map[string]struct {
		State int `json:"link_state"`
	}
	if err := json.Unmarshal(text, &functions); err != nil {
		h.Fatal(err)
	}
	if functions["0"].State != want {
		return "the virtual functions are " + string(text)
	}
	return ""
}

// addMacvtapParent adds the network device on which the macvtap devices are, and lets the host's programs see
// the network devices of the host's network namespace in /sys/class/net.
func (h *agentHost) addMacvtapParent() {
	h.Helper()
	h.ip("link", "add", macvtapParent, "type", "veth", "peer", "name", "uplink")
	h.ip("link", "set", macvtapParent, "up")
	h.ip("link", "set", "uplink", "up")
	mount := h.inNamespaces(h.command("mount", "-t", "sysfs", "sysfs", "/sys"))
	if out, err := mount.CombinedOutput(); err != nil {
		h.Fatalf("mount /sys for the host's network namespace: %v\n%s", err, out)
	}
}
