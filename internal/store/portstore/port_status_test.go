package portstore_test

import (
	"strings"
	"testing"
	"time"

	"berth/internal/network"
	"berth/internal/store/portstore"
	"berth/internal/store/storetest"
)

func TestPort_AdminStateAppliesWithoutNewReports(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort(cmp1, func(c *network.PortChange) { c.AdminUp = ptr(false) })
	if s := fx.updateStatus(p.ID, l2OnCmp1, dhcpReady); s.Status != network.Down || s.Reason == "" {
		t.Fatalf("all reports for an administratively down port: got %+v, want DOWN with a reason", s)
	}
	if up := fx.updatePort(p.ID, network.PortChange{AdminUp: ptr(true)}); up.Status != network.Active {
		t.Errorf("set admin_state_up of a wired port: got status %s with blocks %v, want ACTIVE",
			up.Status, up.Blocks)
	}
}

func TestPort_BuildWhileAgentIsWiring(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort(cmp1)
	begun := reportFromCmp1(network.L2, network.ReportBegun, 0)

	steps := []struct {
		report network.Report
		want   string
	}{
		{network.Report{Entity: network.L2, Host: cmp2, Event: network.ReportBegun}, network.Down},
		{
			begun,
			network.Build,
		}, {begun, network.Build}, {dhcpReady, network.Build}, {l2OnCmp1, network.Active},
		{
			begun,
			network.Build,
		}, {l2LostOn(cmp1), network.Down}, {begun, network.Build}, {l2OnCmp1, network.Active},
	}
	for i, step := range steps {
		if s := fx.updateStatus(p.ID, step.report); s.Status != step.want ||
			(s.Status == network.Active) != (len(s.Waiting) == 0) {
			t.Errorf("step %d: report %+v: got %+v, want status %s, and blocks unless ACTIVE",
				i, step.report, s, step.want)
		}
	}
	down := fx.createPort(cmp1, func(c *network.PortChange) { c.AdminUp = ptr(false) })
	if s := fx.updateStatus(down.ID, begun); s.Status != network.Down {
		t.Errorf("report that wiring has begun, for an administratively down port: got %+v, want DOWN", s)
	}
	router := fx.createPort(cmp1, withDeviceOwner("network:router_interface"))
	for i, want := range []string{network.Active, network.Build, network.Active, network.Down, network.Active} {
		report := [][]network.Report{nil, {begun}, {l2OnCmp1}, {l2LostOn(cmp1)}, {l2OnCmp1}}[i]
		if s := fx.updateStatus(router.ID, report...); s.Status != want {
			t.Errorf("step %d of a router port: got %+v, want status %s", i, s, want)
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
			s.Network = portstore.New(s.DB, portstore.Config{
				Policy: network.BlockPolicy{network.L2: {Limit: time.Hour, Fatal: fatal}},
			})
			fx := fixture{Store: s, t: t}
			fx.heartbeat(network.OVSAgent, cmp1)
			fx = fx.withNetwork("10.0.0.0/24")
			p := fx.createPort(cmp1)
			early := fx.updateStatus(p.ID)
			if (early.NextDeadline != nil) != fatal || early.Waiting[0].Deadline == nil ||
				early.Status != network.Down {
				t.Fatalf(
					"new port under a block timeout: got %+v, want DOWN with a deadline of the block, and NextDeadline only if it is fatal",
					early,
				)
			}
			storetest.Exec(t, url,
				`update block set since = since - interval '2 hours', deadline = deadline - interval '2 hours'`)

			late := fx.updateStatus(p.ID)
			want := map[bool]string{true: network.Errored, false: network.Down}[fatal]
			if late.Status != want || late.NextDeadline != nil ||
				!strings.Contains(late.Sentence(), "with the deadline") {
				t.Errorf(
					"port after the deadline of its block: got %+v, want ERROR if the deadline is fatal, otherwise DOWN, and the deadline in the sentence",
					late,
				)
			}
			if fatal && (len(late.Events) != 1 || late.Events[0].Status != "failed") {
				t.Errorf("Nova events after a fatal deadline: got %+v, want one with status failed",
					late.Events)
			}
			if s := fx.updateStatus(p.ID, l2OnCmp1); s.Status != network.Active {
				t.Errorf("report after the deadline: got %+v, want ACTIVE", s)
			}
		})
	}
}
