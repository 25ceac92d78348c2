package network

import (
	"testing"

	"github.com/google/uuid"
)

// The expected values are the results of Neutron's function get_dhcp_agent_device_id.
func TestDHCPDeviceID_IsThatOfNeutronsAgents(t *testing.T) {
	t.Parallel()
	on := uuid.MustParse("7b3f2a10-0000-4000-8000-000000000001")
	for _, host := range []string{"net1", "net1.example.org"} {
		const want = "dhcp04771cbe-437e-5f2c-860d-465c2ee070fb-7b3f2a10-0000-4000-8000-000000000001"
		if got := DHCPDeviceID(host, on); got != want {
			t.Errorf("device_id of the DHCP agent on %s: got %s, want %s", host, got, want)
		}
	}
}
