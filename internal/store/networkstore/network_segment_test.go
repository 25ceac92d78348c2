package networkstore_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/networkstore"
	"berth/internal/store/storetest"
)

// A network that may have any segment must not get by chance the segment that another network of the request
// names.
func TestSegment_NamedSegmentsAreNotAllocatedByChance(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for range 10 { // with VLANs at random, one of the requests fails almost surely
		physical := uuid.NewString()
		s.Network.Store = networkstore.New(
			s.DB,
			networkstore.Config{VLANs: network.VLANRanges{{PhysicalNetwork: physical, Low: 100, High: 102}}},
		)
		vlan := network.NetworkChange{Project: new("p"), Type: new(network.VLAN), PhysicalNetwork: &physical}
		named := vlan
		named.Segment = new(101)
		if _, err := s.Network.CreateNetworks(t.Context(), []network.NetworkChange{vlan, vlan, named}); err != nil {
			t.Fatalf("request for all three VLANs of a physical network: got %v, want no error", err)
		}
		_, err := s.Network.CreateNetworks(t.Context(), []network.NetworkChange{vlan})
		var fault *network.Fault
		if !errors.As(err, &fault) || fault.Kind != network.NoNetworkAvailable {
			t.Errorf("request for a fourth VLAN: got %v, want a fault of kind %s",
				err, network.NoNetworkAvailable)
		}
	}
	vxlan := network.NetworkChange{Project: new("p"), Type: new(network.VXLAN)}
	first, err := s.Network.CreateNetworks(t.Context(), []network.NetworkChange{vxlan})
	if err != nil {
		t.Fatal(err)
	}
	named := vxlan
	named.Segment = new(*first[0].Segment + 1)
	if _, err := s.Network.CreateNetworks(t.Context(), []network.NetworkChange{vxlan, vxlan, named}); err != nil {
		t.Errorf("request for any VNI and the next VNI: got %v, want no error", err)
	}
}

// A VLAN that a network on another physical network names is free.
func TestSegment_NamedVLANsCountOnTheirPhysicalNetworkOnly(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	s.Network.Store = networkstore.New(s.DB, networkstore.Config{
		VLANs: network.VLANRanges{
			{PhysicalNetwork: "a", Low: 7, High: 7},
			{PhysicalNetwork: "b", Low: 7, High: 7},
		},
	})
	on := func(physical string, segment *int) network.NetworkChange {
		return network.NetworkChange{
			Project:         new("p"),
			Type:            new(network.VLAN),
			PhysicalNetwork: &physical,
			Segment:         segment,
		}
	}
	if _, err := s.Network.CreateNetworks(t.Context(), []network.NetworkChange{on("a", nil), on("b", new(7))}); err != nil {
		t.Errorf("request for the only VLAN of two physical networks: got %v, want no error", err)
	}
}
