package networkstore_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
)

func TestPort_ConcurrentLastReportsActivateOnce(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/16")
	for round := range 60 {
		p := fx.createPort(cmp1)
		reports := []network.Report{l2OnCmp1, dhcpReady, l2OnCmp1, dhcpReady}
		active := make([]bool, len(reports))

		runConcurrently(len(reports), func(i int) {
			var s network.StatusView
			var err error
			if i%2 == 0 {
				s, err = fx.Network.ReportPort(t.Context(), p.ID, reports[i:i+1])
			} else {
				s, err = fx.Network.UpdatePortStatus(t.Context(), p.ID, reports[i:i+1])
			}
			if err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			active[i] = s.Status == network.Active && s.Accepted[0]
		})

		last := 0
		for _, a := range active {
			if a {
				last++
			}
		}
		s := fx.updateStatus(p.ID)
		if last != 1 || s.Status != network.Active || s.IgnoredReports != 2 {
			t.Fatalf("round %d: %d reports were the last one, then %+v", round, last, s)
		}
		if d := cmp.Diff([]string{"network-vif-plugged"}, eventNames(s)); d != "" {
			t.Fatalf("round %d: %s", round, d)
		}
	}
}

func TestPort_ActiveOnlyAfterLastReport(t *testing.T) {
	t.Parallel()
	for _, order := range [][]network.Report{{l2OnCmp1, dhcpReady}, {dhcpReady, l2OnCmp1}} {
		fx := newFixture(t, "10.0.0.0/24")
		p := fx.createPort(cmp1)
		if d := cmp.Diff([]string{"DHCP@", "L2@cmp-1"}, blockNames(p.Blocks)); d != "" || p.Status != network.Down || p.Revision != 1 {
			t.Fatalf("a new port has status %s, revision %d, blocks %s", p.Status, p.Revision, d)
		}

		first := fx.updateStatus(p.ID, order[0])
		second := fx.updateStatus(p.ID, order[1])
		again := fx.updateStatus(p.ID, order...)

		if first.Status != network.Down || len(first.Waiting) != 1 || len(first.Events) != 0 {
			t.Errorf("after the first report: %+v", first)
		}
		if second.Status != network.Active || len(second.Waiting) != 0 {
			t.Errorf("after the second report: %+v", second)
		}
		if d := cmp.Diff([]string{"network-vif-plugged"}, eventNames(again)); d != "" {
			t.Error(d)
		}
		if after := fx.readPort(p.ID); after.Revision != 2 || again.IgnoredReports != 2 {
			t.Errorf("after duplicate reports: revision %d, want 2; %d ignored, want 2", after.Revision, again.IgnoredReports)
		}
		if err := fx.Network.DeleteNovaEvents(t.Context(), []int64{again.Events[0].ID}); err != nil {
			t.Fatal(err)
		}
		if s := fx.updateStatus(p.ID); len(s.Events) != 0 {
			t.Errorf("delivered events are still pending: %v", s.Events)
		}
	}
}

func TestPort_IgnoredReportsAreCounted(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort(cmp1)

	s := fx.updateStatus(p.ID, l2OnCmp2, network.Report{Entity: "L2"}, network.Report{Entity: network.DHCP, Host: cmp1}, network.Report{Entity: "moon", Host: cmp1})

	if s.IgnoredReports != 4 || len(s.Waiting) != 2 || s.Status != network.Down {
		t.Errorf("want four ignored reports and no other change, got %+v", s)
	}
	if d := cmp.Diff([]bool{false, false, false, false}, s.Accepted); d != "" {
		t.Error(d)
	}
	if after := fx.readPort(p.ID); after.Revision != 1 {
		t.Errorf("revision %d", after.Revision)
	}
}

func TestPort_RebindingNeedsNewReport(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort(cmp1)
	fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)

	moved := fx.updatePort(p.ID, network.PortChange{Host: ptr(cmp2)})
	if d := cmp.Diff([]string{"L2@cmp-2"}, blockNames(moved.Blocks)); d != "" || moved.Status != network.Down {
		t.Fatalf("after the move: %s %s", moved.Status, d)
	}
	if s := fx.updateStatus(p.ID, l2OnCmp1); s.Status != network.Down || s.IgnoredReports != 1 {
		t.Errorf("report from the previous host: %+v", s)
	}
	s := fx.updateStatus(p.ID, l2OnCmp2)
	if d := cmp.Diff([]string{"network-vif-plugged", "network-vif-unplugged", "network-changed", "network-vif-plugged"}, eventNames(s)); d != "" {
		t.Error(d)
	}
	loose := fx.updatePort(p.ID, network.PortChange{Host: ptr("")})
	if loose.Status != network.Down || loose.VIF != network.VIFUnbound || len(loose.Blocks) != 0 {
		t.Errorf("unbound: %+v", loose)
	}
}

func TestPort_ReportsOnEarlierBindingAreIgnored(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	first := fx.createPort(cmp1)
	fx.updateStatus(first.ID, dhcpReady)
	fx.updatePort(first.ID, network.PortChange{Host: ptr(cmp2)})
	again := fx.updatePort(first.ID, network.PortChange{Host: ptr(cmp1)})

	late := fx.updateStatus(first.ID, reportFromCmp1(network.L2, "", first.Revision), reportFromCmp1(network.L2, network.ReportLost, first.Revision), reportFromCmp1(network.L2, "", again.Revision+1))
	if late.Status != network.Down || late.IgnoredReports != 3 || len(late.Waiting) != 1 {
		t.Errorf("reports on the first binding and on a future revision: %+v", late)
	}
	renamed := fx.updatePort(first.ID, network.PortChange{Name: ptr("web-2")})
	if s := fx.updateStatus(first.ID, reportFromCmp1(network.L2, "", renamed.Revision)); s.Status != network.Active {
		t.Errorf("report on the current binding: %+v", s)
	}
	if s := fx.updateStatus(first.ID, reportFromCmp1(network.L2, network.ReportLost, again.Revision-1)); s.Status != network.Active {
		t.Errorf("late unplug report of an earlier binding: %+v", s)
	}
}

func TestPort_UnpluggedIsDownUntilWiredAgain(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort(cmp1)
	fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)

	s := fx.updateStatus(p.ID, l2LostOn(cmp1), l2LostOn(cmp1), network.Report{Entity: network.L2, Host: cmp2, Event: network.ReportLost})
	if s.Status != network.Down || s.IgnoredReports != 2 || !strings.Contains(s.Sentence(), "reported it unplugged") {
		t.Fatalf("unplugged: %+v", s)
	}
	if s = fx.updateStatus(p.ID, dhcpReady); s.Status != network.Down || s.IgnoredReports != 3 {
		t.Errorf("after a repeated DHCP report: %+v", s)
	}
	s = fx.updateStatus(p.ID, l2OnCmp1)
	if d := cmp.Diff([]string{"network-vif-plugged", "network-vif-unplugged", "network-vif-plugged"}, eventNames(s)); d != "" || s.Status != network.Active {
		t.Errorf("plugged again: %+v %s", s, d)
	}
}

func TestPort_ReportsInOneBatchKeepOrder(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort(cmp1)
	fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)
	if s := fx.updateStatus(p.ID, l2LostOn(cmp1), l2OnCmp1); s.Status != network.Active || s.IgnoredReports != 0 {
		t.Errorf("unplugged, then plugged: %+v", s)
	}
	if s := fx.updateStatus(p.ID, l2OnCmp1, l2LostOn(cmp1)); s.Status != network.Down || s.IgnoredReports != 1 {
		t.Errorf("plugged, then unplugged: %+v", s)
	}
}

func TestPort_DistributedActiveOnAnyHost(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort("", withDeviceOwner("network:router_interface_distributed"))
	say := func(host, event string) network.Report {
		return network.Report{Entity: network.L2, Host: host, Event: event}
	}
	if p.VIF != network.VIFDistributed || p.Status != network.Down || p.Reason() == "" {
		t.Fatalf("new distributed port: %+v", p)
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
		s := fx.updateStatus(p.ID, step.report)
		if s.Status != step.want || s.Accepted[0] != step.counts || (s.Status != network.Active) != (s.Reason != "") {
			t.Errorf("step %d, %+v: %+v", i, step.report, s)
		}
	}
}
