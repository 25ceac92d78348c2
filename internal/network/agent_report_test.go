package network

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPort_OrderAndGroupingOfReportsDoNotMatter(t *testing.T) {
	t.Parallel()
	pc := PortContext{DHCPHosts: []string{"n"}}
	now := time.Unix(0, 0)
	p := NewPort([16]byte{1}, PortChange{Host: ptr("1"), DeviceOwner: ptr("compute:x")})
	p.VIF = VIFOVS
	p = p.UpdateBlocks(pc, BlockTrigger{BindingChanged: true, AddressesChanged: true}, now)
	reports := []Report{
		completeReport(L2, "1"),
		completeReport(L2, "2"),
		completeReport(DHCP, "n"),
		completeReport(DHCP, "n"),
		completeReport(L2, "1"),
	}
	permute(reports, func(order []Report) {
		for cut := range len(order) + 1 {
			first, a := p.ApplyReports(pc, order[:cut], now)
			second, b := first.ApplyReports(pc, order[cut:], now)
			accepted := 0
			for _, ok := range slices.Concat(a, b) {
				if ok {
					accepted++
				}
			}
			if accepted != 2 || second.UpdateStatus(now).Status != Active {
				t.Fatalf(
					"apply %v in two groups, the first of %d reports: %d accepted and status %s, want 2 and ACTIVE",
					order, cut, accepted, second.UpdateStatus(now).Status,
				)
			}
		}
	})
	if len(p.Blocks) != 2 {
		t.Errorf(
			"apply reports to a port: the port before the reports now has the blocks %v, want its two blocks unchanged",
			p.Blocks,
		)
	}
}

// permute calls `visit` with each permutation of `v`.
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

func TestPort_AcceptsDHCPReportWithoutHostAndReportsOfUnknownEntities(t *testing.T) {
	t.Parallel()
	p := Port{Blocks: []Block{{Entity: DHCP}, {Entity: "storage"}, {Entity: "audit", Host: "h"}}}
	p, accepted := p.ApplyReports(PortContext{}, []Report{
		completeReport(DHCP, ""),
		completeReport("storage", "any"),
		completeReport("audit", "g"),
		completeReport("audit", "h"),
	}, time.Time{})
	if !slices.Equal(accepted, []bool{true, true, false, true}) || len(p.Blocks) != 0 {
		t.Errorf(
			"accepted reports %v, remaining blocks %v; want all but the third accepted and no block",
			accepted,
			p.Blocks,
		)
	}
}

func TestApplyReports_ProvenHostCountsOnlyForWhatWaitsForIt(t *testing.T) {
	t.Parallel()
	p := NewPort([16]byte{1}, PortChange{Host: ptr("a"), DeviceOwner: ptr("compute:x")})
	p.VIF = VIFOVS
	p.Blocks = []Block{{Entity: L2, Host: "a"}, {Entity: DHCP}, {Entity: "any"}, {Entity: "own", Host: "a"}}
	pc := PortContext{DHCPHosts: []string{"n"}}
	for _, c := range []struct {
		entity, host, event string
		want                bool
	}{
		{L2, "b", ReportComplete, false}, {L2, "b", ReportBegun, false}, {L2, "b", ReportLost, false}, {L2, "a", ReportComplete, true},
		{DHCP, "a", ReportComplete, false}, {DHCP, "", ReportComplete, false}, {DHCP, "n", ReportComplete, true},
		{"any", "a", ReportComplete, false}, {"any", "a", ReportUnblock, false}, {"new", "a", ReportBlock, false},
		{"own", "b", ReportComplete, false}, {"own", "a", ReportUnblock, false}, {"own", "a", ReportComplete, true},
	} {
		_, accepted := p.ApplyReports(pc, []Report{{
			Entity:   c.entity,
			Host:     c.host,
			Event:    c.event,
			HostOnly: true,
		}}, time.Time{})
		if accepted[0] != c.want {
			t.Errorf("report %q of entity %s by the proven host %q: accepted %v, want %v",
				c.event, c.entity, c.host, accepted[0], c.want)
		}
	}
}

func completeReport(entity, host string) Report { return Report{Entity: entity, Host: host} }

func TestApplyReports_RPCReportCountsOnlyForTheBindingWhoseDetailsTheHostHas(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	bind := func(p Port, host string, revision int64) Port {
		p.Host = host
		return p.UpdateBlocks(PortContext{}, BlockTrigger{BindingChanged: true, Revision: revision}, now)
	}
	details := Report{
		Entity: L2,
		Host:   "a",
		Event:  ReportBegun,
		RPC:    true,
	}
	up := Report{
		Entity: L2,
		Host:   "a",
		Event:  ReportComplete,
		RPC:    true,
	}
	for vif, fenced := range map[string]bool{VIFHardware: true, VIFMacvtap: true, VIFOVS: false} {
		p := NewPort([16]byte{1}, PortChange{DeviceOwner: ptr("compute:x")})
		p.VIF, p.Revision = vif, 9
		first, _ := bind(p, "a", 1).ApplyReports(PortContext{}, []Report{details}, now)
		back := bind(bind(first, "b", 2), "a", 3)

		if _, accepted := first.ApplyReports(PortContext{}, []Report{up}, now); !accepted[0] {
			t.Errorf("%s: report after the request for the details: got ignored, want accepted", vif)
		}
		if _, accepted := back.ApplyReports(PortContext{}, []Report{up}, now); accepted[0] == fenced ||
			back.NeedsDetailsAgain(up) != fenced {
			t.Errorf("%s: report about the first binding to the host: got accepted %t, want %t",
				vif, accepted[0], !fenced)
		}
		if _, accepted := back.ApplyReports(PortContext{}, []Report{details, up}, now); !accepted[1] {
			t.Errorf("%s: report after a new request for the details: got ignored, want accepted", vif)
		}
		named := up
		named.RPC, named.Revision = false, 3
		if _, accepted := back.ApplyReports(PortContext{}, []Report{named}, now); !accepted[0] {
			t.Errorf(
				"%s: report that names the revision of the present binding: got ignored, want accepted",
				vif,
			)
		}
	}
}

// A block with an owner keeps a port from becoming ACTIVE until its entity reports from the block's host, or
// until the block is removed.
func TestPort_WaitsForAnyEntityThatAServiceAdds(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0).UTC()
	pc := PortContext{BlockPolicy: BlockPolicy{"": {Limit: time.Hour}}}
	p := NewPort([16]byte{1}, PortChange{Host: ptr("cmp-1"), DeviceOwner: ptr("compute:x")})
	p.VIF = VIFOVS
	block := Report{
		Entity:         "firewall",
		Host:           "fw-1",
		Event:          ReportBlock,
		Owner:          "security team",
		TimeoutSeconds: 60,
		Fatal:          true,
	}
	deadline := now.Add(time.Minute)
	apply := func(r Report) (accepted bool) {
		t.Helper()
		var all []bool
		p, all = p.ApplyReports(pc, []Report{r}, now)
		p = p.UpdateBlocks(pc, BlockTrigger{}, now).UpdateStatus(now)
		return all[0]
	}

	for _, r := range []Report{
		{Entity: DHCP, Event: ReportBlock}, {Entity: L2, Host: "cmp-1", Event: ReportBlock}, {Event: ReportBlock}, {Entity: "firewall", Event: ReportUnblock},
		{Entity: "fire\x00wall", Event: ReportBlock}, {Entity: strings.Repeat("e", 49), Event: ReportBlock}, {Entity: " firewall", Event: ReportBlock},
		{Entity: "firewall", Host: "\x00", Event: ReportBlock}, {Entity: "firewall", Host: strings.Repeat("h", 256), Event: ReportBlock},
		{Entity: "firewall", Owner: "\xff", Event: ReportBlock}, {Entity: "firewall", Event: ReportBlock, TimeoutSeconds: -1},
		{Entity: "firewall", Event: ReportBlock, TimeoutSeconds: 1 << 62},
	} {
		if apply(r) {
			t.Errorf("apply %+v: the report is accepted, want it ignored", r)
		}
	}
	if !apply(block) || apply(block) {
		t.Error("apply the same block twice: want only the first one accepted")
	}
	want := []Block{
		{
			Entity:      "firewall",
			Host:        "fw-1",
			MinRevision: 1,
			Since:       now,
			Deadline:    &deadline,
			Fatal:       true,
			Owner:       "security team",
		},
	}
	if d := cmp.Diff(want, p.Blocks); d != "" || p.Status != Down {
		t.Errorf("the blocked port: got status %s, want DOWN; blocks (-want +got): %s", p.Status, d)
	}
	const wait = "it waits for firewall on fw-1 (added by security team) since 1970-01-01T00:00:00Z, " +
		"with the deadline 1970-01-01T00:01:00Z"
	if s := p.StatusView().Sentence(); !strings.Contains(s, wait) {
		t.Errorf(
			"the explanation of the blocked port: got %q, want the entity, its host, the owner and the deadline",
			s,
		)
	}
	if late := p.UpdateStatus(deadline); late.Status != Errored {
		t.Errorf("status after the deadline of a fatal block: got %s, want ERROR", late.Status)
	}
	if apply(Report{Entity: "firewall", Host: "fw-2"}) || !apply(Report{Entity: "firewall", Host: "fw-1"}) ||
		p.Status != Active {
		t.Errorf(
			"complete the block from another host, then from its own: got status %s, want only the second report accepted, and ACTIVE",
			p.Status,
		)
	}
	apply(block)
	if !apply(Report{Entity: "firewall", Event: ReportUnblock}) || p.Status != Active {
		t.Errorf("remove the block: got status %s, want ACTIVE", p.Status)
	}
	for i := range 2 * MaxBlocks {
		apply(Report{Entity: fmt.Sprint("service ", i), Event: ReportBlock})
	}
	if len(p.Blocks) != MaxBlocks {
		t.Errorf("add %d blocks: got %d, want at most %d", 2*MaxBlocks, len(p.Blocks), MaxBlocks)
	}
}
