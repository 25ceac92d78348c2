package interop

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// TestOpenStackSDK_Networks runs testdata/network_sdk.py, which calls every applicable method of
// openstacksdk's network proxy. The test uses the unmodified openstacksdk.
func TestOpenStackSDK_Networks(t *testing.T) {
	t.Parallel()
	python, err := exec.CommandContext(t.Context(), "../../tools/openstack.sh").Output()
	if err != nil {
		t.Fatalf("start the OpenStack clients: %v; run `make deps` to install the clients", err)
	}
	s := servertest.NewDeployment(t, storetest.URL(t))
	api := s.StartWorker("api")
	api.RegisterAgents()
	api.Must("POST", "/agent/v1/state",
		servertest.Object{"agent_type": "Open vSwitch agent", "host": "cmp-2"})
	cmd := exec.CommandContext(t.Context(),
		strings.TrimSpace(string(python)), "testdata/network_sdk.py", api.URL+"/networking")
	cmd.Env = append(cmd.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore")
	cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "OS_") })
	var said strings.Builder
	cmd.Stderr = &said

	out, err := cmd.Output()

	var told struct{ Untold, Problems []string }
	if err != nil || json.Unmarshal(out, &told) != nil {
		t.Fatalf("run network_sdk.py and decode its output: %v: %s %s", err, out, said.String())
	}
	for _, problem := range told.Problems {
		t.Error(problem)
	}
	for _, name := range told.Untold {
		t.Errorf(
			"network_sdk.py does not use the method %s of openstacksdk's network proxy, and gives no reason; want one of both",
			name,
		)
	}
}
