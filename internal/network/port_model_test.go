package network

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// portModel is an independent and simpler implementation of the rules about a port's status, with which the
// tests compare the real rules.
type portModel struct {
	host         string
	adminUp      bool
	firstBinding bool   // true until the port's first binding changes
	lastL2Report string // last report of the L2 agent of the port's host: "", begun, lost or complete
	building     bool   // the L2 agent has begun to wire the port
	hasDHCP      bool   // the port's network has DHCP
	waitsForDHCP bool   // the port waits for DHCP
	clock        int
	l2Since      int // when the port began to wait for L2
	dhcpSince    int // when the port began to wait for DHCP
}

// blockLimit is the block timeout, in ticks of the model's clock.
const blockLimit = 2

func (m portModel) status() string {
	waitsForL2 := m.host != "" && m.lastL2Report != ReportComplete
	switch {
	case m.host == "" || !m.adminUp:
		return Down
	case !waitsForL2 && !m.waitsForDHCP:
		return Active
	case waitsForL2 && m.clock-m.l2Since >= blockLimit || m.waitsForDHCP && m.clock-m.dhcpSince >= blockLimit:
		return Errored
	case m.building:
		return Build
	default:
		return Down
	}
}

// reportL2 applies a report of the L2 agent of the port's host.
func (m *portModel) reportL2(event string) {
	if m.host == "" || event == ReportComplete && m.lastL2Report == ReportComplete ||
		event == ReportBegun && !m.adminUp {
		return
	}
	if m.lastL2Report == ReportComplete {
		m.l2Since = m.clock
	}
	m.lastL2Report = event
	m.building = event == ReportBegun || event == ReportComplete && m.building
}

func (m *portModel) bind(host string) {
	if m.host == host {
		return
	}
	m.host, m.firstBinding, m.lastL2Report, m.building, m.l2Since = host, false, "", false, m.clock
}

// portUnderTest is the port to which the tests apply the real rules.
type portUnderTest struct {
	Port
	pc    PortContext
	clock int
}

func (s portUnderTest) now() time.Time { return time.Unix(int64(s.clock), 0) }

// write replaces the port by `p`. If a client can see the change, `write` increments the revision of the
// port.
func (s portUnderTest) write(p Port) portUnderTest {
	p = p.UpdateStatus(s.now())
	if p.Status != s.Status || p.Host != s.Host || p.VIF != s.VIF || p.AdminUp != s.AdminUp ||
		p.MAC != s.MAC {
		p.Revision++
	}
	s.Port = p
	return s
}

func (s portUnderTest) report(r Report) portUnderTest {
	p, _ := s.Port.UpdateBlocks(s.pc, BlockTrigger{}, s.now()).ApplyReports(s.pc, []Report{r}, s.now())
	return s.write(p)
}

func (s portUnderTest) change(c BlockTrigger, change func(*Port)) portUnderTest {
	p := s.Port
	change(&p)
	c.Revision = s.Revision + 1
	c.BindingChanged = p.Host != s.Host
	p.VIF = p.VIFTypeWith(s.pc.HostAgents)
	return s.write(p.UpdateBlocks(s.pc, c, s.now()))
}

// input is one event that a test applies to the real rules and to the model.
type input struct {
	name  string
	rules func(portUnderTest) portUnderTest
	model func(*portModel)
}

// l2Report returns a report of the L2 agent on the host.
func l2Report(host, event string) input {
	return input{"L2@" + host + " " + event,
		func(s portUnderTest) portUnderTest { return s.report(Report{Entity: L2, Host: host, Event: event}) },
		func(m *portModel) {
			if m.host == host {
				m.reportL2(event)
			}
		}}
}

// staleL2Report returns an L2 agent's report about the first revision of the port.
func staleL2Report(host, event string) input {
	return input{"stale L2@" + host + " " + event,
		func(s portUnderTest) portUnderTest {
			return s.report(Report{
				Entity:   L2,
				Host:     host,
				Event:    event,
				Revision: 1,
			})
		},
		func(m *portModel) {
			if m.host == host && m.firstBinding {
				m.reportL2(event)
			}
		}}
}

func bindTo(host string) input {
	return input{"bind " + host,
		func(s portUnderTest) portUnderTest { return s.change(BlockTrigger{}, func(p *Port) { p.Host = host }) },
		func(m *portModel) { m.bind(host) }}
}

func setAdminUp(up bool) input {
	return input{map[bool]string{true: "up", false: "down"}[up],
		func(s portUnderTest) portUnderTest {
			return s.change(BlockTrigger{BroughtUp: up && !s.AdminUp}, func(p *Port) { p.AdminUp = up })
		},
		func(m *portModel) {
			if up && !m.adminUp && m.lastL2Report != ReportComplete {
				m.l2Since = m.clock // no agent could wire the port before
			}
			m.adminUp = up
		}}
}

var inputs = []input{
	l2Report("1", ReportComplete), l2Report("2", ReportComplete),
	l2Report("1", ReportLost), l2Report("1", ReportBegun), l2Report("2", ReportBegun),
	staleL2Report("1", ReportComplete), staleL2Report("1", ReportLost),
	bindTo("1"), bindTo("2"), bindTo(""), setAdminUp(false), setAdminUp(true),
	{"L2@1 future revision", func(s portUnderTest) portUnderTest {
		return s.report(Report{Entity: L2, Host: "1", Revision: s.Revision + 1})
	}, func(*portModel) {}},
	{
		"DHCP@n",
		func(s portUnderTest) portUnderTest { return s.report(completeReport(DHCP, "n")) },
		func(m *portModel) { m.waitsForDHCP = false },
	},
	{
		"DHCP@x",
		func(s portUnderTest) portUnderTest { return s.report(completeReport(DHCP, "x")) },
		func(*portModel) {},
	},
	{
		"unknown@1",
		func(s portUnderTest) portUnderTest { return s.report(completeReport("unknown", "1")) },
		func(*portModel) {},
	},
	{"change address", func(s portUnderTest) portUnderTest {
		return s.change(BlockTrigger{AddressesChanged: true}, func(p *Port) { p.MAC += "1" })
	}, func(m *portModel) { m.waitsForDHCP, m.dhcpSince = m.hasDHCP, m.clock }},
	{"remove DHCP", func(s portUnderTest) portUnderTest {
		s.pc.DHCPHosts = nil
		return s.write(s.Port.UpdateBlocks(s.pc, BlockTrigger{}, s.now()))
	}, func(m *portModel) { m.hasDHCP, m.waitsForDHCP = false, false }},
	{"tick", func(s portUnderTest) portUnderTest {
		s.clock++
		return s.write(s.Port.UpdateBlocks(s.pc, BlockTrigger{}, s.now()))
	}, func(m *portModel) { m.clock++ }},
}

// start returns a new port on the given host, and the portModel of that port.
func start(host string) (portUnderTest, portModel) {
	s := portUnderTest{
		pc: PortContext{DHCPHosts: []string{"n"}, HostAgents: []HostAgent{{Type: OVSAgent, Alive: true}},
			BlockPolicy: BlockPolicy{"": {Limit: blockLimit * time.Second, Fatal: true}}},
	}
	p := NewPort([16]byte{1}, PortChange{Host: &host, DeviceOwner: ptr("compute:x")})
	p.VIF, p.Revision = p.VIFTypeWith(s.pc.HostAgents), 1
	s.Port = p.UpdateBlocks(s.pc, BlockTrigger{BindingChanged: true, AddressesChanged: true, Revision: 1}, s.now()).
		UpdateStatus(s.now())
	return s, portModel{
		host:         host,
		adminUp:      true,
		firstBinding: true,
		hasDHCP:      true,
		waitsForDHCP: true,
	}
}

// mismatch describes a difference between the port and its model, or says that the explanation why the port
// is not ACTIVE is missing. mismatch returns an empty string if the port and the model agree.
func mismatch(s portUnderTest, m portModel) string {
	silent := s.StatusView().Reason == "" && len(s.StatusView().Waiting) == 0
	switch {
	case s.Status != m.status():
		return "the port is " + s.Status + ", the model " + m.status()
	case (s.Status == Active) != silent:
		return "it is " + s.Status + ": " + s.StatusView().Sentence()
	case s.Status == Active && slices.ContainsFunc(s.Blocks, func(Block) bool { return true }):
		return "it is ACTIVE and blocked"
	default:
		return ""
	}
}

// The test tries all sequences of four inputs; with -short, all sequences of three inputs.
func TestPort_StatusEqualsModelAfterEveryShortSequence(t *testing.T) {
	t.Parallel()
	depth := 4
	if testing.Short() {
		depth = 3
	}
	checked := 0
	var explore func(s portUnderTest, m portModel, path []string)
	explore = func(s portUnderTest, m portModel, path []string) {
		checked++
		if wrong := mismatch(s, m); wrong != "" {
			t.Fatalf("port after the inputs %s differs from its model: %s; blocks of the port: %+v",
				strings.Join(path, ", "), wrong, s.Blocks)
		}
		if len(path) == depth {
			return
		}
		for _, in := range inputs {
			next := m
			in.model(&next)
			next.settle()
			explore(in.rules(s), next, append(path, in.name))
		}
	}
	for _, host := range []string{"", "1"} {
		s, m := start(host)
		explore(s, m, nil)
	}
	t.Logf("number of port states that the test has checked: %d", checked)
}

// The test tries random sequences of up to 60 inputs.
func TestPort_StatusEqualsModelAfterLongSequences(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, m := start(rapid.SampledFrom([]string{"", "1"}).Draw(t, "host"))
		var path []string
		for _, in := range rapid.SliceOfN(rapid.SampledFrom(inputs), 5, 60).Draw(t, "inputs") {
			path = append(path, in.name)
			s = in.rules(s)
			in.model(&m)
			m.settle()
			if wrong := mismatch(s, m); wrong != "" {
				t.Fatalf("port after the inputs %s differs from its model: %s; blocks of the port: %+v",
					strings.Join(path, ", "), wrong, s.Blocks)
			}
		}
	})
}

// settle resets the field `building` once the status is not BUILD.
func (m *portModel) settle() { m.building = m.building && m.status() == Build }

func ptr[T any](v T) *T { return &v }
