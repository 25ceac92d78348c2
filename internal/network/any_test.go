package network

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyPort is a port of any kind among any agents, and what has happened to it.
type anyPort struct {
	*rapid.T
	Port
	around Surroundings
	clock  time.Time
	path   []string
}

func (a *anyPort) pick(what string, from ...string) string {
	return rapid.SampledFrom(from).Draw(a.T, what)
}

// agents are those on the port's host.
func (a *anyPort) agents() []HostAgent {
	controller := func(reports bool) HostAgent {
		return HostAgent{Type: ODLAgent, NetworkType: "vxlan", Configurations: json.RawMessage(fmt.Sprintf(`{"allowed_network_types":["vxlan"],
			"supported_vnic_types":[{"vnic_type":"normal","vif_type":"ovs","vif_details":{"a":1}}],"reports_port_status":%t}`, reports))}
	}
	return map[string][]HostAgent{
		"none": nil, "alive": {{Type: OVSAgent, Alive: true}, {Type: NICSwitchAgent, Alive: true}}, "silent": {{Type: OVSAgent}},
		"a controller": {controller(true)}, "a silent controller": {controller(false)},
	}[a.pick("agents", "none", "alive", "alive", "silent", "a controller", "a silent controller")]
}

// look is the port as whoever looks without news leaves it.
func (a *anyPort) look() Port {
	return a.Rebind(a.around, a.Revision+1, a.clock).Arm(a.around, Cause{}, a.clock).Judge(a.clock)
}

// hears has the port hear a report of anybody.
func (a *anyPort) hears() string {
	r := Report{Entity: a.pick("entity", L2, L2, DHCP, "moon"), Host: a.pick("from", "1", "1", "2", "n", ""), Event: a.pick("event", "", Begun, Lost, "moon"),
		Revision: rapid.Int64Range(0, a.Revision+1).Draw(a.T, "revision")}
	p, _ := a.look().Hear(a.around, []Report{r}, a.clock)
	a.Port = p.Judge(a.clock)
	return fmt.Sprintf("%+v", r)
}

// surrounded has what is around the port change.
func (a *anyPort) surrounded() string {
	what := a.pick("around", "agents", "DHCP", "time")
	switch what {
	case "agents":
		a.around.Agents = a.agents()
	case "DHCP":
		a.around.DHCPHosts = map[string][]string{"yes": {"n"}}[a.pick("served", "yes", "no")]
	default:
		a.clock = a.clock.Add(40 * time.Second)
	}
	a.Port = a.look()
	return what
}

// changed has a client change the port.
func (a *anyPort) changed() string {
	c, p := Cause{Revision: a.Revision + 1}, a.Port
	what := a.pick("change", "admin", "host 1", "host 2", "no host", "address", "owner", `{"migrating_to":"2"}`, `{"capabilities":["switchdev"]}`)
	switch what {
	case "admin":
		p.AdminUp = !p.AdminUp
		c.Raised = p.AdminUp
	case "host 1", "host 2", "no host":
		p.Host = strings.TrimPrefix(strings.TrimPrefix(what, "no host"), "host ")
	case "address":
		c.Addressed = true
	case "owner":
		p.DeviceOwner = a.pick("owner", owners...)
	default:
		p.Profile = json.RawMessage(what)
	}
	c.Bound = p.Host != a.Host || string(p.Profile) != string(a.Profile) || p.Distributed() != a.Distributed()
	if c.Bound {
		p = p.Settled(a.around.Agents)
	}
	a.Port = p.Rebind(a.around, c.Revision, a.clock).Arm(a.around, c, a.clock).Judge(a.clock)
	return what
}

// moved has Nova move the port's server.
func (a *anyPort) moved() string {
	what, host := a.pick("move", "propose", "activate", "withdraw"), a.pick("to", "1", "2")
	var p Port
	var err error
	switch what {
	case "propose":
		p, err = a.Propose(BindingChange{Host: &host}, a.around.Agents)
	case "activate":
		p, err = a.Activate(host, a.around, a.Revision+1, a.clock)
	default:
		p, err = a.Withdraw(host)
	}
	if err == nil {
		a.Port = p.Judge(a.clock)
	}
	return what + " " + host
}

// lies tells what is wrong with the port.
func (a *anyPort) lies() string {
	s, again := a.Standing(), a.look()
	free := a.Bound() && a.AdminUp && len(a.Blocks) == 0
	switch {
	case a.Status == Active && !free, a.Status != Active && free && !a.Distributed():
		return fmt.Sprintf("it is %s, bound as %s, up %t, blocked by %v", a.Status, a.VIF, a.AdminUp, a.Blocks)
	case (a.Status == Active) != (s.Reason == "" && len(s.Waiting) == 0):
		return "it says " + s.Sentence()
	case again.Status != a.Status || again.VIF != a.VIF || len(again.Blocks) != len(a.Blocks):
		return "it is " + s.Sentence() + ", and a look makes it " + again.Standing().Sentence()
	}
	for _, b := range a.Blocks {
		if b.Entity == L2 && b.Host != a.Host {
			return fmt.Sprintf("it is on %q, and %s", a.Host, b.Sentence())
		}
	}
	return ""
}

var owners = []string{"compute:nova", "compute:nova", "", "baremetal:none", SubportOwner, DHCPOwner, "network:router_interface", distributedOwner, "network:distributed"}

// Whatever a port is and whoever reports, it is ACTIVE exactly when it may be, says otherwise why it is not, and nobody who looks
// without news finds that it should have been something else.
func TestAnyPortTellsTheTruth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := &anyPort{T: t, clock: time.Unix(0, 0)}
		a.around = Surroundings{Policy: Policy{L2: {Limit: time.Minute, Fatal: true}}, DHCPHosts: []string{"n"}, Agents: a.agents()}
		host, owner, vnic := a.pick("host", "1", "2", ""), a.pick("owner", owners...), a.pick("vnic", "normal", "normal", "direct", "direct-physical", "baremetal")
		p := NewPort([16]byte{1}, PortChange{Host: &host, DeviceOwner: &owner, VNIC: &vnic}).BoundBy(a.around.Agents)
		p.Revision = 1
		a.Port = p.Arm(a.around, Cause{Bound: true, Addressed: true, Revision: 1}, a.clock).Judge(a.clock)
		for range rapid.IntRange(5, 30).Draw(t, "steps") {
			step := rapid.SampledFrom([]func() string{a.hears, a.hears, a.surrounded, a.changed, a.moved}).Draw(t, "step")
			a.path = append(a.path, step())
			a.Revision++
			if wrong := a.lies(); wrong != "" {
				t.Fatalf("a port of %q after %s: %s", owner, strings.Join(a.path, ", "), wrong)
			}
		}
	})
}
