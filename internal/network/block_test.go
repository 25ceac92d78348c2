package network

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// model is a port as a careful reader of the contract would keep it in their head.
type model struct {
	host       string
	admin      bool
	wired      bool // the bound host's agent has reported since the port was bound there
	announced  bool // a DHCP agent has reported since the addresses were new, or need not
	dhcpNeeded bool
}

func (m model) active() bool { return m.host != "" && m.admin && m.wired && m.announced }

// input is one thing that happens to a port, to the rules and to the model.
type input struct {
	name  string
	rules func(Port, *Surroundings, time.Time) Port
	model func(*model)
}

func reported(entity, host string) func(Port, *Surroundings, time.Time) Port {
	return func(p Port, around *Surroundings, _ time.Time) Port {
		p, _ = p.Complete(*around, []Report{{Entity: entity, Host: host}})
		return p
	}
}

func admin(up bool) func(Port, *Surroundings, time.Time) Port {
	return func(p Port, around *Surroundings, now time.Time) Port {
		p.AdminUp = up
		return p.Arm(*around, Cause{}, now)
	}
}

func bind(host string) func(Port, *Surroundings, time.Time) Port {
	return func(p Port, around *Surroundings, now time.Time) Port {
		c := Cause{Bound: p.Host != host}
		p.Host = host
		p.VIF = p.Bind(true)
		return p.Arm(*around, c, now)
	}
}

var inputs = []input{
	{"L2@1", reported(L2, "1"), func(m *model) { m.wired = m.wired || m.host == "1" }},
	{"L2@2", reported(L2, "2"), func(m *model) { m.wired = m.wired || m.host == "2" }},
	{"DHCP@n", reported(DHCP, "n"), func(m *model) { m.announced = true }},
	{"DHCP@x", reported(DHCP, "x"), func(*model) {}},
	{"moon@1", reported("moon", "1"), func(*model) {}},
	{"down", admin(false), func(m *model) { m.admin = false }},
	{"up", admin(true), func(m *model) { m.admin = true }},
	{"bind 1", bind("1"), func(m *model) { m.wired = m.wired && m.host == "1"; m.host = "1" }},
	{"bind 2", bind("2"), func(m *model) { m.wired = m.wired && m.host == "2"; m.host = "2" }},
	{"unbind", bind(""), func(m *model) { m.wired, m.host = false, "" }},
	{"readdress", func(p Port, around *Surroundings, now time.Time) Port {
		return p.Arm(*around, Cause{Addressed: true}, now)
	}, func(m *model) { m.announced = !m.dhcpNeeded }},
	{"unschedule", func(p Port, around *Surroundings, now time.Time) Port {
		around.DHCPHosts = nil
		return p.Arm(*around, Cause{}, now)
	}, func(m *model) { m.announced, m.dhcpNeeded = true, false }},
}

func TestPortIsActiveExactlyWhenTheModelSaysSo(t *testing.T) {
	t.Parallel()
	depth := 5
	if testing.Short() {
		depth = 4
	}
	now := time.Unix(0, 0)
	checked := 0
	var explore func(p Port, around Surroundings, m model, path []string)
	explore = func(p Port, around Surroundings, m model, path []string) {
		p = p.Judge()
		checked++
		if (p.Status == Active) != m.active() {
			t.Fatalf("after %s the port is %s, the model says active=%v; blocks %v", strings.Join(path, ", "), p.Status, m.active(), p.Blocks)
		}
		if p.Status == Active && (p.Reason() != "" || len(p.Blocks) != 0) || p.Status == Down && p.Reason() == "" && len(p.Blocks) == 0 {
			t.Fatalf("after %s the port is %s in silence", strings.Join(path, ", "), p.Status)
		}
		if len(path) == depth {
			return
		}
		for _, in := range inputs {
			a, next := around, m
			in.model(&next)
			explore(in.rules(p, &a, now), a, next, append(path, in.name))
		}
	}
	for _, host := range []string{"", "1"} {
		p := NewPort([16]byte{1}, PortChange{Host: &host, DeviceOwner: ptr("compute:x")})
		p.VIF = p.Bind(true)
		around := Surroundings{DHCPHosts: []string{"n"}}
		explore(p.Arm(around, Cause{Bound: true, Addressed: true}, now), around, model{host: host, admin: true, dhcpNeeded: true}, nil)
	}
	t.Logf("%d states", checked)
}

func ptr[T any](v T) *T { return &v }

func TestOrderAndGroupingOfReportsDoNotMatter(t *testing.T) {
	t.Parallel()
	around := Surroundings{DHCPHosts: []string{"n"}}
	now := time.Unix(0, 0)
	p := NewPort([16]byte{1}, PortChange{Host: ptr("1"), DeviceOwner: ptr("compute:x")})
	p.VIF = VIFOVS
	p = p.Arm(around, Cause{Bound: true, Addressed: true}, now)
	reports := []Report{{L2, "1"}, {L2, "2"}, {DHCP, "n"}, {DHCP, "n"}, {L2, "1"}}
	permute(reports, func(order []Report) {
		for cut := range len(order) + 1 {
			first, a := p.Complete(around, order[:cut])
			second, b := first.Complete(around, order[cut:])
			accepted := 0
			for _, ok := range slices.Concat(a, b) {
				if ok {
					accepted++
				}
			}
			if accepted != 2 || second.Judge().Status != Active {
				t.Fatalf("%v cut at %d: accepted %d, %s", order, cut, accepted, second.Judge().Status)
			}
		}
	})
	if len(p.Blocks) != 2 {
		t.Errorf("completing changed the port that was asked: %v", p.Blocks)
	}
}

func permute[T any](v []T, visit func([]T)) {
	var step func(int)
	step = func(n int) {
		if n == len(v) {
			visit(v)
			return
		}
		for i := n; i < len(v); i++ {
			v[n], v[i] = v[i], v[n]
			step(n + 1)
			v[n], v[i] = v[i], v[n]
		}
	}
	step(0)
}

func TestDHCPWithoutAHostCountsAndAnUnknownBlockWaitsForItsEntity(t *testing.T) {
	t.Parallel()
	p := Port{Blocks: []Block{{Entity: DHCP}, {Entity: "storage"}, {Entity: "audit", Host: "h"}}}
	p, accepted := p.Complete(Surroundings{}, []Report{{DHCP, ""}, {"storage", "any"}, {"audit", "g"}, {"audit", "h"}})
	if !slices.Equal(accepted, []bool{true, true, false, true}) || len(p.Blocks) != 0 {
		t.Errorf("accepted %v, left %v", accepted, p.Blocks)
	}
}

func TestOnlyServersPortsTellNova(t *testing.T) {
	t.Parallel()
	const server = "6c2a1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b11"
	for _, tc := range []struct{ owner, device, from, to, want string }{
		{"compute:nova", server, Down, Active, "network-vif-plugged"},
		{"compute:nova", server, Active, Down, "network-vif-unplugged"},
		{"compute:nova", server, Active, Active, ""},
		{"compute:nova", server, Down, Down, ""},
		{"compute:nova", "lb-1", Down, Active, ""},
		{"network:dhcp", server, Down, Active, ""},
		{"", server, Down, Active, ""},
	} {
		e, _ := Port{DeviceOwner: tc.owner, DeviceID: tc.device}.NovaEventFor(tc.from, tc.to)
		if e.Name != tc.want {
			t.Errorf("%+v: got %q", tc, e.Name)
		}
	}
}

func TestBindingNeedsAnAgentAndAnInterfaceThatItCanWire(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		host, vnic, profile string
		agent               bool
		want                string
	}{
		{"", "normal", `{}`, true, VIFUnbound},
		{"1", "normal", `{}`, true, VIFOVS},
		{"1", "normal", `{}`, false, VIFFailed},
		{"1", "direct", `{}`, true, VIFFailed},
		{"1", "direct", `{"capabilities":["switchdev"]}`, true, VIFOVS},
		{"1", "direct", `{"capabilities":"switchdev"}`, true, VIFFailed},
		{"1", "baremetal", `{}`, true, VIFFailed},
	} {
		p := Port{Host: tc.host, VNIC: tc.vnic, Profile: []byte(tc.profile)}
		if got := p.Bind(tc.agent); got != tc.want {
			t.Errorf("%+v: got %s", tc, got)
		}
	}
}
