package network_test

import (
	"strings"
	"testing"
	"time"

	"berth/internal/network"
)

func TestPort_NamesAllHostsFromWhichAReportIsAccepted(t *testing.T) {
	t.Parallel()
	for want, hosts := range map[string][]string{
		"it waits for DHCP since":                   nil,
		"it waits for DHCP on net-1 since":          {"net-1"},
		"it waits for DHCP on net-1 or net-2 since": {"net-1", "net-2"},
		"it waits for DHCP on one of 4 hosts since": {"net-1", "net-2", "net-3", "net-4"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			p := network.Port{
				Host: "cmp-1",
				Blocks: []network.Block{
					{Entity: network.DHCP, AgentHosts: hosts},
					{Entity: network.L2, Host: "cmp-1", AgentHosts: []string{"cmp-1"}},
				},
			}
			if got := p.WithAgentHosts().StatusView().Sentence(); !strings.Contains(got, want) ||
				!strings.Contains(got, "it waits for L2 on cmp-1 since") {
				t.Errorf(
					"sentence of a port that waits for DHCP agents on %v and for L2: got %q, want it to contain %q and the L2 agent's host",
					hosts, got, want,
				)
			}
			got := p.StatusView().Sentence() + p.Redacted().StatusView().Sentence()
			if strings.Contains(got, "net-1") {
				t.Errorf(
					"sentences of the stored and of the redacted view: got %q, want no host of a DHCP agent",
					got,
				)
			}
		})
	}
}

func TestStatusViewAt_SaysForHowLongAPortIsOverdue(t *testing.T) {
	t.Parallel()
	since := time.Date(2030, 1, 31, 10, 0, 0, 0, time.UTC)
	deadline := since.Add(5 * time.Minute)
	p := network.Port{
		Host:    "cmp-1",
		VIF:     "ovs",
		AdminUp: true,
		Status:  network.Down,
		Blocks: []network.Block{{
			Entity:   network.L2,
			Host:     "cmp-1",
			Since:    since,
			Deadline: &deadline,
		}},
	}
	const waits = "DOWN: it waits for L2 on cmp-1 since 2030-01-31T10:00:00Z"
	for name, c := range map[string]struct {
		view network.StatusView
		want string
	}{
		"before the deadline": {p.StatusViewAt(deadline.Add(-time.Second)), waits + ", with the deadline 2030-01-31T10:05:00Z"},
		"after the deadline":  {p.StatusViewAt(deadline.Add(49 * time.Minute)), waits + ", overdue for 49m0s"},
		"at any time":         {p.StatusView(), waits + ", with the deadline 2030-01-31T10:05:00Z"},
	} {
		if got := c.view.Sentence(); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
