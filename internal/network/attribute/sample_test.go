package attribute_test

import (
	"encoding/json"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"berth/internal/network"
)

func sampleID(last byte) uuid.UUID {
	return uuid.UUID{0x5a, 0, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, last}
}

// sampleNetwork is the network of all sample ports.
func sampleNetwork() network.Network {
	segment := 4711
	return network.Network{
		ID:              sampleID(1),
		Type:            "vlan",
		PhysicalNetwork: "physnet1",
		Segment:         &segment,
		Revision:        2,
		CreatedAt:       time.Unix(1_700_000_000, 0),
		UpdatedAt:       time.Unix(1_700_000_100, 0),
	}
}

// samplePorts returns sample ports. The key of each sample port names the property that distinguishes the
// port from the other sample ports. The sample port "full" has a value in every field.
func samplePorts() map[string]network.Port {
	gateway := "192.0.2.1"
	silence := time.Unix(1_700_000_150, 0)
	full := network.Port{
		ID:           sampleID(2),
		Network:      sampleID(1),
		Project:      "alpha",
		QuotaProject: "beta",
		Name:         "web-1",
		Description:  "first web server",
		AdminUp:      true,
		MAC:          "fa:16:3e:00:00:01",
		DeviceID:     "server-1",
		DeviceOwner:  "compute:nova",
		Status:       network.Active,
		Host:         "compute-1",
		VNIC:         "normal",
		Profile:      json.RawMessage(`{"pci":"0000:03:10.1"}`),
		VIF:          network.VIFOVS,
		PortSecurity: true,
		Tags:         []string{"blue", "red"},
		Addresses: []network.Address{
			{Subnet: sampleID(3), IP: netip.MustParseAddr("192.0.2.7")},
			{Subnet: sampleID(4), IP: netip.MustParseAddr("2001:db8::7")},
		},
		Switch: &network.Switch{Datapath: "netdev", Bridge: "br-fast", HybridPlug: true},
		Bindings: []network.Binding{
			{
				Host:    "compute-2",
				Status:  network.BindingInactive,
				VNIC:    "direct",
				Profile: json.RawMessage(`{"a":1}`),
				VIF:     network.VIFOVS,
			},
		},
		AddressPairs: []network.AddressPair{
			{IP: netip.MustParsePrefix("198.51.100.0/24"), MAC: "fa:16:3e:00:00:02"},
			{IP: netip.MustParsePrefix("198.51.100.9/32"), MAC: "fa:16:3e:00:00:01"},
		},
		DHCPOptions: []network.DHCPOption{
			{Name: "router", Value: &gateway, IPVersion: 4},
		},
		SecurityGroups:  []uuid.UUID{sampleID(5), sampleID(6)},
		Revision:        9,
		BindingRevision: 4,
		IgnoredReports:  3,
		CreatedAt:       time.Unix(1_700_000_200, 0),
		UpdatedAt:       time.Unix(1_700_000_300, 0),
		Blocks: []network.Block{
			{Entity: network.L2},
		},
		AgentHealth: network.AgentHealth{SilentSince: &silence},
		TrunkDetails: &network.TrunkDetails{
			Trunk: sampleID(7),
			Subports: []network.SubportDetails{
				{
					Subport: network.Subport{Port: sampleID(8), Type: network.VLAN, Segment: 5},
					MAC:     "fa:16:3e:00:00:03",
				},
			},
		},
	}
	byController := full
	byController.ControllerVIFDetails = json.RawMessage(`{"port_filter":true,"vhostuser_socket":"/run/x"}`)
	byController.TrunkDetails, byController.Switch = nil, nil
	distributed := full
	distributed.DeviceOwner, distributed.VIF, distributed.Host = "network:router_interface_distributed", network.VIFDistributed, ""
	distributed.Bindings = []network.Binding{
		{
			Host:    "compute-3",
			Status:  network.Active,
			VNIC:    "normal",
			Profile: json.RawMessage(`{}`),
			VIF:     network.VIFDistributed,
		},
	}
	created := network.NewPort(sampleID(9), network.PortChange{})
	created.Addresses = []network.Address{}
	return map[string]network.Port{
		"full":                  full,
		"wired by a controller": byController,
		"distributed":           distributed,
		"new":                   created,
	}
}
