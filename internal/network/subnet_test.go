package network

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultPools_ContainAllHostAddressesExceptTheGateway(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		cidr, gateway string
		want          []string
	}{
		{"10.0.0.0/29", "10.0.0.1", []string{"10.0.0.2-10.0.0.6"}},
		{"10.0.0.0/29", "10.0.0.6", []string{"10.0.0.1-10.0.0.5"}},
		{"10.0.0.0/29", "10.0.0.3", []string{"10.0.0.1-10.0.0.2", "10.0.0.4-10.0.0.6"}},
		{"10.0.0.0/29", "", []string{"10.0.0.1-10.0.0.6"}},
		{"10.0.0.0/29", "192.0.2.1", []string{"10.0.0.1-10.0.0.6"}},
		{"10.0.0.0/30", "10.0.0.1", []string{"10.0.0.2-10.0.0.2"}},
		{"10.0.0.0/31", "", []string{"10.0.0.0-10.0.0.1"}},
		{"10.0.0.4/32", "10.0.0.4", nil},
		{"fd00::/64", "fd00::1", []string{"fd00::2-fd00::ffff:ffff:ffff:ffff"}},
		{"fd00::/126", "fd00::1", []string{"fd00::2-fd00::3"}},
	} {
		t.Run(tc.cidr+" gateway "+tc.gateway, func(t *testing.T) {
			t.Parallel()
			gateway, _ := netip.ParseAddr(tc.gateway)
			var got []string
			for _, p := range DefaultPools(netip.MustParsePrefix(tc.cidr), gateway) {
				got = append(got, p.Start.String()+"-"+p.End.String())
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
