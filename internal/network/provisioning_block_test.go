package network

import (
	"testing"
	"time"
)

func TestPort_ActiveWithoutBlocksIfNoAgentHasToWireIt(t *testing.T) {
	t.Parallel()
	p := NewPort([16]byte{1}, PortChange{Host: ptr("1"), DeviceOwner: ptr("compute:x"), VNIC: ptr("direct-physical")})
	pc := Surroundings{DHCPHosts: []string{"n"}}
	p.VIF = p.Bind(nil)
	p = p.Arm(pc, Cause{Bound: true, Addressed: true}, time.Time{}).Judge(time.Time{})
	if p.Status != Active {
		t.Errorf("%s, waiting for %v", p.Status, p.Blocks)
	}
}
