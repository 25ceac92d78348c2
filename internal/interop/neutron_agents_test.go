package interop

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"berth/internal/devstack"
	"berth/internal/server/servertest"
)

// The programs of Neutron's agents.
const (
	dhcpAgent     = "neutron-dhcp-agent"
	ovsAgent      = "neutron-openvswitch-agent"
	l3Agent       = "neutron-l3-agent"
	metadataAgent = "neutron-metadata-agent"
	sriovAgent    = "neutron-sriov-nic-agent"
	macvtapAgent  = "neutron-macvtap-agent"
)

// TestNeutronAgents_BringPortsUp runs the DHCP agent and the Open vSwitch agent of a Neutron release against
// berth over RabbitMQ, and the SR-IOV agent and the macvtap agent on a second host. With Debian's agents,
// TestNeutronAgents_BringPortsUp also kills the agents, RabbitMQ and the role rpc one after the other while
// ports change. Each host then has a virtual host of its own, in which berth answers only what the agents of
// this host may know; the agents must get along with these answers. With another release, the L3
// agent and the metadata agent run beside: berth has no routers, so they have nothing to do, but they must
// send heartbeats and disturb nothing.
func TestNeutronAgents_BringPortsUp(t *testing.T) {
	t.Parallel()
	c := newAgentScenario(t)
	debian := c.host.release.python == ""
	if !debian {
		c.host.start(l3Agent)
		c.host.start(metadataAgent)
	}
	c.startNetwork()
	first := c.createServerPort()
	c.portLifecycle(first)
	c.remoteGroupMember()
	c.toggleDHCP(first)
	if debian {
		c.killEachProcess(first)
	} else {
		c.awaitAlive(c.host, "L3 agent", "Metadata agent")
	}
	c.deleteAll()
	c.physicalNetworkLifecycle()
	c.checkAgentLogs()
}

// newAgentScenario starts RabbitMQ, berth, and a host that has no agents yet.
func newAgentScenario(t *testing.T) *agentScenario {
	t.Helper()
	broker, err := devstack.StartRabbitMQ(t.Context(), t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Kill)
	s, _ := servertest.SharedDeployment(t)
	s.Settings = append(s.Settings, "BERTH_RABBITMQ_URL="+broker.URL(0))
	agentURL := broker.URL(0)
	if testedRelease(t).python == "" {
		agentURL = addVirtualHost(t, broker, "cmp-1")
		s.Settings = append(s.Settings, "BERTH_RABBITMQ_IDENTITIES=required")
	}
	h := newAgentHost(s, "cmp-1", broker, agentURL)
	c := &agentScenario{
		Deployment:     s,
		host:           h,
		api:            s.StartWorker("api"),
		temporalWorker: s.StartWorker("relay,temporal"),
		rpc:            s.StartWorker("rpc"),
	}
	if agentURL != broker.URL(0) {
		c.api.Starter("agent", "vhost", "create", "cmp-1", "--type", "Open vSwitch agent", "--type", "DHCP agent")
	}
	c.rpc.AwaitReady()
	return c
}

// addVirtualHost creates a virtual host of RabbitMQ and its user with the commands of docs/agents.md, and
// returns the URL for the agents of the host. The virtual host and the user have the name of the host.
func addVirtualHost(t *testing.T, broker *devstack.RabbitMQ, host string) string {
	t.Helper()
	u, err := url.Parse(broker.URL(0))
	if err != nil {
		t.Fatal(err)
	}
	run := 0
	for _, b := range blocks(t, "docs/agents.md") {
		for _, command := range b.commands() {
			if !strings.Contains(command, "rabbitmqctl ") {
				continue
			}
			command = strings.ReplaceAll(command, "cmp-1", host)
			if err := broker.Control(t.Context(), command, "PASSWORD=secret"); err != nil {
				t.Fatal(err)
			}
			run++
		}
	}
	if run == 0 {
		t.Fatal("docs/agents.md has no command with rabbitmqctl")
	}
	u.User, u.Path = url.UserPassword(host, "secret"), "/"+host
	return u.String()
}

// startNetwork starts Open vSwitch, the DHCP agent and the Open vSwitch agent, and creates a network.
func (c *agentScenario) startNetwork() {
	c.Helper()
	c.host.startSwitch()
	c.host.start(dhcpAgent)
	c.host.start(ovsAgent)
	c.awaitAlive(c.host, "DHCP agent", "Open vSwitch agent")
	c.network = c.api.CreateNetwork("blue")
	c.subnet = c.api.CreateSubnet(c.network)
}

// portLifecycle plugs, unplugs and disables a port while all processes run.
func (c *agentScenario) portLifecycle(p serverPort) {
	c.Helper()
	c.host.plug(p)
	c.awaitWired("it is plugged", p)
	c.host.unplug(p)
	c.awaitStatus("it is unplugged", p, "DOWN")
	c.host.plug(p)
	c.awaitWired("it is plugged again", p)
	c.setAttribute("port", p.id, "admin_state_up", false)
	c.awaitDisconnected(p)
	c.setAttribute("port", p.id, "admin_state_up", true)
	c.awaitWired("it is administratively up again", p)
	if c.host.namespacePID == 0 {
		return
	}
	if got := c.host.bootServer(p); got != p.ip {
		c.Errorf(
			"boot a server: its port has the address %s, but DHCP assigned %s; want the same address",
			p.ip,
			got,
		)
	}
}

// remoteGroupMember creates a port on another host in the security group of the host's ports, whose rules
// permit traffic between the members of this group, and checks that the Open vSwitch agent permits the
// traffic of the new port.
func (c *agentScenario) remoteGroupMember() {
	c.Helper()
	p := servertest.PortBody(c.network)
	p["binding:host_id"] = "other-host"
	made := c.api.Must("POST", "/networking/v2.0/ports", servertest.Object{"port": p})["port"].(servertest.Object)
	address := made["fixed_ips"].([]any)[0].(servertest.Object)["ip_address"].(string)
	permitted := func() bool {
		flows, err := c.host.command("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", "unix:"+c.host.file("br-int.mgmt")).
			CombinedOutput()
		if err != nil {
			c.Fatalf("read the flows of br-int: %v\n%s", err, flows)
		}
		return strings.Contains(string(flows), "nw_src="+address+" ") ||
			strings.Contains(string(flows), "nw_src="+address+",")
	}
	c.await("the traffic of a port on another host is permitted", func() string {
		if !permitted() {
			return "no flow for " + address
		}
		return ""
	})
	c.api.Must("DELETE", "/networking/v2.0/ports/"+made["id"].(string), nil)
	c.await("the traffic of the deleted port is no longer permitted", func() string {
		if permitted() {
			return "a flow for " + address
		}
		return ""
	})
}

// toggleDHCP disables DHCP on the subnet and enables DHCP again, and checks the ports after each change.
func (c *agentScenario) toggleDHCP(first serverPort) {
	c.Helper()
	c.await("the DHCP agent has a port", func() string { return c.dhcpServiceDiffers(1) })
	c.setAttribute("subnet", c.subnet, "enable_dhcp", false)
	c.await("the DHCP agent has no port", func() string { return c.dhcpServiceDiffers(0) })
	second := c.createServerPort()
	c.host.plug(second)
	c.awaitWired("the subnet has no DHCP", second)
	c.setAttribute("subnet", c.subnet, "enable_dhcp", true)
	c.await("the DHCP agent has a port again", func() string { return c.dhcpServiceDiffers(1) })
	third := c.createServerPort()
	c.host.plug(third)
	c.awaitWired("the DHCP agent serves it", third)
	c.awaitStatus("the DHCP agent served it before", first, "ACTIVE")
}

// killEachProcess kills and restarts each agent, RabbitMQ and the role rpc one after the other, and plugs and
// changes ports in between.
func (c *agentScenario) killEachProcess(first serverPort) {
	c.Helper()
	h := c.host
	plugged := func() serverPort {
		p := c.createServerPort()
		h.plug(p)
		return p
	}

	p := plugged()
	h.kill(h.agents[dhcpAgent])
	late := plugged()
	c.Await("a port waits for DHCP only", func() string {
		why := c.port(late)["berth:why"].(servertest.Object)["sentence"].(string)
		if strings.Contains(why, "DHCP") && !strings.Contains(why, "L2") {
			return ""
		}
		return why
	})
	h.start(dhcpAgent)
	c.awaitWired("the DHCP agent was killed", p)
	c.awaitWired("it was plugged without a DHCP agent", late)

	p = plugged()
	h.kill(h.agents[ovsAgent])
	late = plugged()
	c.setAttribute("port", first.id, "admin_state_up", false)
	h.start(ovsAgent)
	c.awaitWired("the Open vSwitch agent was killed", p)
	c.awaitWired("it was plugged without an Open vSwitch agent", late)
	c.awaitDisconnected(first)
	c.setAttribute("port", first.id, "admin_state_up", true)
	c.awaitWired("it is administratively up again", first)

	for _, fault := range []struct {
		of     string
		bounce func()
	}{
		{"RabbitMQ", h.restartBroker},
		{"the role rpc", func() { c.rpc.Kill(); c.rpc = c.Deployment.StartWorker("rpc") }},
	} {
		p = plugged()
		c.setAttribute("port", first.id, "admin_state_up", false)
		fault.bounce()
		late = plugged()
		c.awaitWired(fault.of+" was killed", p)
		c.awaitWired("it was plugged after the kill of "+fault.of, late)
		c.awaitDisconnected(first)
		c.setAttribute("port", first.id, "admin_state_up", true)
		c.awaitWired("it is administratively up again", first)
	}

	p = plugged()
	h.unplug(first)
	c.temporalWorker.Kill()
	late = plugged()
	c.awaitStatus("reports are processed without a Temporal worker", first, "DOWN")
	c.temporalWorker = c.Deployment.StartWorker("relay,temporal")
	c.awaitWired("the worker was killed", p)
	c.awaitWired("it was plugged without a Temporal worker", late)
	h.plug(first)
	c.awaitWired("it is plugged again", first)
}

// deleteAll deletes all ports and the network.
func (c *agentScenario) deleteAll() {
	c.Helper()
	for _, p := range c.servers {
		c.api.Must("DELETE", "/networking/v2.0/ports/"+p.id, nil)
	}
	for _, p := range c.servers {
		c.await("the device of a deleted port is disconnected",
			func() string { return c.vlanDiffers(p, deadVLAN) })
	}
	c.api.Must("DELETE", "/networking/v2.0/networks/"+c.network, nil)
	c.await("the DHCP agent does not serve the network", func() string {
		if c.host.servesDHCP(c.network) {
			return "it serves the network"
		}
		return ""
	})
	c.AwaitNone("all notifications to agents are published",
		`select kind || ' ' || event from agent_notification where sent_at is null`)
	c.AwaitNone("all notes are delivered", `select workflow_id from note`)
}

// checkAgentLogs checks that the agents logged no errors, except errors that RabbitMQ's outage caused, and
// that berth refused no call.
func (c *agentScenario) checkAgentLogs() {
	c.Helper()
	for line := range strings.Lines(c.rpc.Output()) {
		if strings.Contains(line, "RPC call refused") {
			c.Error(line)
		}
	}
	away := []string{"impl_rabbit", "MessagingTimeout", "Timeout in RPC method"}
	for agent := range c.agents() {
		for line := range strings.Lines(agent.Output()) {
			bad := strings.Contains(line, " ERROR ") || strings.Contains(line, " CRITICAL ")
			if bad &&
				!slices.ContainsFunc(away, func(known string) bool { return strings.Contains(line, known) }) {
				c.Error(line)
			}
		}
	}
}

// agentScenario is a deployment of berth and a host with Neutron's agents.
type agentScenario struct {
	*servertest.Deployment
	host                     *agentHost
	physicalHost             *agentHost // the host whose ports are on a physical network; nil until it exists
	api, temporalWorker, rpc *servertest.Worker
	network, subnet          string
	servers                  []serverPort // all created ports
}

// serverPort is a port of a server on the host.
type serverPort struct{ id, mac, ip string }

// awaitAlive waits until agents of all given types are alive on the host.
func (c *agentScenario) awaitAlive(h *agentHost, types ...string) {
	c.Helper()
	c.await("these agents are alive on "+h.name+": "+strings.Join(types, ", "), func() string {
		missing := slices.Clone(types)
		for _, a := range c.api.Must("GET", "/networking/v2.0/agents", nil)["agents"].([]any) {
			if a := a.(servertest.Object); a["alive"] == true && a["host"] == h.name {
				missing = slices.DeleteFunc(missing, func(t string) bool { return t == a["agent_type"] })
			}
		}
		return strings.Join(missing, ", ")
	})
}

// await calls Deployment.Await. await fails the test immediately if an agent process ends.
func (c *agentScenario) await(what string, f func() string) {
	c.Helper()
	c.Await(what, func() string {
		for agent := range c.agents() {
			select {
			case <-agent.Done:
				c.Fatalf("wait until %s: the agent process %s ended with %s, want it to keep running",
					what, agent.Cmd.Path, agent.Cmd.ProcessState)
			default:
			}
		}
		return f()
	})
}

// port reads a port through the Networking API.
func (c *agentScenario) port(p serverPort) servertest.Object {
	c.Helper()
	return c.api.Must("GET", "/networking/v2.0/ports/"+p.id, nil)["port"].(servertest.Object)
}

// awaitStatus waits until the port has the status.
func (c *agentScenario) awaitStatus(why string, p serverPort, status string) {
	c.Helper()
	c.await("a port has the status "+status+" in this situation: "+why, func() string {
		if o := c.port(p); o["status"] != status {
			return fmt.Sprintf("the status is %v: %v", o["status"], o)
		}
		return ""
	})
}

// awaitWired waits until the port is ACTIVE and the Open vSwitch agent has put the port's device into a VLAN.
func (c *agentScenario) awaitWired(why string, p serverPort) {
	c.Helper()
	c.awaitStatus(why, p, "ACTIVE")
	c.await("the device of a port is wired in this situation: "+why, func() string {
		if tag := c.host.vlan(p); tag == "" || tag == deadVLAN {
			return "its VLAN is " + tag
		}
		return ""
	})
}

// deadVLAN is the VLAN tag that the Open vSwitch agent gives to a device to disconnect the device from the
// network.
const deadVLAN = "4095"

// awaitDisconnected waits until the port is DOWN and the port's device is disconnected.
func (c *agentScenario) awaitDisconnected(p serverPort) {
	c.Helper()
	c.awaitStatus("it is administratively down", p, "DOWN")
	c.await("the device of a port is disconnected", func() string { return c.vlanDiffers(p, deadVLAN) })
}

func (c *agentScenario) vlanDiffers(p serverPort, want string) string {
	if tag := c.host.vlan(p); tag != want {
		return "its VLAN is " + tag
	}
	return ""
}

// dhcpServiceDiffers returns "" if the wanted number of DHCP agents serve the network, each with an ACTIVE
// port. If the number of DHCP agents or the status of one of their ports is not as wanted, dhcpServiceDiffers
// returns the difference.
func (c *agentScenario) dhcpServiceDiffers(want int) string {
	ports := c.api.Must("GET", "/networking/v2.0/ports?device_owner=network:dhcp&network_id="+c.network, nil)["ports"].([]any)
	if len(ports) != want || c.host.servesDHCP(c.network) != (want > 0) {
		return fmt.Sprintf("%d DHCP agents have a port on the network", len(ports))
	}
	for _, p := range ports {
		if p := p.(servertest.Object); c.host.namespacePID != 0 && p["status"] != "ACTIVE" {
			return fmt.Sprintf("the DHCP port is %v: %v", p["status"], p)
		}
	}
	return ""
}

// createServerPort creates a port for a server on the agents' host.
func (c *agentScenario) createServerPort() serverPort {
	c.Helper()
	body := servertest.PortBody(c.network)
	body["binding:host_id"] = c.host.name
	p := c.newServerPort(body, "ovs")
	c.servers = append(c.servers, p)
	return p
}

// newServerPort creates a port for a server. The port must get the wanted VIF type.
func (c *agentScenario) newServerPort(body servertest.Object, wantVIF string) serverPort {
	c.Helper()
	// A host whose agent has been silent for network.AgentDownTime gets no binding. On a slow machine the
	// restart of an agent can take longer.
	c.Rows(`update agent set heartbeat_at = greatest(heartbeat_at, now()) returning host`)
	made := c.api.Must("POST", "/networking/v2.0/ports", servertest.Object{"port": body})["port"].(servertest.Object)
	if made["status"] != "DOWN" || made["binding:vif_type"] != wantVIF {
		c.Errorf("create a port of a server: got status %v and VIF type %v, want DOWN and %s",
			made["status"], made["binding:vif_type"], wantVIF)
	}
	fixed := made["fixed_ips"].([]any)[0].(servertest.Object)
	return serverPort{made["id"].(string), made["mac_address"].(string), fixed["ip_address"].(string)}
}

// setAttribute changes an attribute of an object of the Networking API.
func (c *agentScenario) setAttribute(typ, id, attribute string, value any) {
	c.Helper()
	c.api.Must("PUT", "/networking/v2.0/"+typ+"s/"+id,
		servertest.Object{typ: servertest.Object{attribute: value}})
}
