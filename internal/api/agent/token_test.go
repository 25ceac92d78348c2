package agent_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	client "berth/agent"
	"berth/internal/api/agent"
	"berth/internal/identity"
	"berth/internal/store/agentstore"
	"berth/internal/store/storetest"
)

// openWithTokens serves the gateway so that it also accepts agent tokens.
func openWithTokens(t *testing.T) gateway {
	t.Helper()
	s := storetest.New(t)
	server := serveAPI(t, agent.Options{Store: s.Network, Identity: identity.Noauth{}, Tokens: s.Agents})
	return gateway{t, server + "/agent/v1", "admin", s}
}

// as returns a copy of the gateway whose requests carry a new token of the host, and the ID of this token.
func (g gateway) as(host string) (gateway, uuid.UUID) {
	g.t.Helper()
	c, token, err := g.store.Agents.CreateToken(g.t.Context(), host)
	if err != nil {
		g.t.Fatal(err)
	}
	g.token = token
	return g, c.ID
}

func TestTokens_AnAgentReportsForItsHostOnly(t *testing.T) {
	t.Parallel()
	admin := openWithTokens(t)
	compute, _ := admin.as("cmp-1")
	stranger, _ := admin.as("cmp-2")
	dhcp, _ := admin.as("net-1")
	for _, c := range []struct {
		agent gateway
		body  string
		want  int
	}{
		{compute, `{"agent_type":"Open vSwitch agent","host":"cmp-1"}`, 200},
		{stranger, `{"agent_type":"Open vSwitch agent","host":"cmp-1"}`, 403},
		{dhcp, `{"agent_type":"DHCP agent","host":"net-1"}`, 200},
	} {
		if status, text := c.agent.post("/state", c.body); status != c.want ||
			status == 403 && !strings.Contains(text, `"code":403`) {
			t.Errorf("POST /state with %s: got %d %s, want %d", c.body, status, text, c.want)
		}
	}
	p := admin.ports(1)[0]
	own := report(p, "L2", "cmp-2")
	for _, body := range []string{report(p, "L2", "cmp-1"), own + "," + report(p, "L2", "cmp-1"), `{"port":"` + p + `","entity":"L2"}`,
		`{"port":"` + p + `","entity":"x","host":"cmp-2","event":"block"}`, `{"port":"` + p + `","entity":"x","host":"cmp-2","event":"unblock"}`} {
		if status, text := stranger.post("/reports", `{"reports":[`+body+`]}`); status != 403 {
			t.Errorf("POST /reports of cmp-2 with %s: got %d %s, want 403", body, status, text)
		}
	}
	if d := cmp.Diff([]verdict{{p, "waiting", "DOWN", []string{"DHCP"}}}, compute.report(report(p, "L2", "cmp-1"))); d != "" {
		t.Errorf("report of the port's host (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]verdict{{p, "done", "ACTIVE", []string{}}}, dhcp.report(report(p, "DHCP", "net-1"))); d != "" {
		t.Errorf("report of the network's DHCP agent (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]verdict{{p, "ignored", "ACTIVE", []string{}}}, admin.report(report(p, "L2", "cmp-2"))); d != "" {
		t.Errorf("report of an administrator for another host (-want +got):\n%s", d)
	}
}

func TestTokens_AnAgentLearnsNothingAboutPortsOfOtherHosts(t *testing.T) {
	t.Parallel()
	admin := openWithTokens(t)
	admin.post("/state", `{"agent_type":"Open vSwitch agent","host":"cmp-1"}`)
	p := admin.ports(1)[0]
	stranger, _ := admin.as("cmp-2")
	for _, event := range []string{"complete", "begun", "lost"} {
		body := `{"port":"` + p + `","entity":"L2","host":"cmp-2","event":"` + event + `"}`
		if d := cmp.Diff([]verdict{{p, "ignored", "", []string{}}}, stranger.report(body)); d != "" {
			t.Errorf("report %s of another host (-want +got):\n%s", event, d)
		}
	}
	compute, _ := admin.as("cmp-1")
	for _, want := range []string{"done", "ignored"} {
		if d := cmp.Diff([]verdict{{p, want, "ACTIVE", []string{}}}, compute.report(report(p, "L2", "cmp-1"))); d != "" {
			t.Errorf("report of the port's host (-want +got):\n%s", d)
		}
	}
}

func TestTokens_UnknownAndRevokedTokensGet401(t *testing.T) {
	t.Parallel()
	g := openWithTokens(t)
	heartbeat := `{"agent_type":"Open vSwitch agent","host":"cmp-1"}`
	compute, id := g.as("cmp-1")
	if status, text := compute.post("/state", heartbeat); status != 200 {
		t.Fatalf("POST /state with a token of cmp-1: got %d %s, want 200", status, text)
	}
	if _, err := g.store.Agents.Revoke(t.Context(), agentstore.Token, id); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{compute.token, "berth_agent_", compute.token[:len(compute.token)-1] + "!"} {
		compute.token = token
		if status, text := compute.post("/state", heartbeat); status != 401 {
			t.Errorf("POST /state with the token %q: got %d %s, want 401", token, status, text)
		}
	}
}

// With BERTH_AUTH=noauth the gateway has no store of tokens. It then takes an agent token for the name of a
// user, who has no role. unknownToken returns a token that has the form of an agent token.
func unknownToken() string {
	return agentstore.TokenPrefix + (rand.Text() + rand.Text())[:43]
}

func TestTokens_InvalidOnesDelayOnlyUnknownTokensOfTheirAddress(t *testing.T) {
	t.Parallel()
	g := openWithTokens(t)
	const heartbeat = `{"agent_type":"Open vSwitch agent","host":"cmp-1"}`
	compute, id := g.as("cmp-1")
	if status, text := compute.post("/state", heartbeat); status != 200 {
		t.Fatalf("POST /state with a token of cmp-1: got %d %s, want 200", status, text)
	}
	refused := false
	for i := 0; i < 1000 && !refused; i++ {
		g.token = unknownToken()
		status, text := g.post("/state", heartbeat)
		if refused = status == 429; !refused && status != 401 {
			t.Fatalf("POST /state with an unknown token: got %d %s, want 401 or 429", status, text)
		}
	}
	if !refused {
		t.Fatal("1,000 unknown tokens of one address: each was looked up, want 429 after a few")
	}
	if status, text := compute.post("/state", heartbeat); status != 200 {
		t.Errorf("POST /state with a token that was valid lately: got %d %s, want 200", status, text)
	}
	if _, err := g.store.Agents.Revoke(t.Context(), agentstore.Token, id); err != nil {
		t.Fatal(err)
	}
	if status, text := compute.post("/state", heartbeat); status != 401 {
		t.Errorf("POST /state with a revoked token: got %d %s, want 401", status, text)
	}
}

func TestTokens_AreOffWithoutAStoreOfTokens(t *testing.T) {
	t.Parallel()
	g, _ := open(t).as("cmp-1")
	if status, text := g.post("/state", `{"agent_type":"Open vSwitch agent","host":"cmp-1"}`); status != 403 {
		t.Errorf("POST /state with an agent token: got %d %s, want 403", status, text)
	}
}

// The client for agents learns from the real gateway that its report is about an earlier binding.
func TestReports_ClientLearnsThatItsReportIsStale(t *testing.T) {
	t.Parallel()
	g := open(t)
	g.post("/state", `{"agent_type":"Open vSwitch agent","host":"cmp-1"}`)
	g.post("/state", `{"agent_type":"DHCP agent","host":"net-1"}`)
	p := g.ports(1)[0]
	c := &client.HTTP{URL: strings.TrimSuffix(g.url, "/agent/v1"), Token: g.token}
	_, err := c.Send(t.Context(), p, client.Report{Entity: "L2", Host: "cmp-9"})
	if !errors.Is(err, client.ErrStale) {
		t.Errorf("report of a host to which the port is not bound: error %v, want ErrStale", err)
	}
	if got, err := c.Send(t.Context(), p, client.Report{Entity: "L2", Host: "cmp-1"}); err != nil ||
		got.Outcome != client.Waiting {
		t.Errorf("report of the port's host: %+v, error %v; want waiting", got, err)
	}
	if got, err := c.Send(t.Context(), p, client.Report{Entity: "L2", Host: "cmp-1"}); err != nil ||
		got.Outcome != client.Ignored {
		t.Errorf("repeated report: %+v, error %v; want ignored", got, err)
	}
	_, err = c.Send(t.Context(), uuid.NewString(), client.Report{Entity: "L2", Host: "cmp-1"})
	if !errors.Is(err, client.ErrUnknown) {
		t.Errorf("report about a port that does not exist: error %v, want ErrUnknown", err)
	}
}
