package network

import (
	"fmt"
	"strings"
	"testing"
)

// Each port on the host gets the vif_details.
func TestAgentState_LimitsTheVIFDetailsOfAPseudoAgent(t *testing.T) {
	t.Parallel()
	for length, want := range map[int]bool{1000: true, maxVIFDetails: false, MaxConfigurations / 2: false} {
		configurations := fmt.Sprintf(`{"supported_vnic_types":[{"vnic_type":"normal","vif_details":{"vhostuser_socket":%q}}]}`,
			strings.Repeat("$PORT_ID", length/8))
		s := AgentState{Type: ODLAgent, Host: "cmp-1", Configurations: []byte(configurations)}
		if err := s.Check(); (err == nil) != want {
			t.Errorf("pseudo agent with vif_details of %d bytes: got the error %v, want accepted: %t", length, err, want)
		}
	}
}
