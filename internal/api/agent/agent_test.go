package agent_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/api/agent"
	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

type gateway struct {
	t     testing.TB
	url   string
	token string
	store *store.Store
}

func open(t testing.TB) gateway { return on(t, storetest.URL(t)) }

// on is a gateway on that database.
func on(t testing.TB, url string) gateway {
	t.Helper()
	s, err := store.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	server := httptest.NewServer(agent.New(s, identity.Noauth{}))
	t.Cleanup(server.Close)
	return gateway{t, server.URL + "/agent/v1", "admin", s}
}

func (g gateway) post(path, body string) (int, string) {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	if g.token != "" {
		r.Header.Set("X-Auth-Token", g.token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// ports makes that many ports of a server, bound to cmp-1 on a network that net-1 gives DHCP to.
func (g gateway) ports(n int) []string {
	g.t.Helper()
	p, ctx := "p", g.t.Context()
	nets, err := g.store.CreateNetworks(ctx, []network.NetworkChange{{Project: &p}})
	if err != nil {
		g.t.Fatal(err)
	}
	cidr := netip.MustParsePrefix("10.0.0.0/16")
	if _, err := g.store.CreateSubnets(ctx, []network.SubnetChange{{Network: &nets[0].ID, Project: &p, CIDR: &cidr}}); err != nil {
		g.t.Fatal(err)
	}
	host, owner := "cmp-1", "compute:nova"
	drafts := make([]network.PortChange, n)
	for i := range drafts {
		drafts[i] = network.PortChange{Network: &nets[0].ID, Project: &p, Host: &host, DeviceOwner: &owner}
	}
	made, err := g.store.CreatePorts(ctx, drafts)
	if err != nil {
		g.t.Fatal(err)
	}
	ids := make([]string, n)
	for i := range made {
		ids[i] = made[i].ID.String()
	}
	return ids
}

type verdict struct {
	Port, Result, Status string
	Remaining            []string
}

func (g gateway) report(reports ...string) []verdict {
	g.t.Helper()
	status, text := g.post("/reports", `{"reports":[`+strings.Join(reports, ",")+`]}`)
	var answer struct{ Verdicts []verdict }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK {
		g.t.Fatalf("%d %s %v", status, text, err)
	}
	return answer.Verdicts
}

func of(port, entity, host string) string {
	return fmt.Sprintf(`{"port":%q,"entity":%q,"host":%q}`, port, entity, host)
}

func TestEveryReportGetsItsVerdict(t *testing.T) {
	t.Parallel()
	g := open(t)
	for _, body := range []string{`{"agent_type":"Open vSwitch agent","host":"cmp-1"}`,
		`{"agent_type":"DHCP agent","host":"net-1","binary":"dhcp","topic":"dhcp_agent","configurations":{"networks":1}}`} {
		for _, want := range []string{"new", "alive"} {
			if status, text := g.post("/state", body); status != 200 || text != `{"status":"`+want+`"}` {
				t.Fatalf("%s: %d %s", body, status, text)
			}
		}
	}
	p := g.ports(2)
	const nobody = "00000000-0000-4000-8000-000000000000"

	got := g.report(of(p[0], "L2", "cmp-2"), of("x", "L2", "cmp-1"), of(nobody, "L2", "cmp-1"), of(p[1], "DHCP", "net-1"),
		of(p[0], "moon", ""), of(strings.ToUpper(p[1]), "L2", "cmp-1"))

	both := []string{"DHCP", "L2"}
	if d := cmp.Diff([]verdict{
		{p[0], "ignored", "DOWN", both}, {"x", "ignored", "", []string{}}, {nobody, "gone", "", []string{}},
		{p[1], "done", "ACTIVE", []string{}}, {p[0], "ignored", "DOWN", both}, {strings.ToUpper(p[1]), "done", "ACTIVE", []string{}},
	}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]verdict{{p[0], "waiting", "DOWN", []string{"DHCP"}}}, g.report(of(p[0], "L2", "cmp-1"))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]verdict{{p[1], "ignored", "ACTIVE", []string{}}}, g.report(of(p[1], "L2", "cmp-1"))); d != "" {
		t.Error(d)
	}
	if got := g.report(); len(got) != 0 {
		t.Error(got)
	}
}

func TestReportsTellOfMoreThanSuccess(t *testing.T) {
	t.Parallel()
	g := open(t)
	g.post("/state", `{"agent_type":"Open vSwitch agent","host":"cmp-1"}`)
	p := g.ports(1)[0]
	say := func(event string, revision int) string {
		return fmt.Sprintf(`{"port":%q,"entity":"L2","host":"cmp-1","event":%q,"revision":%d}`, p, event, revision)
	}
	l2 := []string{"L2"}

	got := g.report(say("begun", 1), say("begun", 1), say("moon", 0), say("complete", 99), say("complete", -1))
	if d := cmp.Diff([]verdict{{p, "waiting", "BUILD", l2}, {p, "ignored", "BUILD", l2}, {p, "ignored", "BUILD", l2},
		{p, "ignored", "BUILD", l2}, {p, "ignored", "BUILD", l2}}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]verdict{{p, "done", "ACTIVE", []string{}}}, g.report(say("complete", 2))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]verdict{{p, "waiting", "DOWN", l2}}, g.report(say("lost", 0))); d != "" {
		t.Error(d)
	}
}

func TestWholeRestartOfAnAgentIsOneRequest(t *testing.T) {
	t.Parallel()
	g := open(t)
	g.post("/state", `{"agent_type":"Open vSwitch agent","host":"cmp-1"}`)
	ports := g.ports(250)
	reports := make([]string, 0, 1000)
	for range 4 {
		for _, p := range ports {
			reports = append(reports, of(p, "L2", "cmp-1"))
		}
	}

	got := g.report(reports...)

	for i, v := range got {
		want := "done"
		if i >= len(ports) {
			want = "ignored"
		}
		if v.Port != ports[i%len(ports)] || v.Result != want || v.Status != "ACTIVE" {
			t.Fatalf("verdict %d: %+v", i, v)
		}
	}
	if status, text := g.post("/reports", `{"reports":[`+strings.Join(append(reports, reports[0]), ",")+`]}`); status != 400 {
		t.Errorf("more than a thousand: %d %s", status, text)
	}
}

// C18 C50 C72: ports that are bound nowhere keep nobody else in the batch waiting, and each is told apart.
func TestUnboundPortsHoldUpNoBatch(t *testing.T) {
	t.Parallel()
	g := open(t)
	g.post("/state", `{"agent_type":"DHCP agent","host":"net-1"}`)
	g.post("/state", `{"agent_type":"Open vSwitch agent","host":"cmp-1"}`)
	ports := g.ports(65)
	none := ""
	for _, p := range ports[:17] {
		if _, err := g.store.UpdatePort(t.Context(), uuid.MustParse(p), network.PortChange{Host: &none}, nil); err != nil {
			t.Fatal(err)
		}
	}
	reports := make([]string, len(ports))
	for i, p := range ports {
		reports[i] = of(p, "DHCP", "net-1")
	}
	for i, v := range g.report(reports...) {
		want := verdict{ports[i], "waiting", "DOWN", []string{"L2"}}
		if i < 17 {
			want.Result, want.Remaining = "done", []string{}
		}
		if d := cmp.Diff(want, v); d != "" {
			t.Errorf("port %d: %s", i, d)
		}
	}
}

// Agents that all come at once are told to come again, before they cost anything, and lose nothing by it.
func TestMoreReportsThanCanBeSettledAreSentAgain(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	g := on(t, url)
	g.post("/state", `{"agent_type":"Open vSwitch agent","host":"cmp-1"}`)
	p := g.ports(1)[0]
	held := storetest.Connect(t, url)
	if _, err := held.Exec(t.Context(), `begin; select from port where id = '`+p+`' for update`); err != nil {
		t.Fatal(err)
	}
	full := func(report string) string {
		return `{"reports":[` + strings.Repeat(report+",", 999) + report + `]}`
	}
	var agents sync.WaitGroup
	for range 12 {
		agents.Go(func() {
			status, text := 429, ""
			for until := time.Now().Add(time.Minute); status == 429 && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
				status, text = g.post("/reports", full(of(p, "L2", "cmp-1")))
			}
			if status != 200 {
				t.Errorf("%d %.200s", status, text)
			}
		})
	}
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		status, text := g.post("/reports", full(of("x", "L2", "cmp-1")))
		if status == 429 && strings.Contains(text, "Send these again") {
			break
		}
		if status != 200 || time.Now().After(until) {
			t.Fatalf("nobody is asked to come again: %d %s", status, text)
		}
	}
	if _, err := held.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	agents.Wait()
	if d := cmp.Diff([]verdict{{p, "ignored", "ACTIVE", []string{}}}, g.report(of(p, "L2", "cmp-1"))); d != "" {
		t.Error(d)
	}
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	g := open(t)
	for _, tc := range []struct {
		path, body string
		want       int
	}{
		{"/state", `{`, 400},
		{"/state", ``, 400},
		{"/state", `null`, 400},
		{"/state", `{}`, 400},
		{"/state", `{"agent_type":"x"}`, 400},
		{"/state", `{"agent_type":7,"host":"h"}`, 400},
		{"/state", `{"agent_type":"x","host":"h","moon":1}`, 400},
		{"/state", `{"agent_type":"x","host":"h\u0000"}`, 400},
		{"/state", `{"agent_type":"x","host":"` + strings.Repeat("h", 256) + `"}`, 400},
		{"/state", `{"agent_type":"x","host":"h","configurations":[]}`, 400},
		{"/state", `{"agent_type":"x","host":"h","configurations":{"a":"\u0000"}}`, 400},
		{"/state", `{"agent_type":"x","host":"h","configurations":{"a":1e99999}}`, 400},
		{"/state", `{"agent_type":"x","host":"h","configurations":null}`, 200},
		{"/reports", `{`, 400},
		{"/reports", `null`, 400},
		{"/reports", `{}`, 400},
		{"/reports", `{"reports":{}}`, 400},
		{"/reports", `{"reports":[7]}`, 400},
		{"/reports", `{"reports":[{"port":7}]}`, 400},
		{"/reports", `{"reports":[{"port":"x","entity":"L2","host":"h","moon":1}]}`, 400},
		{"/reports", `{"reports":[{}]}`, 200},
		{"/reports", `{"reports":[{"port":"` + strings.Repeat("x", 1<<20) + `"}]}`, 413},
		{"/moon", `{}`, 404},
	} {
		if status, text := g.post(tc.path, tc.body); status != tc.want || status >= 400 && !strings.Contains(text, `"message":"`) {
			t.Errorf("%s %.100s: want %d, got %d %.200s", tc.path, tc.body, tc.want, status, text)
		}
	}
	for token, want := range map[string]int{"": 401, "u:p": 403} {
		g.token = token
		if status, _ := g.post("/reports", `{"reports":[]}`); status != want {
			t.Errorf("token %q: %d", token, status)
		}
	}
}
