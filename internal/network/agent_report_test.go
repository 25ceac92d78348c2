package network

import (
	"slices"
	"testing"
	"time"
)

func TestPort_OrderAndGroupingOfReportsDoNotMatter(t *testing.T) {
	t.Parallel()
	pc := PortContext{DHCPHosts: []string{"n"}}
	now := time.Unix(0, 0)
	p := NewPort([16]byte{1}, PortChange{Host: ptr("1"), DeviceOwner: ptr("compute:x")})
	p.VIF = VIFOVS
	p = p.UpdateBlocks(pc, BlockTrigger{BindingChanged: true, AddressesChanged: true}, now)
	reports := []Report{completeReport(L2, "1"), completeReport(L2, "2"), completeReport(DHCP, "n"), completeReport(DHCP, "n"), completeReport(L2, "1")}
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
				t.Fatalf("apply %v in two groups, the first of %d reports: %d accepted and status %s, want 2 and ACTIVE", order, cut, accepted, second.UpdateStatus(now).Status)
			}
		}
	})
	if len(p.Blocks) != 2 {
		t.Errorf("apply reports to a port: the port before the reports now has the blocks %v, want its two blocks unchanged", p.Blocks)
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
	p, accepted := p.ApplyReports(PortContext{}, []Report{completeReport(DHCP, ""), completeReport("storage", "any"), completeReport("audit", "g"), completeReport("audit", "h")}, time.Time{})
	if !slices.Equal(accepted, []bool{true, true, false, true}) || len(p.Blocks) != 0 {
		t.Errorf("accepted reports %v, remaining blocks %v; want all but the third accepted and no block", accepted, p.Blocks)
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
	details := Report{Entity: L2, Host: "a", Event: ReportBegun, RPC: true}
	up := Report{Entity: L2, Host: "a", Event: ReportComplete, RPC: true}
	for vif, fenced := range map[string]bool{VIFHardware: true, VIFMacvtap: true, VIFOVS: false} {
		p := NewPort([16]byte{1}, PortChange{DeviceOwner: ptr("compute:x")})
		p.VIF, p.Revision = vif, 9
		first, _ := bind(p, "a", 1).ApplyReports(PortContext{}, []Report{details}, now)
		back := bind(bind(first, "b", 2), "a", 3)

		if _, accepted := first.ApplyReports(PortContext{}, []Report{up}, now); !accepted[0] {
			t.Errorf("%s: report after the request for the details: got ignored, want accepted", vif)
		}
		if _, accepted := back.ApplyReports(PortContext{}, []Report{up}, now); accepted[0] == fenced || back.NeedsDetailsAgain(up) != fenced {
			t.Errorf("%s: report about the first binding to the host: got accepted %t, want %t", vif, accepted[0], !fenced)
		}
		if _, accepted := back.ApplyReports(PortContext{}, []Report{details, up}, now); !accepted[1] {
			t.Errorf("%s: report after a new request for the details: got ignored, want accepted", vif)
		}
		named := up
		named.RPC, named.Revision = false, 3
		if _, accepted := back.ApplyReports(PortContext{}, []Report{named}, now); !accepted[0] {
			t.Errorf("%s: report that names the revision of the present binding: got ignored, want accepted", vif)
		}
	}
}
