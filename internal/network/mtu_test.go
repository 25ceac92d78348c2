package network_test

import (
	"testing"

	"github.com/google/uuid"

	"berth/internal/network"
)

func TestNetwork_LargestMTUIsThatOfItsType(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind                      string
		requested, physical, want int // want 0: a fault
	}{
		"flat":                        {network.Flat, 0, 0, 1500},
		"VXLAN":                       {network.VXLAN, 0, 0, 1450},
		"VXLAN on jumbo frames":       {network.VXLAN, 0, 9000, 8950},
		"VLAN on jumbo frames":        {network.VLAN, 9000, 9000, 9000},
		"smaller":                     {network.VLAN, 1, 0, 1},
		"larger than physical frames": {network.Flat, 1501, 0, 0},
		"larger than a tunnel":        {network.VXLAN, 1451, 1500, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := network.NewNetwork(uuid.New(), network.NetworkChange{Type: &c.kind, MTU: &c.requested})
			got, err := n.ResolveMTU(c.physical)
			if c.want == 0 && err == nil || c.want != 0 && (err != nil || got.MTU != c.want) {
				t.Errorf("MTU %d on physical networks with the MTU %d: got %d, %v, want %d",
					c.requested, c.physical, got.MTU, err, c.want)
			}
		})
	}
}
