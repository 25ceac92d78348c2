package network

import (
	"testing"
	"time"
)

func TestPort_ActiveWithoutBlocksIfNoAgentHasToWireIt(t *testing.T) {
	t.Parallel()
	p := NewPort([16]byte{1},
		PortChange{Host: ptr("1"), DeviceOwner: ptr("compute:x"), VNIC: ptr("direct-physical")})
	p.NetworkType = Flat
	pc := PortContext{DHCPHosts: []string{"n"}}
	p.VIF = p.VIFTypeWith(nil)
	p = p.UpdateBlocks(pc, BlockTrigger{BindingChanged: true, AddressesChanged: true}, time.Time{}).
		UpdateStatus(time.Time{})
	if p.Status != Active {
		t.Errorf("status of a port that no agent wires: got %s with blocks %v, want ACTIVE",
			p.Status, p.Blocks)
	}
}
