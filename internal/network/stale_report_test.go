package network

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPort_StaleReportsAreAboutEarlierBindings(t *testing.T) {
	t.Parallel()
	bound := Port{
		Host:            "cmp-1",
		BindingRevision: 7,
		Bindings:        []Binding{{Host: "cmp-2", Status: BindingInactive}},
	}
	distributed := Port{DeviceOwner: DeviceOwnerDistributed}
	for name, c := range map[string]struct {
		port   Port
		report Report
		want   bool
	}{
		"without a revision":             {bound, Report{Entity: L2, Host: "cmp-1"}, false},
		"revision of this binding":       {bound, Report{Entity: L2, Host: "cmp-1", Revision: 7}, false},
		"revision of an earlier binding": {bound, Report{Entity: L2, Host: "cmp-1", Revision: 6}, true},
		"host of an earlier binding":     {bound, Report{Entity: L2, Host: "cmp-9"}, true},
		"unbound port":                   {Port{}, Report{Entity: L2, Host: "cmp-1"}, true},
		"inactive binding":               {bound, Report{Entity: L2, Host: "cmp-2", Revision: 1}, false},
		"distributed port":               {distributed, Report{Entity: L2, Host: "cmp-9"}, false},
		"DHCP":                           {bound, Report{Entity: DHCP, Host: "net-1", Revision: 1}, false},
		"block":                          {bound, Report{Entity: "firewall", Host: "cmp-9", Event: ReportBlock}, false},
		"no host":                        {bound, Report{Entity: L2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.port.IsStale(c.report); got != c.want {
				t.Errorf("%+v about %+v is stale: got %t, want %t", c.report, c.port, got, c.want)
			}
		})
	}
	reports := []Report{{Entity: L2, Host: "cmp-9"}, {Entity: L2, Host: "cmp-9"}, {Entity: L2, Host: "cmp-1"}}
	if d := cmp.Diff([]bool{false, true, false}, bound.StaleReports(reports, []bool{true, false, false})); d != "" {
		t.Error(d)
	}
	if got := bound.StaleReports(reports[2:], []bool{false}); got != nil {
		t.Errorf("stale reports if none is stale: got %v, want nil", got)
	}
}
