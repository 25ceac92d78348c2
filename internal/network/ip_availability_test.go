package network

import (
	"net/netip"
	"testing"
)

func TestSubnet_CapacityIsTheSizeOfItsPools(t *testing.T) {
	t.Parallel()
	pool := func(start, end string) Pool { return Pool{netip.MustParseAddr(start), netip.MustParseAddr(end)} }
	for want, pools := range map[string][]Pool{
		"0":                    nil,
		"12":                   {pool("10.0.0.10", "10.0.0.20"), pool("10.0.0.30", "10.0.0.30")},
		"18446744073709551615": {pool("fd00::1", "fd00::ffff:ffff:ffff:ffff")},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			if got := (Subnet{Pools: pools}).Capacity().String(); got != want {
				t.Errorf("capacity of the pools %v: want %s, got %s", pools, want, got)
			}
		})
	}
}
