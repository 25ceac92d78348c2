package diagnosis

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/spf13/pflag"

	"berth/internal/contract"
	"berth/starter/cli"
)

// newSession makes a session from an environment. The session's clock always shows the time `now`, and the
// output of the session goes to the buffer.
func newSession(t *testing.T, now time.Time, environ ...string) (*cli.Session, *bytes.Buffer) {
	t.Helper()
	settings, err := cli.ReadSettings(
		append(environ, "BERTH_DATA="+t.TempDir(), "TEMPORAL_ADDRESS=127.0.0.1:1"),
	)
	if err != nil {
		t.Fatal(err)
	}
	s := &cli.Session{Settings: &settings, Stderr: t.Output(), Now: func() time.Time { return now }}
	var out bytes.Buffer
	if err := s.Open(&out); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, &out
}

func TestWhy_SaysForHowLongAnObjectIsOverdue(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 31, 10, 1, 30, 0, time.UTC)
	for name, c := range map[string]struct {
		deadline time.Duration // from now
		want     bool
	}{"deadline has passed": {-49 * time.Minute, true}, "deadline is ahead": {time.Minute, false}} {
		deadline := now.Add(c.deadline)
		s, out := newSession(t, now)
		e := explanation{
			Why: contract.Why{
				Object:   "port/1",
				Sentence: "DOWN",
				Waiting:  []contract.Waiting{{For: "L2", Since: &now, Deadline: &deadline}},
			},
			Source: "workflow",
		}
		if err := printWhy(s.Output, s.Now(), e); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "(overdue for 49m0s)"); got != c.want {
			t.Errorf("%s: got %s, want that it says for how long the port is overdue: %t",
				name, out.String(), c.want)
		}
	}
}

func TestWhy_NamesTheAgentsThatBlockAPort(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 31, 10, 1, 30, 0, time.UTC)
	const heartbeat = "2030-01-31 10:00:00.000000"
	deadL2 := cli.Object{
		"id":                  uuid.NewString(),
		"agent_type":          "Open vSwitch agent",
		"host":                "cmp-1",
		"alive":               false,
		"admin_state_up":      true,
		"heartbeat_timestamp": heartbeat,
	}
	disabledL2 := cli.Object{
		"id":                  uuid.NewString(),
		"agent_type":          "Open vSwitch agent",
		"host":                "cmp-1",
		"alive":               true,
		"admin_state_up":      false,
		"heartbeat_timestamp": heartbeat,
	}
	dhcp := cli.Object{
		"id":                  uuid.NewString(),
		"agent_type":          "DHCP agent",
		"host":                "net-1",
		"alive":               true,
		"admin_state_up":      true,
		"heartbeat_timestamp": heartbeat,
	}
	for name, c := range map[string]struct {
		host                   string // host to which the port is bound
		hostAgents, dhcpAgents []cli.Object
		want                   []string
	}{
		"dead L2 agent and DHCP agent": {"cmp-1", []cli.Object{deadL2}, []cli.Object{dhcp}, []string{
			"L2: Open vSwitch agent on cmp-1, last heartbeat 1m30s ago, no longer alive", "DHCP: DHCP agent on net-1, last heartbeat 1m30s ago"}},
		"disabled L2 agent": {"cmp-1", []cli.Object{disabledL2}, nil, []string{
			"L2: Open vSwitch agent on cmp-1, last heartbeat 1m30s ago, disabled", "DHCP: no DHCP agent serves the network of the port"}},
		"no agents": {"cmp-1", nil, nil, []string{
			"L2: no L2 agent has ever sent a heartbeat from host cmp-1", "DHCP: no DHCP agent serves the network of the port"}},
		"a DHCP agent is not an L2 agent": {"cmp-1", []cli.Object{dhcp}, nil, []string{
			"L2: no L2 agent has ever sent a heartbeat from host cmp-1", "DHCP: no DHCP agent serves the network of the port"}},
		"port without host": {"", nil, nil, []string{
			"L2: the port has no host, so no agent can provision it", "DHCP: no DHCP agent serves the network of the port"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := uuid.NewString()
			port := cli.Object{
				"id":              id,
				"name":            "web",
				"status":          "DOWN",
				"network_id":      "n",
				"binding:host_id": c.host,
				"berth:why": cli.Object{
					"sentence": "DOWN",
					"waiting":  []cli.Object{{"for": "L2"}, {"for": "DHCP"}},
				},
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answers := map[string]cli.Object{
					"/networking/v2.0/ports/" + id:            {"port": port},
					"/networking/v2.0/agents":                 {"agents": emptyForNil(c.hostAgents)},
					"/networking/v2.0/networks/n/dhcp-agents": {"agents": emptyForNil(c.dhcpAgents)},
				}
				_ = json.NewEncoder(w).Encode(answers[r.URL.Path])
			}))
			t.Cleanup(server.Close)
			s, out := newSession(t, now, "BERTH_URL="+server.URL)

			if err := whyCommand(pflag.NewFlagSet("", pflag.ContinueOnError))(t.Context(), s, []string{"port/" + id}); err != nil {
				t.Fatal(err)
			}

			var got []string
			for line := range strings.Lines(out.String()) {
				if strings.HasPrefix(line, "L2: ") || strings.HasPrefix(line, "DHCP: ") {
					got = append(got, strings.TrimSpace(line))
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf(
					"lines about agents in the explanation of a port (-want +got):\n%s\noutput:\n%s",
					d,
					out,
				)
			}
		})
	}
}

// emptyForNil makes JSON encode a list without agents as [] instead of null.
func emptyForNil(agents []cli.Object) []cli.Object { return append([]cli.Object{}, agents...) }

func TestWhy_WarnsOfASilentAgentOfAnActivePort(t *testing.T) {
	t.Parallel()
	const warning = "ACTIVE: its agent was last heard of"
	for name, c := range map[string]struct {
		status, api, workflow string
		want                  []blockingAgent
	}{
		"agent alive":                       {"ACTIVE", "ACTIVE", "Port p is ACTIVE.", nil},
		"agent silent, workflow unaware":    {"ACTIVE", warning, "Port p is ACTIVE.", []blockingAgent{{For: "L2", Sentence: warning}}},
		"agent silent, workflow reports it": {"ACTIVE", warning, "Port p is " + warning + ".", nil},
		"port no longer ACTIVE":             {"DOWN", "DOWN: it waits", "Port p is ACTIVE.", nil},
		"the API does not explain the port": {"ACTIVE", "", "Port p is ACTIVE.", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port := cli.Object{"status": c.status, cli.ExplanationKey: cli.Object{"sentence": c.api}}
			if d := cmp.Diff(c.want, silentAgentWarning(port, contract.Why{State: activeStatus, Sentence: c.workflow})); d != "" {
				t.Error(d)
			}
		})
	}
}
