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
	c := &stage{Deployment: s, host: h, api: s.StartWorker("api"), work: s.StartWorker("relay,temporal"), rpc: s.StartWorker("rpc")}
	s.Await("agents are answered", func() string {
		if !strings.Contains(c.rpc.Output(), "answering agents") {
			return c.rpc.Output()
		}
		return ""
	})
	h.startDHCP()
	h.startOVS()
	c.await("both agents live", func() string { return c.without("DHCP agent", "Open vSwitch agent") })

	c.network = c.api.CreateNetwork("blue")
	c.subnet = c.api.CreateSubnet(c.network)
	first := c.server()
	c.life(first)
	c.withoutDHCP(first)
	c.kills(first)
	c.end()
	c.content()
}

// life is what a port goes through while all is well.
func (c *stage) life(p serverPort) {
	c.Helper()
	c.host.plug(p)
	c.wired("it is plugged", p)
	c.host.unplug(p)
	c.become("it is unplugged", p, "DOWN")
	c.host.plug(p)
	c.wired("it is plugged again", p)
	c.set("port", p.id, "admin_state_up", false)
	c.dead(p)
	c.set("port", p.id, "admin_state_up", true)
	c.wired("it is administratively up again", p)
	if c.host.space == 0 {
		return
	}
	if got := c.host.boot(p); got != p.ip {
		c.Errorf("a server with the address %s was given %s by DHCP", p.ip, got)
	}
}

// withoutDHCP takes DHCP from the subnet and gives it back.
func (c *stage) withoutDHCP(first serverPort) {
	c.Helper()
	c.await("the agent has its port", func() string { return c.serving(1) })
	c.set("subnet", c.subnet, "enable_dhcp", false)
	c.await("the agent has left", func() string { return c.serving(0) })
	second := c.server()
	c.host.plug(second)
	c.wired("nobody has to serve it", second)
	c.set("subnet", c.subnet, "enable_dhcp", true)
	c.await("the agent is back", func() string { return c.serving(1) })
	third := c.server()
	c.host.plug(third)
	c.wired("it is served", third)
	c.become("it was served before", first, "ACTIVE")
}

// kills kills each process while a port is plugged and another one changes, and lets it come back.
func (c *stage) kills(first serverPort) {
	c.Helper()
	h := c.host
	plugged := func() serverPort {
		p := c.server()
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
	c.wired("the DHCP agent was killed", p)
	c.wired("it came while there was no DHCP agent", late)

	p = plugged()
	h.kill(h.ovs)
	late = plugged()
	c.set("port", first.id, "admin_state_up", false)
	h.startOVS()
	c.wired("the Open vSwitch agent was killed", p)
	c.wired("it came while there was no Open vSwitch agent", late)
	c.dead(first)
	c.set("port", first.id, "admin_state_up", true)
	c.wired("it is administratively up again", first)

	for _, fault := range []struct {
		of     string
		bounce func()
	}{
		{"RabbitMQ", h.bounceBroker},
		{"the role rpc", func() { c.rpc.Kill(); c.rpc = c.Deployment.StartWorker("rpc") }},
	} {
		p = plugged()
		c.set("port", first.id, "admin_state_up", false)
		fault.bounce()
		late = plugged()
		c.wired(fault.of+" was killed", p)
		c.wired("it came after "+fault.of+" had been killed", late)
		c.dead(first)
		c.set("port", first.id, "admin_state_up", true)
		c.wired("it is administratively up again", first)
	}

	p = plugged()
	h.unplug(first)
	c.work.Kill()
	late = plugged()
	c.become("agents' reports need no worker of Temporal", first, "DOWN")
	c.work = c.Deployment.StartWorker("relay,temporal")
	c.wired("the worker was killed", p)
	c.wired("it came while there was no worker", late)
	h.plug(first)
	c.wired("it is plugged again", first)
}

// end deletes all there is.
func (c *stage) end() {
	c.Helper()
	for _, p := range c.servers {
		c.api.Must("DELETE", "/networking/v2.0/ports/"+p.id, nil)
	}
	for _, p := range c.servers {
		c.await("the device of a deleted port is dead", func() string { return c.tagged(p, deadVLAN) })
	}
	c.api.Must("DELETE", "/networking/v2.0/networks/"+c.network, nil)
	c.await("the DHCP agent has left the network", func() string {
		if c.host.serves(c.network) {
			return "it has not"
		}
		return ""
	})
	c.AwaitNone("agents are told of everything", `select kind || ' ' || event from announcement where told_at is null`)
	c.AwaitNone("no note is left", `select workflow_id from note`)
}

// content checks that no agent has complained, but about RabbitMQ that was away.
func (c *stage) content() {
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

// stage is berth with a host that has Neutron's own agents.
type stage struct {
	*servertest.Deployment
	host            *agentHost
	api, work, rpc  *servertest.Worker
	network, subnet string
	servers         []serverPort // all that were made
}

// serverPort is a port of a server on the host.
type serverPort struct{ id, mac, ip string }

// without tells which of these types of agents does not live.
func (c *stage) without(types ...string) string {
	for _, a := range c.api.Must("GET", "/networking/v2.0/agents", nil)["agents"].([]any) {
		if a := a.(servertest.Object); a["alive"] == true && a["host"] == c.host.name {
			types = slices.DeleteFunc(types, func(t string) bool { return t == a["agent_type"] })
		}
	}
	return strings.Join(types, ", ")
}

// await is until, as long as the agents run.
func (c *stage) await(what string, f func() string) {
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
func (c *stage) port(p serverPort) servertest.Object {
	c.Helper()
	return c.api.Must("GET", "/networking/v2.0/ports/"+p.id, nil)["port"].(servertest.Object)
}

// become waits until the port has that status.
func (c *stage) become(why string, p serverPort, status string) {
	c.Helper()
	c.await("a port is "+status+": "+why, func() string {
		if o := c.port(p); o["status"] != status {
			return fmt.Sprintf("it is %v: %v", o["status"], o)
		}
		return ""
	})
}

// wired waits until the port is ACTIVE, and its device is where its network is.
func (c *stage) wired(why string, p serverPort) {
	c.Helper()
	c.become(why, p, "ACTIVE")
	c.await("the device of a port is wired: "+why, func() string {
		if tag := c.host.tag(p); tag == "" || tag == deadVLAN {
			return "its VLAN is " + tag
		}
		return ""
	})
}

// deadVLAN is where the agent puts devices through which nothing may go.
const deadVLAN = "4095"

// dead waits until the port is DOWN, and its device is cut off.
func (c *stage) dead(p serverPort) {
	c.Helper()
	c.become("it is administratively down", p, "DOWN")
	c.await("the device of a port is dead", func() string { return c.tagged(p, deadVLAN) })
}

func (c *stage) tagged(p serverPort, want string) string {
	if tag := c.host.tag(p); tag != want {
		return "its VLAN is " + tag
	}
	return ""
}

// serving tells whether not so many DHCP agents serve the network, over ports that are up.
func (c *stage) serving(want int) string {
	ports := c.api.Must("GET", "/networking/v2.0/ports?device_owner=network:dhcp&network_id="+c.network, nil)["ports"].([]any)
	if len(ports) != want || c.host.serves(c.network) != (want > 0) {
		return fmt.Sprintf("%d have a port", len(ports))
	}
	for _, p := range ports {
		if p := p.(servertest.Object); c.host.space != 0 && p["status"] != "ACTIVE" {
			return fmt.Sprintf("its port is %v: %v", p["status"], p)
		}
	}
	return ""
}

// server makes a port for a server on the host.
func (c *stage) server() serverPort {
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

// set changes an attribute of an object of the Networking API.
func (c *stage) set(typ, id, attribute string, value any) {
	c.Helper()
	c.api.Must("PUT", "/networking/v2.0/"+typ+"s/"+id, servertest.Object{typ: servertest.Object{attribute: value}})
}
