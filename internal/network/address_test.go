package network

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultPoolsAreWhatHostsCanHave(t *testing.T) {
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
		gateway, _ := netip.ParseAddr(tc.gateway)
		var got []string
		for _, p := range DefaultPools(netip.MustParsePrefix(tc.cidr), gateway) {
			got = append(got, p.Start.String()+"-"+p.End.String())
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s gateway %s: %s", tc.cidr, tc.gateway, d)
		}
	}
}

func TestCandidatesStayInThePool(t *testing.T) {
	t.Parallel()
	for _, ends := range [][2]string{
		{"10.0.0.2", "10.0.0.2"}, {"10.0.0.2", "10.0.0.6"}, {"10.0.0.0", "10.255.255.255"}, {"255.255.255.250", "255.255.255.255"},
		{"fd00::2", "fd00::ffff:ffff:ffff:ffff"}, {"fd00::ffff:ffff:ffff:fff0", "fd00:0:0:1::5"},
	} {
		p := Pool{netip.MustParseAddr(ends[0]), netip.MustParseAddr(ends[1])}
		for range 200 {
			for _, a := range p.Candidates(4) {
				if !p.Contains(a) {
					t.Fatalf("%s is not in %v", a, p)
				}
			}
		}
	}
}

func TestCandidatesReachBeyondACrowdedBeginning(t *testing.T) {
	t.Parallel()
	p := Pool{netip.MustParseAddr("10.0.0.0"), netip.MustParseAddr("10.255.255.255")}
	beginning := Pool{p.Start, netip.MustParseAddr("10.0.255.255")}
	for range 200 {
		got := p.Candidates(6)
		if !beginning.Contains(got[0]) {
			t.Errorf("the first is %s", got[0])
		}
		if beginning.Contains(got[len(got)-1]) && beginning.Contains(got[len(got)-2]) && beginning.Contains(got[len(got)-3]) {
			t.Errorf("the last three of %v are at the beginning", got)
		}
	}
}

func TestHostsMakeTheirOwnAddressFromTheirMAC(t *testing.T) {
	t.Parallel()
	got := EUI64(netip.MustParsePrefix("2001:db8::/64"), "fa:16:3e:11:22:33")
	if want := netip.MustParseAddr("2001:db8::f816:3eff:fe11:2233"); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}
