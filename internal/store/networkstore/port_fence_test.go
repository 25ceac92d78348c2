package networkstore_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/networkstore"
	"berth/internal/store/storetest"
)

func at1(entity, event string, revision int64) network.Report {
	return network.Report{Entity: entity, Host: cmp1, Event: event, Revision: revision}
}

func TestPort_ReportsOnEarlierBindingAreIgnored(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	first := g.port(cmp1)
	g.settle(first.ID, dhcpOK)
	g.update(first.ID, network.PortChange{Host: ptr(cmp2)})
	again := g.update(first.ID, network.PortChange{Host: ptr(cmp1)})

	late := g.settle(first.ID, at1(network.L2, "", first.Revision), at1(network.L2, network.ReportLost, first.Revision), at1(network.L2, "", again.Revision+1))
	if late.Status != network.Down || late.IgnoredReports != 3 || len(late.Waiting) != 1 {
		t.Errorf("reports on the first binding, and on one that nobody has seen: %+v", late)
	}
	renamed := g.update(first.ID, network.PortChange{Name: ptr("web-2")})
	if s := g.settle(first.ID, at1(network.L2, "", renamed.Revision)); s.Status != network.Active {
		t.Errorf("a report on the present binding: %+v", s)
	}
	if s := g.settle(first.ID, at1(network.L2, network.ReportLost, again.Revision-1)); s.Status != network.Active {
		t.Errorf("a late loss of an earlier binding: %+v", s)
	}
}

func TestPort_UnpluggedIsDownUntilWiredAgain(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	p := g.port(cmp1)
	g.settle(p.ID, l2on1, dhcpOK)

	s := g.settle(p.ID, at1(network.L2, network.ReportLost, 0), at1(network.L2, network.ReportLost, 0), network.Report{Entity: network.L2, Host: cmp2, Event: network.ReportLost})
	if s.Status != network.Down || s.IgnoredReports != 2 || !strings.Contains(s.Sentence(), "reported it unplugged") {
		t.Fatalf("unplugged: %+v", s)
	}
	if s = g.settle(p.ID, dhcpOK); s.Status != network.Down || s.IgnoredReports != 3 {
		t.Errorf("a DHCP agent that repeats itself promotes no port: %+v", s)
	}
	s = g.settle(p.ID, l2on1)
	if d := cmp.Diff([]string{"network-vif-plugged", "network-vif-unplugged", "network-vif-plugged"}, events(s)); d != "" || s.Status != network.Active {
		t.Errorf("plugged in again: %+v %s", s, d)
	}
}

func TestPort_ReportsInOneBatchKeepOrder(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	p := g.port(cmp1)
	g.settle(p.ID, l2on1, dhcpOK)
	if s := g.settle(p.ID, at1(network.L2, network.ReportLost, 0), l2on1); s.Status != network.Active || s.IgnoredReports != 0 {
		t.Errorf("down, up: %+v", s)
	}
	if s := g.settle(p.ID, l2on1, at1(network.L2, network.ReportLost, 0)); s.Status != network.Down || s.IgnoredReports != 1 {
		t.Errorf("up, down: %+v", s)
	}
}

func TestPort_BuildWhileAgentIsWiring(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	p := g.port(cmp1)
	begun := at1(network.L2, network.ReportBegun, 0)

	steps := []struct {
		report network.Report
		want   string
	}{
		{network.Report{Entity: network.L2, Host: cmp2, Event: network.ReportBegun}, network.Down},
		{begun, network.Build}, {begun, network.Build}, {dhcpOK, network.Build}, {l2on1, network.Active},
		{begun, network.Build}, {at1(network.L2, network.ReportLost, 0), network.Down}, {begun, network.Build}, {l2on1, network.Active},
	}
	for i, step := range steps {
		if s := g.settle(p.ID, step.report); s.Status != step.want || (s.Status == network.Active) != (len(s.Waiting) == 0) {
			t.Errorf("step %d, %+v: %+v", i, step.report, s)
		}
	}
	down := g.port(cmp1, func(c *network.PortChange) { c.AdminUp = ptr(false) })
	if s := g.settle(down.ID, begun); s.Status != network.Down {
		t.Errorf("administratively down: %+v", s)
	}
	router := g.port(cmp1, owner("network:router_interface"))
	for i, want := range []string{network.Active, network.Build, network.Active, network.Down, network.Active} {
		report := [][]network.Report{nil, {begun}, {l2on1}, {at1(network.L2, network.ReportLost, 0)}, {l2on1}}[i]
		if s := g.settle(router.ID, report...); s.Status != want {
			t.Errorf("a router's port, step %d: %+v", i, s)
		}
	}
}

func TestPort_ErrorAfterDeadlineOnlyIfFatal(t *testing.T) {
	t.Parallel()
	for name, fatal := range map[string]bool{"wait": false, "error": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			s := storetest.Open(t, url)
			s.Network = networkstore.New(s.DB, networkstore.Config{Policy: network.BlockPolicy{network.L2: {Limit: time.Hour, Fatal: fatal}}})
			g := ground{Store: s, t: t}
			g.heartbeat(network.OVSAgent, cmp1)
			g = g.laid("10.0.0.0/24")
			p := g.port(cmp1)
			early := g.settle(p.ID)
			if (early.NextDeadline != nil) != fatal || early.Waiting[0].Deadline == nil || early.Status != network.Down {
				t.Fatalf("in time: %+v", early)
			}
			storetest.Exec(t, url, `update block set since = since - interval '2 hours', deadline = deadline - interval '2 hours'`)

			late := g.settle(p.ID)
			want := map[bool]string{true: network.Errored, false: network.Down}[fatal]
			if late.Status != want || late.NextDeadline != nil || !strings.Contains(late.Sentence(), "due at") {
				t.Errorf("too late: %+v", late)
			}
			if fatal && (len(late.Events) != 1 || late.Events[0].Status != "failed") {
				t.Errorf("Nova is not told that it failed: %+v", late.Events)
			}
			if s := g.settle(p.ID, l2on1); s.Status != network.Active {
				t.Errorf("a late report: %+v", s)
			}
		})
	}
}

func TestPort_DistributedActiveOnAnyHost(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	p := g.port("", owner("network:router_interface_distributed"))
	say := func(host, event string) network.Report {
		return network.Report{Entity: network.L2, Host: host, Event: event}
	}
	if p.VIF != network.VIFDistributed || p.Status != network.Down || p.Reason() == "" {
		t.Fatalf("a new one: %+v", p)
	}
	for i, step := range []struct {
		report network.Report
		want   string
		counts bool
	}{
		{say(cmp1, ""), network.Down, false}, {say(cmp1, network.ReportBegun), network.Build, true}, {say(cmp2, network.ReportBegun), network.Build, true},
		{say(cmp1, ""), network.Active, true}, {say(cmp1, ""), network.Active, false}, {say(cmp2, ""), network.Active, true},
		{say(cmp1, network.ReportLost), network.Active, true}, {say(cmp2, network.ReportLost), network.Down, true}, {say(cmp2, network.ReportLost), network.Down, false},
	} {
		s := g.settle(p.ID, step.report)
		if s.Status != step.want || s.Accepted[0] != step.counts || (s.Status != network.Active) != (s.Reason != "") {
			t.Errorf("step %d, %+v: %+v", i, step.report, s)
		}
	}
}

func TestPort_DownAgentIsNamedAndNotBoundTo(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	g := ground{Store: s, t: t}
	g.heartbeat(network.OVSAgent, cmp1)
	g.heartbeat(network.DHCPAgent, net1)
	g = g.laid("10.0.0.0/24")
	waiting := g.port(cmp1)
	storetest.Exec(t, url, `update agent set heartbeat_at = heartbeat_at - interval '76 seconds'`)

	p := g.port(cmp1)
	if p.VIF != network.VIFFailed || !strings.Contains(p.Reason(), "no live "+network.OVSAgent) {
		t.Errorf("bound to a silent agent: %+v", p)
	}
	if n := strings.Count(g.settle(waiting.ID).Sentence(), "last heard of at"); n != 2 {
		t.Errorf("%s", g.settle(waiting.ID).Sentence())
	}
	if r := g.heartbeat(network.OVSAgent, cmp1); r != network.AgentRevived {
		t.Errorf("the agent is %s", r)
	}
	if after := g.look(p.ID); after.VIF != network.VIFOVS {
		t.Errorf("after the agent came back: %+v", after)
	}
	for _, up := range []bool{false, true, false} {
		for notes := storetest.ClaimNotes(t, g.Store); len(notes) > 0; notes = storetest.ClaimNotes(t, g.Store) {
			if err := g.Outbox.Settle(t.Context(), "", notes); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := g.Network.UpdateAgent(t.Context(), g.agent(network.DHCPAgent).ID, network.AgentChange{AdminUp: &up}); err != nil {
			t.Fatal(err)
		}
		if s := g.settle(waiting.ID); strings.Contains(s.Sentence(), "whose agent is disabled") == up {
			t.Errorf("enabled %t: %s", up, s.Sentence())
		}
		if notes := storetest.ClaimNotes(t, g.Store); !slices.ContainsFunc(notes, func(n contract.Note) bool { return n.ID == contract.PortID(waiting.ID.String()) }) {
			t.Errorf("enabled %t: its workflow goes on telling what it told: %+v", up, notes)
		}
	}
	if err := g.Network.DeleteAgent(t.Context(), g.agent(network.OVSAgent).ID); err != nil {
		t.Fatal(err)
	}
	g.heartbeat(network.NICSwitchAgent, cmp1) // which does not wire what Open vSwitch's was to
	if s := g.settle(waiting.ID); !strings.Contains(s.Sentence(), "L2 on cmp-1 since") || !strings.Contains(s.Sentence(), "no agent that can report is registered") {
		t.Errorf("%s", s.Sentence())
	}
}

func TestPort_ActiveWarnsOfDownAgent(t *testing.T) {
	t.Parallel()
	g, age := aged(t)
	g.heartbeat(network.OVSAgent, cmp1)
	g = g.laid("10.0.0.0/24")
	p, card := g.port(cmp1), g.port(cmp1, vnic("direct-physical"))
	g.settle(p.ID, l2on1)
	says := func(p network.Port, want string) {
		t.Helper()
		at, seen := g.look(p.ID).StatusView(), g.settle(p.ID)
		if at.Sentence() != seen.Sentence() || !strings.HasPrefix(at.Sentence(), network.Active+want) || want == "" && at.Sentence() != network.Active || at.Reason != "" {
			t.Errorf("%q and %q, want %q", at.Sentence(), seen.Sentence(), want)
		}
	}
	says(p, "")

	age()
	g.heartbeat(network.NICSwitchAgent, cmp1)
	says(p, ": its agent on cmp-1 was last heard of at ")
	says(card, "")

	g.heartbeat(network.OVSAgent, cmp1)
	says(p, "")

	if err := g.Network.DeleteAgent(t.Context(), g.agent(network.OVSAgent).ID); err != nil {
		t.Fatal(err)
	}
	says(p, ": the agent on cmp-1 is no longer registered, so the status may be out of date")
}

func TestPort_DownDHCPAgentIsNamed(t *testing.T) {
	t.Parallel()
	g, age := aged(t)
	g.says(net1, `{}`)
	g = g.laid("10.0.0.0/24")
	g.says("net-2", `{"notifies_port_ready": false}`)
	if err := g.Network.ScheduleNetwork(t.Context(), g.dhcp("net-2"), g.network.ID); err != nil {
		t.Fatal(err)
	}
	p := g.port("")
	age()
	g.says("net-2", `{"notifies_port_ready": false}`)

	b := g.look(p.ID).Blocks
	if len(b) != 1 || b[0].SilentSince == nil || !slices.Equal(b[0].AgentHosts, []string{net1}) {
		t.Errorf("%+v", b)
	}
}

func TestPort_NoDHCPBlockForNonReportingAgents(t *testing.T) {
	t.Parallel()
	g := ground{Store: storetest.New(t), t: t}
	g.heartbeat(network.OVSAgent, cmp1)
	g.says(net1, `{}`)
	g = g.laid("10.0.0.0/24")
	waiting, moved := g.port(cmp1), g.port(cmp1)
	g.settle(waiting.ID, l2on1)
	for _, kind := range []string{`{}`, `{"notifies_port_ready": true}`, `{"notifies_port_ready": null}`, `{"notifies_port_ready": "false"}`, `{"notifies_port_ready": [0]}`} {
		g.says(net1, kind)
		g.is(kind, waiting, network.Down, "DHCP@")
		g.is("a new one, "+kind, g.port(cmp1), network.Down, "DHCP@", "L2@cmp-1")
	}

	g.says(net1, `{"notifies_port_ready": false}`)

	g.is("its agent will never tell", waiting, network.Active)
	g.is("its agent will never tell", moved, network.Down, "L2@cmp-1")
	g.is("a new one", g.port(cmp1), network.Down, "L2@cmp-1")
}

func TestPort_NoDHCPBlockAfterTakeoverByNonReportingAgent(t *testing.T) {
	t.Parallel()
	g, age := aged(t)
	g.says(net1, `{}`)
	g = g.laid("10.0.0.0/24")
	g.heartbeat(network.OVSAgent, cmp1)
	p := g.port(cmp1)
	g.settle(p.ID, l2on1)
	age()
	g.is("its agent is silent", p, network.Down, "DHCP@")

	g.says("net-2", `{"notifies_port_ready": false}`)

	g.hostedBy("the one that lives", "net-2")
	g.is("nobody will tell", p, network.Active)
}

// says is a heartbeat of the DHCP agent on that host with these configurations.
func (g ground) says(host, configurations string) {
	g.t.Helper()
	if _, err := g.Network.ReportState(g.t.Context(), network.AgentState{Type: network.DHCPAgent, Host: host, Configurations: json.RawMessage(configurations)}); err != nil {
		g.t.Fatal(err)
	}
}

func TestNovaEvents_NetworkChangedIsMerged(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	p := g.port(cmp1)
	for _, name := range []string{"a", "b", "b"} {
		g.update(p.ID, network.PortChange{Name: &name})
	}
	first := g.settle(p.ID).Events
	if len(first) != 1 || first[0].Name != "network-changed" || first[0].Status != "" {
		t.Fatalf("%+v", first)
	}
	g.update(p.ID, network.PortChange{Name: ptr("c")}) // while the event is on its way
	if err := g.Network.DeleteNovaEvents(t.Context(), []int64{first[0].ID}); err != nil {
		t.Fatal(err)
	}
	if left := g.settle(p.ID).Events; len(left) != 1 || left[0].ID <= first[0].ID {
		t.Errorf("Nova never learns of the last change: %+v", left)
	}
	other := g.port("", owner("network:dhcp"))
	g.update(other.ID, network.PortChange{Name: ptr("x")})
	if s := g.settle(other.ID); len(s.Events) != 0 {
		t.Errorf("no server's port: %+v", s.Events)
	}
}
