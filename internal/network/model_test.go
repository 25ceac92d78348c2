package network

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is a port as a careful reader of the contract would keep it in their head.
type model struct {
	host     string
	admin    bool
	first    bool   // it has not been bound anew since the test began
	wiring   string // what the L2 agent of its host said last: "", begun, lost or done
	building bool   // the last word on its status was that an agent is at work
	served   bool   // its network has DHCP
	waiting  bool   // for DHCP
	clock    int
	wired    int // since when it waits for L2
	ready    int // since when it waits for DHCP
}

// patience of the model, in ticks of its clock.
const patience = 2

func (m model) status() string {
	owed := m.host != "" && m.wiring != Complete
	switch {
	case m.host == "" || !m.admin:
		return Down
	case !owed && !m.waiting:
		return Active
	case owed && m.clock-m.wired >= patience || m.waiting && m.clock-m.ready >= patience:
		return Errored
	case m.building:
		return Build
	default:
		return Down
	}
}

// says is what the model makes of a word of the L2 agent of its host.
func (m *model) says(word string) {
	if m.host == "" || word == Complete && m.wiring == Complete || word == Begun && !m.admin {
		return
	}
	if m.wiring == Complete {
		m.wired = m.clock
	}
	m.wiring = word
	m.building = word == Begun || word == Complete && m.building
}

func (m *model) bind(host string) {
	if m.host == host {
		return
	}
	m.host, m.first, m.wiring, m.building, m.wired = host, false, "", false, m.clock
}

// subject is the port under the rules, kept as the store keeps it.
type subject struct {
	Port
	around Surroundings
	clock  int
}

func (s subject) now() time.Time { return time.Unix(int64(s.clock), 0) }

// write is the subject with the port that it has become; what a client sees has a new revision.
func (s subject) write(p Port) subject {
	p = p.Judge(s.now())
	if p.Status != s.Status || p.Host != s.Host || p.VIF != s.VIF || p.AdminUp != s.AdminUp || p.MAC != s.MAC {
		p.Revision++
	}
	s.Port = p
	return s
}

func (s subject) hear(r Report) subject {
	p, _ := s.Port.Arm(s.around, Cause{}, s.now()).Hear(s.around, []Report{r}, s.now())
	return s.write(p)
}

func (s subject) change(c Cause, change func(*Port)) subject {
	p := s.Port
	change(&p)
	c.Revision = s.Revision + 1
	c.Bound = p.Host != s.Host
	p.VIF = p.Bind(s.around.Agents)
	return s.write(p.Arm(s.around, c, s.now()))
}

// input is one thing that happens to a port, to the rules and to the model.
type input struct {
	name  string
	rules func(subject) subject
	model func(*model)
}

// word is what an L2 agent of the host reports; the model hears it if the port is there.
func word(host, event string) input {
	return input{"L2@" + host + " " + event,
		func(s subject) subject { return s.hear(Report{Entity: L2, Host: host, Event: event}) },
		func(m *model) {
			if m.host == host {
				m.says(event)
			}
		}}
}

// old is the same of an agent that acted on the first revision.
func old(host, event string) input {
	return input{"old L2@" + host + " " + event,
		func(s subject) subject {
			return s.hear(Report{Entity: L2, Host: host, Event: event, Revision: 1})
		},
		func(m *model) {
			if m.host == host && m.first {
				m.says(event)
			}
		}}
}

func moved(host string) input {
	return input{"bind " + host,
		func(s subject) subject { return s.change(Cause{}, func(p *Port) { p.Host = host }) },
		func(m *model) { m.bind(host) }}
}

func admin(up bool) input {
	return input{map[bool]string{true: "up", false: "down"}[up],
		func(s subject) subject {
			return s.change(Cause{Raised: up && !s.AdminUp}, func(p *Port) { p.AdminUp = up })
		},
		func(m *model) {
			if up && !m.admin && m.wiring != Complete {
				m.wired = m.clock // nobody could wire it until now
			}
			m.admin = up
		}}
}

var inputs = []input{
	word("1", Complete), word("2", Complete), word("1", Lost), word("1", Begun), word("2", Begun),
	old("1", Complete), old("1", Lost),
	moved("1"), moved("2"), moved(""), admin(false), admin(true),
	{"L2@1 tomorrow", func(s subject) subject { return s.hear(Report{Entity: L2, Host: "1", Revision: s.Revision + 1}) }, func(*model) {}},
	{"DHCP@n", func(s subject) subject { return s.hear(done(DHCP, "n")) }, func(m *model) { m.waiting = false }},
	{"DHCP@x", func(s subject) subject { return s.hear(done(DHCP, "x")) }, func(*model) {}},
	{"moon@1", func(s subject) subject { return s.hear(done("moon", "1")) }, func(*model) {}},
	{"readdress", func(s subject) subject {
		return s.change(Cause{Addressed: true}, func(p *Port) { p.MAC += "1" })
	}, func(m *model) { m.waiting, m.ready = m.served, m.clock }},
	{"unschedule", func(s subject) subject {
		s.around.DHCPHosts = nil
		return s.write(s.Port.Arm(s.around, Cause{}, s.now()))
	}, func(m *model) { m.served, m.waiting = false, false }},
	{"tick", func(s subject) subject {
		s.clock++
		return s.write(s.Port.Arm(s.around, Cause{}, s.now()))
	}, func(m *model) { m.clock++ }},
}

// start is a new port on that host, and its model.
func start(host string) (subject, model) {
	s := subject{around: Surroundings{DHCPHosts: []string{"n"}, Agents: []HostAgent{{Type: OVSAgent, Alive: true}},
		Policy: Policy{"": {Limit: patience * time.Second, Fatal: true}}}}
	p := NewPort([16]byte{1}, PortChange{Host: &host, DeviceOwner: ptr("compute:x")})
	p.VIF, p.Revision = p.Bind(s.around.Agents), 1
	s.Port = p.Arm(s.around, Cause{Bound: true, Addressed: true, Revision: 1}, s.now()).Judge(s.now())
	return s, model{host: host, admin: true, first: true, served: true, waiting: true}
}

// agree tells what is wrong with the port if the model is right, and whether it says why it is not ACTIVE.
func agree(s subject, m model) string {
	silent := s.Standing().Reason == "" && len(s.Standing().Waiting) == 0
	switch {
	case s.Status != m.status():
		return "it is " + s.Status + ", the model says " + m.status()
	case (s.Status == Active) != silent:
		return "it is " + s.Status + ": " + s.Standing().Sentence()
	case s.Status == Active && slices.ContainsFunc(s.Blocks, func(Block) bool { return true }):
		return "it is ACTIVE and blocked"
	default:
		return ""
	}
}

func TestPortIsWhatTheModelSays(t *testing.T) {
	t.Parallel()
	depth := 4
	if testing.Short() {
		depth = 3
	}
	checked := 0
	var explore func(s subject, m model, path []string)
	explore = func(s subject, m model, path []string) {
		checked++
		if wrong := agree(s, m); wrong != "" {
			t.Fatalf("after %s %s; blocks %+v", strings.Join(path, ", "), wrong, s.Blocks)
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
	t.Logf("%d states", checked)
}

func TestPortIsWhatTheModelSaysAfterALongLife(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, m := start(rapid.SampledFrom([]string{"", "1"}).Draw(t, "host"))
		var path []string
		for _, in := range rapid.SliceOfN(rapid.SampledFrom(inputs), 5, 60).Draw(t, "inputs") {
			path = append(path, in.name)
			s = in.rules(s)
			in.model(&m)
			m.settle()
			if wrong := agree(s, m); wrong != "" {
				t.Fatalf("after %s %s; blocks %+v", strings.Join(path, ", "), wrong, s.Blocks)
			}
		}
	})
}

// settle forgets that an agent was at work, once the port has been anything but BUILD.
func (m *model) settle() { m.building = m.building && m.status() == Build }

func ptr[T any](v T) *T { return &v }
