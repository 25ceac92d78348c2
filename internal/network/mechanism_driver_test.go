package network

import (
	"fmt"
	"testing"
	"time"
)

func TestPort_BindingNeedsALiveAgentThatSupportsTheVNIC(t *testing.T) {
	t.Parallel()
	ovs, smart, dead := HostAgent{
		Type:  OVSAgent,
		Alive: true,
	}, HostAgent{
		Type:     OVSAgent,
		Alive:    true,
		SmartNIC: true,
	}, HostAgent{
		Type: OVSAgent,
	}
	nic, macvtap := HostAgent{Type: NICSwitchAgent, Alive: true}, HostAgent{Type: MacvtapAgent, Alive: true}
	switchdev := `{"capabilities":["switchdev"]}`
	for i, tc := range []struct {
		host, vnic, profile string
		agents              []HostAgent
		want                string
	}{
		{"", "normal", `{}`, []HostAgent{ovs}, VIFUnbound},
		{"1", "normal", `{}`, []HostAgent{ovs}, VIFOVS},
		{"1", "normal", `{}`, []HostAgent{macvtap, ovs}, VIFOVS},
		{"1", "normal", `{}`, []HostAgent{dead, macvtap}, VIFMacvtap},
		{"1", "normal", `{}`, []HostAgent{dead}, VIFFailed},
		{"1", "normal", `{}`, []HostAgent{nic}, VIFFailed},
		{"1", "normal", `{}`, nil, VIFFailed},
		{"1", "vdpa", `{}`, []HostAgent{ovs}, VIFOVS},
		{"1", "direct", `{}`, []HostAgent{ovs}, VIFFailed},
		{"1", "direct", `{}`, []HostAgent{ovs, nic}, VIFHardware},
		{"1", "direct", switchdev, []HostAgent{ovs, nic}, VIFOVS},
		{"1", "direct", switchdev, []HostAgent{nic}, VIFFailed},
		{"1", "direct", `{"capabilities":"switchdev"}`, []HostAgent{ovs}, VIFFailed},
		{"1", "macvtap", `{}`, []HostAgent{nic}, VIFHardware},
		{"1", "smart-nic", `{}`, []HostAgent{ovs}, VIFFailed},
		{"1", "smart-nic", `{}`, []HostAgent{smart}, VIFOVS},
		{"1", "direct-physical", `{}`, nil, VIFPhysical},
		{"1", "accelerator-direct", `{}`, nil, VIFFailed},
		{"1", "accelerator-direct", `{}`, []HostAgent{nic}, VIFHardware},
		{"1", "accelerator-direct-physical", `{}`, nil, VIFFailed},
		{"1", "accelerator-direct-physical", `{}`, []HostAgent{nic}, VIFHardware},
		{"1", "baremetal", `{}`, []HostAgent{ovs, nic, macvtap}, VIFFailed},
	} {
		t.Run(fmt.Sprintf("%d %s %s", i, tc.vnic, tc.want), func(t *testing.T) {
			t.Parallel()
			p := Port{
				NetworkType: VLAN,
				Host:        tc.host,
				VNIC:        tc.vnic,
				Profile:     []byte(tc.profile),
				AdminUp:     true,
			}
			if p.VIF = p.VIFTypeWith(tc.agents); p.VIF != tc.want || p.Bound() != (p.Reason() == "") {
				t.Errorf(
					"bind the port of %+v: got VIF type %s and reason %q; want the VIF type of this case, and a reason if and only if it is not bound",
					tc, p.VIF, p.Reason(),
				)
			}
		})
	}
}

// The mechanism drivers for SR-IOV and macvtap bind ports only on networks that are directly on a physical
// network.
func TestPort_BindingNeedsADriverForTheNetworkType(t *testing.T) {
	t.Parallel()
	agents := []HostAgent{{Type: NICSwitchAgent, Alive: true}, {Type: MacvtapAgent, Alive: true}}
	for networkType, bound := range map[string]bool{
		Flat:  true,
		VLAN:  true,
		VXLAN: false,
		Local: false,
	} {
		for _, vnic := range []string{"normal", "direct", "macvtap", "direct-physical", "accelerator-direct", "accelerator-direct-physical"} {
			t.Run(networkType+" "+vnic, func(t *testing.T) {
				t.Parallel()
				p := Port{
					NetworkType: networkType,
					Host:        "1",
					VNIC:        vnic,
					AdminUp:     true,
				}
				if p = p.BindWith(agents).UpdateStatus(time.Now()); p.Bound() != bound ||
					(p.Status == Active) != bound {
					t.Errorf(
						"bind a port of the VNIC type %s on a %s network: got VIF type %s and status %s, want the port bound and ACTIVE: %t",
						vnic, networkType, p.VIF, p.Status, bound,
					)
				}
			})
		}
	}
}
