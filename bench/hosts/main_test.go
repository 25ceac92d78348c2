package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"berth/bench/benchtest"
)

func TestMain(m *testing.M) { benchtest.Main(m, main) }

func TestRun_ShortRunMeasuresEachSizeAndLeavesOnlyTheResults(t *testing.T) {
	t.Parallel()
	out, printed := benchtest.Run(
		t, run,
		"-dev-server",
		"-hosts=4,8",
		"-interval=800ms",
		"-ports-per-host-hour=900", // with 4 hosts one in a second
		"-clients=4",
		"-window=3s",
	)

	r := benchtest.Read[report](t, out, section)
	var sizes []int
	for _, one := range r.Sizes {
		sizes = append(sizes, one.Hosts)
		// how many of them are done depends on the machine
		if heartbeats, ports := one.Hosts*3000/800, one.Hosts*3/4; one.Heartbeats.Wanted != heartbeats || one.Ports.Wanted != ports {
			t.Errorf("%d hosts: got %d heartbeats and %d ports wanted in the window, want %d and %d",
				one.Hosts, one.Heartbeats.Wanted, one.Ports.Wanted, heartbeats, ports)
		}
		if one.Heartbeats.Failed != 0 || one.Ports.Failed != 0 {
			t.Errorf("%d hosts: got failed requests: %+v and %+v, want none", one.Hosts, one.Heartbeats, one.Ports)
		}
		if one.APIBytes == 0 || one.RelayBytes == 0 || one.AgentBytes == 0 {
			t.Errorf("%d hosts: got %d and %d bytes of memory and %d of the table, want all of them",
				one.Hosts, one.APIBytes, one.RelayBytes, one.AgentBytes)
		}
		if line := fmt.Sprintf("\n%d hosts: %s\n", one.Hosts, one.verdict()); !strings.Contains(printed, line) {
			t.Errorf("the printed results: want the line %q, got:\n%s", line, printed)
		}
	}
	if want := []int{4, 8}; !slices.Equal(sizes, want) {
		t.Errorf("sizes in the results: got %v, want %v", sizes, want)
	}
}

func TestRun_RejectsInvalidCommandLines(t *testing.T) {
	t.Parallel()
	benchtest.CheckUsage(
		t, run,
		[]string{"-hosts="},
		[]string{"-hosts=many"},
		[]string{"-hosts=0"},
		[]string{"-hosts=1000,100"},
		[]string{"-hosts=1000001"},
		[]string{"-interval=0s"},
		[]string{"-window=0s"},
		[]string{"-clients=0"},
		[]string{"-ports-per-host-hour=0"},
		[]string{"-key=costs"},
		[]string{"-fast"},
		[]string{"agents"},
	)
}

func TestSizeResult_SaysWhatBerthHasNotKeptUpWith(t *testing.T) {
	t.Parallel()
	full := loadResult{Wanted: 1000, Done: 990}
	short := loadResult{Wanted: 1000, Done: 989}
	for name, tt := range map[string]struct {
		result sizeResult
		want   string
	}{
		"everything":            {sizeResult{Heartbeats: full, Ports: full, Journal: journalResult{Created: 33, Finished: 32}}, "kept up"},
		"too few heartbeats":    {sizeResult{Heartbeats: short, Ports: full}, "not kept up with: heartbeats"},
		"too few ports":         {sizeResult{Heartbeats: full, Ports: short}, "not kept up with: ports"},
		"the journal grows":     {sizeResult{Journal: journalResult{Created: 33, Finished: 31}}, "not kept up with: journal entries"},
		"an agent is not alive": {sizeResult{Heartbeats: short, Silent: 1}, "not kept up with: heartbeats, agents that are not alive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.result.Behind = tt.result.findBehind()
			if got := tt.result.verdict(); got != tt.want {
				t.Errorf("got verdict %q, want %q", got, tt.want)
			}
		})
	}
}

// TestConfigurations_AreThoseOfAnAgent checks that a heartbeat is as long as those of Neutron's agent, and
// that each host has its own.
func TestConfigurations_AreThoseOfAnAgent(t *testing.T) {
	t.Parallel()
	var decoded map[string]any
	text := configurations(0x012345)
	if err := json.Unmarshal([]byte(text), &decoded); err != nil {
		t.Fatalf("configurations: got %s: %v; want JSON", text, err)
	}
	if decoded["tunneling_ip"] != "10.1.35.69" || len(text) < 500 || len(text) > 2000 {
		t.Errorf("configurations: got the address %v and %d bytes, want 10.1.35.69 and 500 to 2000 bytes",
			decoded["tunneling_ip"], len(text))
	}
}
