package network_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"berth/internal/network"
)

// TestDHCPOptions_LimitCountsThoseOfEarlierRequests: each request may set few options, but the port keeps all
// of them.
func TestDHCPOptions_LimitCountsThoseOfEarlierRequests(t *testing.T) {
	t.Parallel()
	p := network.NewPort(uuid.New(), network.PortChange{})
	add := func(from, count int) (err error) {
		value, options := "v", []network.DHCPOption{}
		for i := range count {
			options = append(options,
				network.DHCPOption{Name: fmt.Sprint(from + i), Value: &value, IPVersion: 4})
		}
		after, err := p.WithExtensions(network.PortChange{DHCPOptions: &options})
		if err == nil {
			p = after
		}
		return err
	}
	for i := range 10 {
		if err := add(10*i, 10); err != nil {
			t.Fatalf("options %d to %d: %v", 10*i, 10*i+9, err)
		}
	}
	if err := add(50, 10); err != nil {
		t.Errorf("set ten of the hundred options again: got %v, want no error", err)
	}
	if err := add(100, 1); err == nil {
		t.Error("add option 101: got no error, want one")
	}
}
