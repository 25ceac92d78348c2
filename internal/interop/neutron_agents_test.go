package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"berth/internal/devstack"
	"berth/internal/server/servertest"
)

// TestNeutronAgents_BringPortsUp has Debian's DHCP agent and Open vSwitch agent, as they are, work for berth over RabbitMQ. Each
// of the processes is killed while ports change.
func TestNeutronAgents_BringPortsUp(t *testing.T) {
	t.Parallel()
	broker, err := devstack.StartRabbitMQ(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Kill)
	s, _ := servertest.SharedDeployment(t)
	s.Settings = append(s.Settings, "BERTH_RABBITMQ_URL="+broker.URL(0))
	h := newAgentHost(s, "cmp-1", broker)
	c := &agentScenario{Deployment: s, host: h, api: s.StartWorker("api"), temporalWorker: s.StartWorker("relay,temporal"), rpc: s.StartWorker("rpc")}
	c.rpc.AwaitReady()
	h.startDHCP()
	h.startOVS()
	c.await("both agents live", func() string { return c.missingAgents("DHCP agent", "Open vSwitch agent") })

	c.network = c.api.CreateNetwork("blue")
	c.subnet = c.api.CreateSubnet(c.network)
	first := c.createServerPort()
	c.portLifecycle(first)
	c.toggleDHCP(first)
	c.killEachProcess(first)
	c.deleteAll()
	c.checkAgentLogs()
}

// portLifecycle is what a port goes through while all is well.
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
		c.Errorf("a server with the address %s was given %s by DHCP", p.ip, got)
	}
}

// toggleDHCP takes DHCP from the subnet and gives it back.
func (c *agentScenario) toggleDHCP(first serverPort) {
	c.Helper()
	c.await("the agent has its port", func() string { return c.dhcpServiceDiffers(1) })
	c.setAttribute("subnet", c.subnet, "enable_dhcp", false)
	c.await("the agent has left", func() string { return c.dhcpServiceDiffers(0) })
	second := c.createServerPort()
	c.host.plug(second)
	c.awaitWired("nobody has to serve it", second)
	c.setAttribute("subnet", c.subnet, "enable_dhcp", true)
	c.await("the agent is back", func() string { return c.dhcpServiceDiffers(1) })
	third := c.createServerPort()
	c.host.plug(third)
	c.awaitWired("it is served", third)
	c.awaitStatus("it was served before", first, "ACTIVE")
}

// killEachProcess kills each process while a port is plugged and another one changes, and lets it come back.
func (c *agentScenario) killEachProcess(first serverPort) {
	c.Helper()
	h := c.host
	plugged := func() serverPort {
		p := c.createServerPort()
		h.plug(p)
		return p
	}

	p := plugged()
	h.kill(h.dhcp)
	late := plugged()
	c.Await("a port is wired, and waits for DHCP alone", func() string {
		why := c.port(late)["berth:why"].(servertest.Object)["sentence"].(string)
		if strings.Contains(why, "DHCP") && !strings.Contains(why, "L2") {
			return ""
		}
		return why
	})
	h.startDHCP()
	c.awaitWired("the DHCP agent was killed", p)
	c.awaitWired("it came while there was no DHCP agent", late)

	p = plugged()
	h.kill(h.ovs)
	late = plugged()
	c.setAttribute("port", first.id, "admin_state_up", false)
	h.startOVS()
	c.awaitWired("the Open vSwitch agent was killed", p)
	c.awaitWired("it came while there was no Open vSwitch agent", late)
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
		c.awaitWired("it came after "+fault.of+" had been killed", late)
		c.awaitDisconnected(first)
		c.setAttribute("port", first.id, "admin_state_up", true)
		c.awaitWired("it is administratively up again", first)
	}

	p = plugged()
	h.unplug(first)
	c.temporalWorker.Kill()
	late = plugged()
	c.awaitStatus("agents' reports need no worker of Temporal", first, "DOWN")
	c.temporalWorker = c.Deployment.StartWorker("relay,temporal")
	c.awaitWired("the worker was killed", p)
	c.awaitWired("it came while there was no worker", late)
	h.plug(first)
	c.awaitWired("it is plugged again", first)
}

// deleteAll deletes all there is.
func (c *agentScenario) deleteAll() {
	c.Helper()
	for _, p := range c.servers {
		c.api.Must("DELETE", "/networking/v2.0/ports/"+p.id, nil)
	}
	for _, p := range c.servers {
		c.await("the device of a deleted port is dead", func() string { return c.vlanDiffers(p, deadVLAN) })
	}
	c.api.Must("DELETE", "/networking/v2.0/networks/"+c.network, nil)
	c.await("the DHCP agent has left the network", func() string {
		if c.host.servesDHCP(c.network) {
			return "it has not"
		}
		return ""
	})
	c.AwaitNone("agents are told of everything", `select kind || ' ' || event from announcement where told_at is null`)
	c.AwaitNone("no note is left", `select workflow_id from note`)
}

// checkAgentLogs checks that no agent has complained, but about RabbitMQ that was away.
func (c *agentScenario) checkAgentLogs() {
	c.Helper()
	away := []string{"impl_rabbit", "MessagingTimeout", "Timeout in RPC method"}
	for _, agent := range []*servertest.Process{c.host.dhcp, c.host.ovs} {
		for line := range strings.Lines(agent.Output()) {
			bad := strings.Contains(line, " ERROR ") || strings.Contains(line, " CRITICAL ")
			if bad && !slices.ContainsFunc(away, func(known string) bool { return strings.Contains(line, known) }) {
				c.Error(line)
			}
		}
	}
}

// agentScenario is berth with a host that has Neutron's own agents.
type agentScenario struct {
	*servertest.Deployment
	host                     *agentHost
	api, temporalWorker, rpc *servertest.Worker
	network, subnet          string
	servers                  []serverPort // all that were made
}

// serverPort is a port of a server on the host.
type serverPort struct{ id, mac, ip string }

// missingAgents tells which of these types of agents does not live.
func (c *agentScenario) missingAgents(types ...string) string {
	for _, a := range c.api.Must("GET", "/networking/v2.0/agents", nil)["agents"].([]any) {
		if a := a.(servertest.Object); a["alive"] == true && a["host"] == c.host.name {
			types = slices.DeleteFunc(types, func(t string) bool { return t == a["agent_type"] })
		}
	}
	return strings.Join(types, ", ")
}

// await is until, as long as the agents run.
func (c *agentScenario) await(what string, f func() string) {
	c.Helper()
	c.Await(what, func() string {
		for _, agent := range []*servertest.Process{c.host.dhcp, c.host.ovs} {
			select {
			case <-agent.Done:
				c.Fatalf("waited until %s, but %s ended with %s", what, agent.Cmd.Path, agent.Cmd.ProcessState)
			default:
			}
		}
		return f()
	})
}

// port reads a port.
func (c *agentScenario) port(p serverPort) servertest.Object {
	c.Helper()
	return c.api.Must("GET", "/networking/v2.0/ports/"+p.id, nil)["port"].(servertest.Object)
}

// awaitStatus waits until the port has that status.
func (c *agentScenario) awaitStatus(why string, p serverPort, status string) {
	c.Helper()
	c.await("a port is "+status+": "+why, func() string {
		if o := c.port(p); o["status"] != status {
			return fmt.Sprintf("it is %v: %v", o["status"], o)
		}
		return ""
	})
}

// awaitWired waits until the port is ACTIVE, and its device is where its network is.
func (c *agentScenario) awaitWired(why string, p serverPort) {
	c.Helper()
	c.awaitStatus(why, p, "ACTIVE")
	c.await("the device of a port is wired: "+why, func() string {
		if tag := c.host.vlan(p); tag == "" || tag == deadVLAN {
			return "its VLAN is " + tag
		}
		return ""
	})
}

// deadVLAN is where the agent puts devices through which nothing may go.
const deadVLAN = "4095"

// awaitDisconnected waits until the port is DOWN, and its device is cut off.
func (c *agentScenario) awaitDisconnected(p serverPort) {
	c.Helper()
	c.awaitStatus("it is administratively down", p, "DOWN")
	c.await("the device of a port is dead", func() string { return c.vlanDiffers(p, deadVLAN) })
}

func (c *agentScenario) vlanDiffers(p serverPort, want string) string {
	if tag := c.host.vlan(p); tag != want {
		return "its VLAN is " + tag
	}
	return ""
}

// dhcpServiceDiffers tells whether not so many DHCP agents serve the network, over ports that are up.
func (c *agentScenario) dhcpServiceDiffers(want int) string {
	ports := c.api.Must("GET", "/networking/v2.0/ports?device_owner=network:dhcp&network_id="+c.network, nil)["ports"].([]any)
	if len(ports) != want || c.host.servesDHCP(c.network) != (want > 0) {
		return fmt.Sprintf("%d have a port", len(ports))
	}
	for _, p := range ports {
		if p := p.(servertest.Object); c.host.namespacePID != 0 && p["status"] != "ACTIVE" {
			return fmt.Sprintf("its port is %v: %v", p["status"], p)
		}
	}
	return ""
}

// createServerPort makes a port for a server on the host.
func (c *agentScenario) createServerPort() serverPort {
	c.Helper()
	p := servertest.PortBody(c.network)
	p["binding:host_id"] = c.host.name
	made := c.api.Must("POST", "/networking/v2.0/ports", servertest.Object{"port": p})["port"].(servertest.Object)
	if made["status"] != "DOWN" || made["binding:vif_type"] != "ovs" {
		c.Errorf("a new port is %v, bound as %v", made["status"], made["binding:vif_type"])
	}
	fixed := made["fixed_ips"].([]any)[0].(servertest.Object)
	s := serverPort{made["id"].(string), made["mac_address"].(string), fixed["ip_address"].(string)}
	c.servers = append(c.servers, s)
	return s
}

// setAttribute changes an attribute of an object of the Networking API.
func (c *agentScenario) setAttribute(typ, id, attribute string, value any) {
	c.Helper()
	c.api.Must("PUT", "/networking/v2.0/"+typ+"s/"+id, servertest.Object{typ: servertest.Object{attribute: value}})
}
