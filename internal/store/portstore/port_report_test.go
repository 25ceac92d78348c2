package portstore_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/portstore"
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
				t.Errorf("round %d: concurrent report: got error %v, want none", round, err)
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
			t.Fatalf(
				"round %d: %d of the concurrent reports made the port ACTIVE, want 1; then got %+v, want ACTIVE and 2 ignored reports",
				round, last, s,
			)
		}
		if d := cmp.Diff([]string{"network-vif-plugged"}, eventNames(s)); d != "" {
			t.Fatalf("round %d: Nova events after concurrent reports (-want +got): %s", round, d)
		}
	}
}

func TestPort_ActiveOnlyAfterLastReport(t *testing.T) {
	t.Parallel()
	for _, order := range [][]network.Report{{l2OnCmp1, dhcpReady}, {dhcpReady, l2OnCmp1}} {
		fx := newFixture(t, "10.0.0.0/24")
		p := fx.createPort(cmp1)
		if d := cmp.Diff([]string{"DHCP@", "L2@cmp-1"}, blockNames(p.Blocks)); d != "" ||
			p.Status != network.Down ||
			p.Revision != 1 {
			t.Fatalf(
				"create a port: got status %s and revision %d, want DOWN and 1; blocks (-want +got): %s",
				p.Status, p.Revision, d,
			)
		}

		first := fx.updateStatus(p.ID, order[0])
		second := fx.updateStatus(p.ID, order[1])
		again := fx.updateStatus(p.ID, order...)

		if first.Status != network.Down || len(first.Waiting) != 1 || len(first.Events) != 0 {
			t.Errorf("send the first of two reports: got %+v, want DOWN, one block and no Nova event", first)
		}
		if second.Status != network.Active || len(second.Waiting) != 0 {
			t.Errorf("send the second of two reports: got %+v, want ACTIVE without blocks", second)
		}
		if d := cmp.Diff([]string{"network-vif-plugged"}, eventNames(again)); d != "" {
			t.Error(d)
		}
		if after := fx.readPort(p.ID); after.Revision != 2 || again.IgnoredReports != 2 {
			t.Errorf("repeat both reports: got revision %d, want 2; got %d ignored reports, want 2",
				after.Revision, again.IgnoredReports)
		}
		if err := fx.Notifications.DeleteNovaEvents(t.Context(), []int64{again.Events[0].ID}); err != nil {
			t.Fatal(err)
		}
		if s := fx.updateStatus(p.ID); len(s.Events) != 0 {
			t.Errorf("delete the delivered Nova events: got the pending events %v, want none", s.Events)
		}
	}
}

func TestPort_IgnoredReportsAreCounted(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort(cmp1)

	s := fx.updateStatus(p.ID, l2OnCmp2, network.Report{Entity: "L2"},
		network.Report{Entity: network.DHCP, Host: cmp1}, network.Report{Entity: "moon", Host: cmp1})

	if s.IgnoredReports != 4 || len(s.Waiting) != 2 || s.Status != network.Down {
		t.Errorf(
			"send four reports for which the port does not wait: got %+v, want them ignored and no other change",
			s,
		)
	}
	if d := cmp.Diff([]bool{false, false, false, false}, s.Accepted); d != "" {
		t.Error(d)
	}
	if after := fx.readPort(p.ID); after.Revision != 1 {
		t.Errorf("revision of a port after ignored reports: got %d, want 1", after.Revision)
	}
}

// The agents of a host can report for each port whose ID they know. The row counts the ignored reports; a
// nudge for each of them would occupy Temporal with the ports of all projects.
func TestPort_IgnoredReportsNudgeNoWorkflow(t *testing.T) {
	t.Parallel()
	fx := newEffectsFixture(t)
	p := fx.createPort(cmp1)
	for name, report := range map[string]step{"HTTP": overHTTP(l2OnCmp2), "RabbitMQ": overRabbitMQ(l2OnCmp2)} {
		fx.forgetEffects()
		before := fx.readPort(p.ID).IgnoredReports
		if _, err := report(fx, p); err != nil {
			t.Fatal(err)
		}
		if effects, counted := fx.effects(p.ID), fx.readPort(p.ID).IgnoredReports-before; len(effects) > 0 || counted != 1 {
			t.Errorf("report of another host over %s: got the effects %v, counted %d times; want no effects, counted once",
				name, effects, counted)
		}
	}
}

func TestPort_ReportsOfThePreviousHostAreIgnored(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort(cmp1)
	fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)

	moved := fx.updatePort(p.ID, network.PortChange{Host: ptr(cmp2)})
	if d := cmp.Diff([]string{"L2@cmp-2"}, blockNames(moved.Blocks)); d != "" ||
		moved.Status != network.Down {
		t.Fatalf("change the host of a port: got status %s, want DOWN; blocks (-want +got): %s",
			moved.Status, d)
	}
	if s := fx.updateStatus(p.ID, l2OnCmp1); s.Status != network.Down || s.IgnoredReports != 1 {
		t.Errorf("report of the previous host: got %+v, want DOWN and the report ignored", s)
	}
	s := fx.updateStatus(p.ID, l2OnCmp2)
	if d := cmp.Diff([]string{"network-vif-unplugged", "network-changed", "network-vif-plugged"}, eventNames(s)); d != "" {
		t.Error(d)
	}
	loose := fx.updatePort(p.ID, network.PortChange{Host: ptr("")})
	if loose.Status != network.Down || loose.VIF != network.VIFUnbound || len(loose.Blocks) != 0 {
		t.Errorf("remove the host of a port: got %+v, want it DOWN and unbound, without blocks", loose)
	}
}

func TestPort_ReportsOnEarlierBindingToTheSameHostAreIgnored(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	first := fx.createPort(cmp1)
	fx.updateStatus(first.ID, dhcpReady)
	fx.updatePort(first.ID, network.PortChange{Host: ptr(cmp2)})
	again := fx.updatePort(first.ID, network.PortChange{Host: ptr(cmp1)})

	late := fx.updateStatus(
		first.ID,
		reportFromCmp1(network.L2, "", first.Revision),
		reportFromCmp1(network.L2, network.ReportLost, first.Revision),
		reportFromCmp1(network.L2, "", again.Revision+1),
	)
	if late.Status != network.Down || late.IgnoredReports != 3 || len(late.Waiting) != 1 {
		t.Errorf(
			"reports about the first binding and about a future revision: got %+v, want DOWN, one block and 3 ignored reports",
			late,
		)
	}
	renamed := fx.updatePort(first.ID, network.PortChange{Name: ptr("web-2")})
	if s := fx.updateStatus(first.ID, reportFromCmp1(network.L2, "", renamed.Revision)); s.Status != network.Active {
		t.Errorf("report about the current binding: got %+v, want ACTIVE", s)
	}
	if s := fx.updateStatus(first.ID, reportFromCmp1(network.L2, network.ReportLost, again.Revision-1)); s.Status != network.Active {
		t.Errorf("late unplug report about an earlier binding: got %+v, want ACTIVE", s)
	}
}

func TestPort_UnpluggedIsDownUntilWiredAgain(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort(cmp1)
	fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)

	s := fx.updateStatus(p.ID, l2LostOn(cmp1), l2LostOn(cmp1),
		network.Report{Entity: network.L2, Host: cmp2, Event: network.ReportLost})
	if s.Status != network.Down || s.IgnoredReports != 2 ||
		!strings.Contains(s.Sentence(), "reported it unplugged") {
		t.Fatalf(
			"send two equal unplug reports and one of another host: got %+v, want DOWN, 2 ignored reports and a sentence that says so",
			s,
		)
	}
	if s = fx.updateStatus(p.ID, dhcpReady); s.Status != network.Down || s.IgnoredReports != 3 {
		t.Errorf("repeat the DHCP report of an unplugged port: got %+v, want DOWN and 3 ignored reports", s)
	}
	s = fx.updateStatus(p.ID, l2OnCmp1)
	if d := cmp.Diff([]string{"network-vif-unplugged", "network-vif-plugged"}, eventNames(s)); d != "" ||
		s.Status != network.Active {
		t.Errorf("plug the port again: got %+v, want ACTIVE; Nova events (-want +got): %s", s, d)
	}
}

func TestPort_ReportsInOneBatchKeepOrder(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort(cmp1)
	fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)
	if s := fx.updateStatus(p.ID, l2LostOn(cmp1), l2OnCmp1); s.Status != network.Active ||
		s.IgnoredReports != 0 {
		t.Errorf("report unplugged, then plugged in one batch: got %+v, want ACTIVE and no ignored report", s)
	}
	if s := fx.updateStatus(p.ID, l2OnCmp1, l2LostOn(cmp1)); s.Status != network.Down ||
		s.IgnoredReports != 1 {
		t.Errorf("report plugged, then unplugged in one batch: got %+v, want DOWN and one ignored report", s)
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
		t.Fatalf("create a distributed port: got %+v, want VIF type distributed, status DOWN and a reason", p)
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
		if s.Status != step.want || s.Accepted[0] != step.counts ||
			(s.Status != network.Active) != (s.Reason != "") {
			t.Errorf("step %d: report %+v: got %+v, want status %s, accepted %t, and a reason unless ACTIVE",
				i, step.report, s, step.want, step.counts)
		}
	}
}

// The agents of a host know the IDs of the ports of all hosts. Here another transaction has locked the port.
func TestPort_ReportsOfOtherHostsLockNothing(t *testing.T) {
	t.Parallel()
	fx := newEffectsFixture(t)
	p := fx.createPort(cmp1)
	foreign := l2OnCmp2
	foreign.HostOnly = true
	before := fx.readPort(p.ID)
	err := fx.DB.InTx(t.Context(), func(tx db.Tx) error {
		if _, err := tx.Exec(t.Context(), `select from port where id = $1 for update`, p.ID); err != nil {
			return err
		}
		_, err := overHTTP(foreign)(fx, p)
		_, err2 := overRabbitMQ(foreign, foreign)(fx, p)
		return errors.Join(err, err2)
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, fx.readPort(p.ID), cmpopts.EquateComparable(netip.Addr{})); d != "" {
		t.Errorf("a port after reports of another host (-before +after):\n%s", d)
	}
	if n := fx.Network.ForeignReports(); n != 3 {
		t.Errorf("counted reports about ports of other hosts: got %d, want 3", n)
	}
	if _, err := fx.Network.ReportPort(t.Context(), uuid.New(), []network.Report{foreign}); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("report about a port that does not exist: got the error %v, want %v", err, db.ErrNotFound)
	}
}

func TestPort_ReportsOfOneHostChangeWhatWaitsForTheHost(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	bound, migrating := fx.createPort(cmp1), fx.createPort(cmp1)
	fx.createBinding(migrating, cmp2)
	distributed := fx.createPort("", withDeviceOwner(network.DeviceOwnerDistributed))
	blocked := portstore.Object{Type: "port", ID: bound.ID}
	block := network.Report{Entity: "moon", Host: cmp2, Event: network.ReportBlock}
	if _, err := fx.Network.AddBlock(t.Context(), blocked, block); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		port   network.Port
		report network.Report
	}{
		"bound":            {bound, network.Report{Entity: network.L2, Host: cmp1}},
		"inactive binding": {migrating, network.Report{Entity: network.L2, Host: cmp2}},
		"DHCP":             {bound, network.Report{Entity: network.DHCP, Host: net1}},
		"distributed":      {distributed, network.Report{Entity: network.L2, Host: cmp2, Event: network.ReportBegun}},
		"block":            {bound, network.Report{Entity: "moon", Host: cmp2}},
	} {
		c.report.HostOnly = true
		view, err := fx.Network.ReportPort(t.Context(), c.port.ID, []network.Report{c.report})
		if err != nil || !slices.Equal(view.Accepted, []bool{true}) {
			t.Errorf("%s: got accepted %v, error %v; want true", name, view.Accepted, err)
		}
	}
}

// countingRecorder counts the changes for which the audit log gets a record.
type countingRecorder struct{ records atomic.Int64 }

func (r *countingRecorder) QueueRecords(_ *pgx.Batch, changes []db.Change) {
	r.records.Add(int64(max(len(changes), 1)))
}

func (r *countingRecorder) QueueRecordIfMarked(*pgx.Batch, db.Change) { r.records.Add(1) }

// An agent that reports its port up and down again and again changes the port each time.
func TestPort_ReportsOfTheAgentsOfAHostLeaveNoAuditRecord(t *testing.T) {
	t.Parallel()
	for hostOnly, want := range map[bool]int64{true: 0, false: 2} {
		fx := newFixture(t, "10.0.0.0/24")
		p := fx.createPort(cmp1)
		recorder := &countingRecorder{}
		ctx := db.WithRecorder(t.Context(), recorder)
		for _, report := range []network.Report{l2OnCmp1, l2LostOn(cmp1)} {
			report.HostOnly = hostOnly
			if s, err := fx.Network.ReportPort(ctx, p.ID, []network.Report{report}); err != nil || !s.Accepted[0] {
				t.Fatalf("report %+v: got %+v, error %v; want that it changes the port", report, s, err)
			}
		}
		if got := recorder.records.Load(); got != want {
			t.Errorf("audit records of two reports, of the agents of one host only: %t: got %d, want %d",
				hostOnly, got, want)
		}
	}
}
