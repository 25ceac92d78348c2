package network

import (
	"net/netip"
	"testing"
)

func TestPool_RandomAddressesStayInThePool(t *testing.T) {
	t.Parallel()
	for _, ends := range [][2]string{
		{"10.0.0.2", "10.0.0.2"}, {"10.0.0.2", "10.0.0.6"}, {"10.0.0.0", "10.255.255.255"}, {"255.255.255.250", "255.255.255.255"},
		{"fd00::2", "fd00::ffff:ffff:ffff:ffff"}, {"fd00::ffff:ffff:ffff:fff0", "fd00:0:0:1::5"},
	} {
		t.Run(ends[0]+"-"+ends[1], func(t *testing.T) {
			t.Parallel()
			p := Pool{netip.MustParseAddr(ends[0]), netip.MustParseAddr(ends[1])}
			for range 200 {
				for _, a := range p.RandomAddresses(4) {
					if !p.Contains(a) {
						t.Fatalf("draw random addresses: got %s, want an address inside the pool %v", a, p)
					}
				}
			}
		})
	}
}

func TestPool_RandomAddressesSkipACrowdedStart(t *testing.T) {
	t.Parallel()
	p := Pool{netip.MustParseAddr("10.0.0.0"), netip.MustParseAddr("10.255.255.255")}
	start := Pool{p.Start, netip.MustParseAddr("10.0.255.255")}
	for range 200 {
		got := p.RandomAddresses(6)
		if !start.Contains(got[0]) {
			t.Errorf("the first random address is %s, want one of the first 65,536 of the pool", got[0])
		}
		if start.Contains(got[len(got)-1]) && start.Contains(got[len(got)-2]) &&
			start.Contains(got[len(got)-3]) {
			t.Errorf(
				"the last three of the random addresses %v are among the first 65,536 of the pool, want a wider range",
				got,
			)
		}
	}
}

func TestEUI64_DerivesTheAddressFromTheMAC(t *testing.T) {
	t.Parallel()
	got := EUI64(netip.MustParsePrefix("2001:db8::/64"), "fa:16:3e:11:22:33")
	if want := netip.MustParseAddr("2001:db8::f816:3eff:fe11:2233"); got != want {
		t.Errorf("EUI-64 address of the MAC: want %s, got %s", want, got)
	}
}

func TestUnnamedMAC_SkipsTheMACsThatDraftsName(t *testing.T) {
	t.Parallel()
	named := []PortChange{{}, {MAC: new("fa:16:3e:00:00:01")}, {MAC: new("fa:16:3e:00:00:02")}}
	random := []string{"fa:16:3e:00:00:02", "fa:16:3e:00:00:01", "fa:16:3e:00:00:03", "fa:16:3e:00:00:04"}
	got := UnnamedMAC(named, func() string {
		next := random[0]
		random = random[1:]
		return next
	})
	if want := "fa:16:3e:00:00:03"; got != want {
		t.Errorf("MAC that no draft names: got %s, want %s", got, want)
	}
}
