package network

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// randomPort is a port with random attributes and agents, and the list of the steps that the test has applied
// to the port.
type randomPort struct {
	*rapid.T
	Port
	pc    PortContext
	clock time.Time
	steps []string
}

func (a *randomPort) draw(what string, from ...string) string {
	return rapid.SampledFrom(from).Draw(a.T, what)
}

// randomAgents returns agents on the port's host.
func (a *randomPort) randomAgents() []HostAgent {
	controller := func(reports bool) HostAgent {
		return HostAgent{
			Type: ODLAgent,
			Configurations: json.RawMessage(fmt.Sprintf(`{"allowed_network_types":["vlan"],
			"supported_vnic_types":[{"vnic_type":"normal","vif_type":"ovs","vif_details":{"a":1}}],"reports_port_status":%t}`, reports)),
		}
	}
	return map[string][]HostAgent{
		"none":                nil,
		"alive":               {{Type: OVSAgent, Alive: true}, {Type: NICSwitchAgent, Alive: true}},
		"silent":              {{Type: OVSAgent}},
		"a controller":        {controller(true)},
		"a silent controller": {controller(false)},
	}[a.draw("agents", "none", "alive", "alive", "silent", "a controller", "a silent controller")]
}

// recheck applies the rules about blocks and status to the port again, without any change of the port, and
// returns the port.
func (a *randomPort) recheck() Port {
	return a.RetryBinding(a.pc, a.Revision+1, a.clock).
		UpdateBlocks(a.pc, BlockTrigger{}, a.clock).
		UpdateStatus(a.clock)
}

// applyRandomReport applies a report of a random entity, host, event and revision.
func (a *randomPort) applyRandomReport() string {
	r := Report{
		Entity:   a.draw("entity", L2, L2, DHCP, "unknown"),
		Host:     a.draw("from", "1", "1", "2", "n", ""),
		Event:    a.draw("event", "", ReportBegun, ReportLost, "unknown"),
		Revision: rapid.Int64Range(0, a.Revision+1).Draw(a.T, "revision"),
	}
	p, _ := a.recheck().ApplyReports(a.pc, []Report{r}, a.clock)
	a.Port = p.UpdateStatus(a.clock)
	return fmt.Sprintf("%+v", r)
}

// changeContext changes the agents, the DHCP agents or the time.
func (a *randomPort) changeContext() string {
	what := a.draw("around", "agents", "DHCP", "time")
	switch what {
	case "agents":
		a.pc.HostAgents = a.randomAgents()
	case "DHCP":
		a.pc.DHCPHosts = map[string][]string{"yes": {"n"}}[a.draw("served", "yes", "no")]
	default:
		a.clock = a.clock.Add(40 * time.Second)
	}
	a.Port = a.recheck()
	return what
}

// changeByClient applies a random update by a client.
func (a *randomPort) changeByClient() string {
	c, p := BlockTrigger{Revision: a.Revision + 1}, a.Port
	what := a.draw(
		"change", "admin", "host 1", "host 2", "no host", "address", "owner", `{"migrating_to":"2"}`,
		`{"capabilities":["switchdev"]}`,
	)
	switch what {
	case "admin":
		p.AdminUp = !p.AdminUp
		c.BroughtUp = p.AdminUp
	case "host 1", "host 2", "no host":
		p.Host = strings.TrimPrefix(strings.TrimPrefix(what, "no host"), "host ")
	case "address":
		c.AddressesChanged = true
	case "owner":
		p.DeviceOwner = a.draw("owner", deviceOwners...)
	default:
		p.Profile = json.RawMessage(what)
	}
	c.BindingChanged = p.Host != a.Host || string(p.Profile) != string(a.Profile) ||
		p.Distributed() != a.Distributed()
	if c.BindingChanged {
		p = p.BindToNewHost(a.pc.HostAgents)
	}
	a.Port = p.RetryBinding(a.pc, c.Revision, a.clock).UpdateBlocks(a.pc, c, a.clock).UpdateStatus(a.clock)
	return what
}

// moveServer applies one step of a live migration.
func (a *randomPort) moveServer() string {
	what, host := a.draw("move", "propose", "activate", "withdraw"), a.draw("to", "1", "2")
	var p Port
	var err error
	switch what {
	case "propose":
		p, err = a.AddInactiveBinding(BindingChange{Host: &host}, a.pc.HostAgents)
	case "activate":
		p, err = a.ActivateBinding(host, a.pc, a.Revision+1, a.clock)
	default:
		p, err = a.DeleteInactiveBinding(host)
	}
	if err == nil {
		a.Port = p.UpdateStatus(a.clock)
	}
	return what + " " + host
}

// violation describes the first rule that the port breaks. violation returns an empty string if the port is
// consistent.
func (a *randomPort) violation() string {
	s, again := a.StatusView(), a.recheck()
	free := a.Bound() && a.AdminUp && len(a.Blocks) == 0
	switch {
	case a.Status == Active && !free, a.Status != Active && free && !a.Distributed():
		return fmt.Sprintf("it is %s, bound as %s, up %t, blocked by %v",
			a.Status, a.VIF, a.AdminUp, a.Blocks)
	case (a.Status == Active) != (s.Reason == "" && len(s.Waiting) == 0):
		return "its sentence is " + s.Sentence()
	case again.Status != a.Status || again.VIF != a.VIF || len(again.Blocks) != len(a.Blocks):
		return s.Sentence() + "; a recheck changes it to " + again.StatusView().Sentence()
	}
	for _, b := range a.Blocks {
		if b.Entity == L2 && b.Host != a.Host {
			return fmt.Sprintf("it is on %q, and %s", a.Host, b.Sentence(time.Time{}))
		}
	}
	return ""
}

var deviceOwners = []string{
	"compute:nova",
	"compute:nova",
	"",
	"baremetal:none",
	DeviceOwnerSubport,
	DeviceOwnerDHCP,
	"network:router_interface",
	DeviceOwnerDistributed,
	"network:distributed",
}

// The test applies random reports and updates to random ports. The port's status and the reason for the
// status must always agree, and applying the rules a second time must not change the port.
func TestPort_StatusAndReasonAlwaysAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := &randomPort{T: t, clock: time.Unix(0, 0)}
		a.pc = PortContext{
			BlockPolicy: BlockPolicy{L2: {Limit: time.Minute, Fatal: true}},
			DHCPHosts:   []string{"n"},
			HostAgents:  a.randomAgents(),
		}
		host := a.draw("host", "1", "2", "")
		owner := a.draw("owner", deviceOwners...)
		vnic := a.draw("vnic", "normal", "normal", "direct", "direct-physical", "baremetal")
		p := NewPort([16]byte{1}, PortChange{Host: &host, DeviceOwner: &owner, VNIC: &vnic})
		p.NetworkType, p.Revision = a.draw("network type", VLAN, VXLAN), 1
		p = p.BindWith(a.pc.HostAgents)
		a.Port = p.UpdateBlocks(a.pc, BlockTrigger{BindingChanged: true, AddressesChanged: true, Revision: 1}, a.clock).
			UpdateStatus(a.clock)
		for range rapid.IntRange(5, 30).Draw(t, "steps") {
			steps := []func() string{
				a.applyRandomReport,
				a.applyRandomReport,
				a.changeContext,
				a.changeByClient,
				a.moveServer,
			}
			step := rapid.SampledFrom(steps).Draw(t, "step")
			a.steps = append(a.steps, step())
			a.Revision++
			if wrong := a.violation(); wrong != "" {
				t.Fatalf("port with device owner %q after the steps %s breaks a rule: %s",
					owner, strings.Join(a.steps, ", "), wrong)
			}
		}
	})
}
