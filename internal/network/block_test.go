package network

import (
	"slices"
	"testing"
	"time"
)

func TestOrderAndGroupingOfReportsDoNotMatter(t *testing.T) {
	t.Parallel()
	around := Surroundings{DHCPHosts: []string{"n"}}
	now := time.Unix(0, 0)
	p := NewPort([16]byte{1}, PortChange{Host: ptr("1"), DeviceOwner: ptr("compute:x")})
	p.VIF = VIFOVS
	p = p.Arm(around, Cause{Bound: true, Addressed: true}, now)
	reports := []Report{done(L2, "1"), done(L2, "2"), done(DHCP, "n"), done(DHCP, "n"), done(L2, "1")}
	permute(reports, func(order []Report) {
		for cut := range len(order) + 1 {
			first, a := p.Hear(around, order[:cut], now)
			second, b := first.Hear(around, order[cut:], now)
			accepted := 0
			for _, ok := range slices.Concat(a, b) {
				if ok {
					accepted++
				}
			}
			if accepted != 2 || second.Judge(now).Status != Active {
				t.Fatalf("%v cut at %d: accepted %d, %s", order, cut, accepted, second.Judge(now).Status)
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
	p, accepted := p.Hear(Surroundings{}, []Report{done(DHCP, ""), done("storage", "any"), done("audit", "g"), done("audit", "h")}, time.Time{})
	if !slices.Equal(accepted, []bool{true, true, false, true}) || len(p.Blocks) != 0 {
		t.Errorf("accepted %v, left %v", accepted, p.Blocks)
	}
}

func done(entity, host string) Report { return Report{Entity: entity, Host: host} }

func TestOnlyServersPortsTellNovaAndOnlyOfSomeTransitions(t *testing.T) {
	t.Parallel()
	const server = "6c2a1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b11"
	want := map[[2]string]string{
		{Down, Active}: "network-vif-plugged completed", {Build, Active}: "network-vif-plugged completed",
		{Down, Errored}: "network-vif-plugged failed", {Build, Errored}: "network-vif-plugged failed",
		{Active, Down}: "network-vif-unplugged completed",
	}
	statuses := []string{Active, Down, Build, Errored}
	for _, from := range statuses {
		for _, to := range statuses {
			e, _ := Port{DeviceOwner: "compute:nova", DeviceID: server}.NovaEventFor(from, to)
			if got := e.Name + " " + e.Status; got != want[[2]string{from, to}] && (got != " " || want[[2]string{from, to}] != "") {
				t.Errorf("%s to %s: %q", from, to, got)
			}
			for _, p := range []Port{{DeviceOwner: "compute:nova", DeviceID: "lb-1"}, {DeviceOwner: "network:dhcp", DeviceID: server}, {DeviceID: server}} {
				if e, ok := p.NovaEventFor(from, to); ok {
					t.Errorf("%s of %s, %s to %s: %+v", p.DeviceOwner, p.DeviceID, from, to, e)
				}
			}
		}
	}
}

func TestBindingNeedsALiveAgentThatCanWireTheInterface(t *testing.T) {
	t.Parallel()
	ovs, smart, dead := HostAgent{Type: OVSAgent, Alive: true}, HostAgent{Type: OVSAgent, Alive: true, SmartNIC: true}, HostAgent{Type: OVSAgent}
	nic, macvtap := HostAgent{Type: NICSwitchAgent, Alive: true}, HostAgent{Type: MacvtapAgent, Alive: true}
	switchdev := `{"capabilities":["switchdev"]}`
	for _, tc := range []struct {
		host, vnic, profile string
		agents              []HostAgent
		want                string
	}{
		{"", "normal", `{}`, []HostAgent{ovs}, VIFUnbound},
		{"1", "normal", `{}`, []HostAgent{ovs}, VIFOVS},
		{"1", "normal", `{}`, []HostAgent{macvtap, ovs}, VIFOVS},
		{"1", "normal", `{}`, []HostAgent{dead, macvtap}, VIFMacvtap},
		{"1", "normal", `{}`, []HostAgent{dead}, VIFFailed},
		{"1", "normal", `{}`, []HostAgent{nic}, VIFFailed},
		{"1", "normal", `{}`, nil, VIFFailed},
		{"1", "vdpa", `{}`, []HostAgent{ovs}, VIFOVS},
		{"1", "direct", `{}`, []HostAgent{ovs}, VIFFailed},
		{"1", "direct", `{}`, []HostAgent{ovs, nic}, VIFHardware},
		{"1", "direct", switchdev, []HostAgent{ovs, nic}, VIFOVS},
		{"1", "direct", switchdev, []HostAgent{nic}, VIFFailed},
		{"1", "direct", `{"capabilities":"switchdev"}`, []HostAgent{ovs}, VIFFailed},
		{"1", "macvtap", `{}`, []HostAgent{nic}, VIFHardware},
		{"1", "smart-nic", `{}`, []HostAgent{ovs}, VIFFailed},
		{"1", "smart-nic", `{}`, []HostAgent{smart}, VIFOVS},
		{"1", "direct-physical", `{}`, nil, VIFPhysical},
		{"1", "baremetal", `{}`, []HostAgent{ovs, nic, macvtap}, VIFFailed},
	} {
		p := Port{Host: tc.host, VNIC: tc.vnic, Profile: []byte(tc.profile), AdminUp: true}
		if p.VIF = p.Bind(tc.agents); p.VIF != tc.want || p.Bound() != (p.Reason() == "") {
			t.Errorf("%+v: got %s, %s", tc, p.VIF, p.Reason())
		}
	}
}

func TestWhereNobodyHasToWireNobodyIsWaitedFor(t *testing.T) {
	t.Parallel()
	p := NewPort([16]byte{1}, PortChange{Host: ptr("1"), DeviceOwner: ptr("compute:x"), VNIC: ptr("direct-physical")})
	around := Surroundings{DHCPHosts: []string{"n"}}
	p.VIF = p.Bind(nil)
	p = p.Arm(around, Cause{Bound: true, Addressed: true}, time.Time{}).Judge(time.Time{})
	if p.Status != Active {
		t.Errorf("%s, waiting for %v", p.Status, p.Blocks)
	}
}
