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
	"berth/internal/api/openapi/openapitest"
	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/store"
	"berth/internal/store/portstore"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

type gateway struct {
	t     testing.TB
	url   string
	token string
	store *store.Store
}

func open(t testing.TB) gateway { return openOn(t, storetest.URL(t)) }

// openOn serves the gateway with the database at `url`.
func openOn(t testing.TB, url string) gateway {
	t.Helper()
	s := storetest.Open(t, url)
	url = serveAPI(t, agent.Options{Store: s.Network, Identity: identity.Noauth{}})
	return gateway{t, url + "/agent/v1", "admin", s}
}

// serveAPI serves the gateway until the test ends, and returns the URL of the server.
func serveAPI(t testing.TB, o agent.Options, change ...func(*osapi.API)) string {
	t.Helper()
	api := agent.New(o)
	for _, c := range change {
		c(api)
	}
	server := httptest.NewServer(openapitest.API(t, agent.Description(), api))
	t.Cleanup(server.Close)
	return server.URL
}

// in returns a copy of the gateway that reports failures to the subtest t.
func (g gateway) in(t testing.TB) gateway {
	g.t = t
	return g
}

func (g gateway) post(path, body string) (int, string) {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
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

// ports creates n ports of a server, bound to cmp-1, on a network whose DHCP agent runs on net-1.
func (g gateway) ports(n int) []string {
	g.t.Helper()
	p, ctx := "p", g.t.Context()
	nets, err := g.store.Network.CreateNetworks(ctx, []network.NetworkChange{{Project: &p}})
	if err != nil {
		g.t.Fatal(err)
	}
	cidr := netip.MustParsePrefix("10.0.0.0/16")
	if _, err := g.store.Network.CreateSubnets(ctx, []network.SubnetChange{{Network: &nets[0].ID, Project: &p, CIDR: &cidr}}); err != nil {
		g.t.Fatal(err)
	}
	host, owner := "cmp-1", "compute:nova"
	drafts := make([]network.PortChange, n)
	for i := range drafts {
		drafts[i] = network.PortChange{
			Network:     &nets[0].ID,
			Project:     &p,
			Host:        &host,
			DeviceOwner: &owner,
		}
	}
	made, err := g.store.Network.CreatePorts(ctx, drafts)
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
		g.t.Fatalf("POST /reports: got %d %s, want 200 with verdicts; error %v", status, text, err)
	}
	return answer.Verdicts
}

func report(port, entity, host string) string {
	return fmt.Sprintf(`{"port":%q,"entity":%q,"host":%q}`, port, entity, host)
}

// The reports about the ports of a request are written in goroutines, in which a panic would end the process.
// Without a store, each write panics.
func TestReports_PanicEndsOnlyItsRequest(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(agent.New(agent.Options{Identity: identity.Noauth{}}))
	t.Cleanup(server.Close)
	g := gateway{t, server.URL + "/agent/v1", "admin", nil}
	status, text := g.post("/reports", `{"reports":[`+report(uuid.NewString(), "L2", "cmp-1")+`]}`)
	if status != http.StatusInternalServerError {
		t.Errorf("report whose write panics: got %d %s, want 500", status, text)
	}
}

func TestReports_VerdictForEachReport(t *testing.T) {
	t.Parallel()
	g := open(t)
	for _, body := range []string{`{"agent_type":"Open vSwitch agent","host":"cmp-1"}`,
		`{"agent_type":"DHCP agent","host":"net-1","binary":"dhcp","topic":"dhcp_agent","configurations":{"networks":1}}`} {
		t.Run(body, func(t *testing.T) {
			g := g.in(t)
			for _, want := range []string{"new", "alive"} {
				if status, text := g.post("/state", body); status != 200 || text != `{"status":"`+want+`"}` {
					t.Fatalf("POST /state with %s: got %d %s, want 200 with status %s",
						body, status, text, want)
				}
			}
		})
	}
	p := g.ports(2)
	const unknownPort = "00000000-0000-4000-8000-000000000000"

	got := g.report(
		report(p[0], "L2", "cmp-2"),
		report("x", "L2", "cmp-1"),
		report(unknownPort, "L2", "cmp-1"),
		report(p[1], "DHCP", "net-1"),
		report(p[0], "moon", ""),
		report(strings.ToUpper(p[1]), "L2", "cmp-1"),
	)

	allBlocks := []string{"DHCP", "L2"}
	if d := cmp.Diff([]verdict{
		{p[0], "ignored", "DOWN", allBlocks}, {"x", "ignored", "", []string{}}, {unknownPort, "gone", "", []string{}},
		{p[1], "done", "ACTIVE", []string{}}, {p[0], "ignored", "DOWN", allBlocks}, {strings.ToUpper(p[1]), "done", "ACTIVE", []string{}},
	}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]verdict{{p[0], "waiting", "DOWN", []string{"DHCP"}}}, g.report(report(p[0], "L2", "cmp-1"))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]verdict{{p[1], "ignored", "ACTIVE", []string{}}}, g.report(report(p[1], "L2", "cmp-1"))); d != "" {
		t.Error(d)
	}
	if got := g.report(); len(got) != 0 {
		t.Error(got)
	}
}

func TestReports_BegunAndLostChangeTheStatus(t *testing.T) {
	t.Parallel()
	g := open(t)
	g.post("/state", `{"agent_type":"Open vSwitch agent","host":"cmp-1"}`)
	p := g.ports(1)[0]
	report := func(event string, revision int) string {
		return fmt.Sprintf(`{"port":%q,"entity":"L2","host":"cmp-1","event":%q,"revision":%d}`,
			p, event, revision)
	}
	l2 := []string{"L2"}

	got := g.report(report("begun", 1), report("begun", 1), report("moon", 0),
		report("complete", 99), report("complete", -1))
	if d := cmp.Diff([]verdict{{p, "waiting", "BUILD", l2}, {p, "ignored", "BUILD", l2}, {p, "ignored", "BUILD", l2},
		{p, "ignored", "BUILD", l2}, {p, "ignored", "BUILD", l2}}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]verdict{{p, "done", "ACTIVE", []string{}}}, g.report(report("complete", 2))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]verdict{{p, "waiting", "DOWN", l2}}, g.report(report("lost", 0))); d != "" {
		t.Error(d)
	}
}

func TestReports_BlockOfAnotherService(t *testing.T) {
	t.Parallel()
	g := open(t)
	g.post("/state", `{"agent_type":"Open vSwitch agent","host":"cmp-1"}`)
	g.post("/state", `{"agent_type":"DHCP agent","host":"net-1"}`)
	p := g.ports(1)[0]
	g.report(report(p, "L2", "cmp-1"), report(p, "DHCP", "net-1"))
	got := g.report(
		fmt.Sprintf(
			`{"port":%q,"entity":"firewall","host":"fw-1","event":"block","owner":"security team","timeout_seconds":60,"fatal":true}`,
			p,
		),
		fmt.Sprintf(`{"port":%q,"entity":"audit","event":"block","timeout_seconds":-1}`, p),
	)
	firewall := []string{"firewall"}
	if d := cmp.Diff([]verdict{{p, "waiting", "DOWN", firewall}, {p, "ignored", "DOWN", firewall}}, got); d != "" {
		t.Error(d)
	}
	blocks, err := g.store.Network.Blocks(t.Context(),
		portstore.Object{Type: "port", ID: uuid.MustParse(p)})
	if err != nil || len(blocks) != 1 || blocks[0].Owner != "security team" || blocks[0].Host != "fw-1" ||
		!blocks[0].Fatal ||
		blocks[0].Deadline.Sub(blocks[0].Since) != time.Minute {
		t.Errorf(
			"the blocks of the port: got %+v, %v; want one fatal block of the security team, on fw-1, for one minute",
			blocks,
			err,
		)
	}
	if d := cmp.Diff([]verdict{{p, "done", "ACTIVE", []string{}}}, g.report(report(p, "firewall", "fw-1"))); d != "" {
		t.Error(d)
	}
}

func TestReports_OneRequestCarriesAThousand(t *testing.T) {
	t.Parallel()
	g := open(t)
	g.post("/state", `{"agent_type":"Open vSwitch agent","host":"cmp-1"}`)
	ports := g.ports(250)
	reports := make([]string, 0, 1000)
	for range 4 {
		for _, p := range ports {
			reports = append(reports, report(p, "L2", "cmp-1"))
		}
	}

	got := g.report(reports...)

	for i, v := range got {
		want := "done"
		if i >= len(ports) {
			want = "ignored"
		}
		if v.Port != ports[i%len(ports)] || v.Result != want || v.Status != "ACTIVE" {
			t.Fatalf("verdict %d: got %+v, want port %s, result %s and status ACTIVE",
				i, v, ports[i%len(ports)], want)
		}
	}
	if status, text := g.post("/reports", `{"reports":[`+strings.Join(append(reports, reports[0]), ",")+`]}`); status != 400 {
		t.Errorf("POST /reports with 1001 reports: got %d %s, want 400", status, text)
	}
}

// A report about an unbound port neither delays nor changes the verdicts on reports about other ports in the
// same request.
func TestReports_UnboundPortsDoNotDelayTheBatch(t *testing.T) {
	t.Parallel()
	g := open(t)
	g.post("/state", `{"agent_type":"DHCP agent","host":"net-1"}`)
	g.post("/state", `{"agent_type":"Open vSwitch agent","host":"cmp-1"}`)
	ports := g.ports(65)
	none := ""
	for _, p := range ports[:17] {
		if _, err := g.store.Network.UpdatePort(t.Context(), uuid.MustParse(p), network.PortChange{Host: &none}, nil); err != nil {
			t.Fatal(err)
		}
	}
	reports := make([]string, len(ports))
	for i, p := range ports {
		reports[i] = report(p, "DHCP", "net-1")
	}
	for i, v := range g.report(reports...) {
		want := verdict{ports[i], "waiting", "DOWN", []string{"L2"}}
		if i < 17 {
			want.Result, want.Remaining = "done", []string{}
		}
		if d := cmp.Diff(want, v); d != "" {
			t.Errorf("verdict on the report about port %d (-want +got):\n%s", i, d)
		}
	}
}

// A request beyond maxPending gets a 429 before the gateway sends a query to the database. A refused request
// succeeds when the agent sends the request again later.
func TestReports_429BeyondMaxPending(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	g := openOn(t, url)
	g.post("/state", `{"agent_type":"Open vSwitch agent","host":"cmp-1"}`)
	p := g.ports(1)[0]
	lock := storetest.Connect(t, url)
	if _, err := lock.Exec(t.Context(), `begin; select from port where id = '`+p+`' for update`); err != nil {
		t.Fatal(err)
	}
	full := func(report string) string {
		return `{"reports":[` + strings.Repeat(report+",", 999) + report + `]}`
	}
	var agents sync.WaitGroup
	for range 12 {
		agents.Go(func() {
			status, text := 429, ""
			for until := time.Now().Add(10 * time.Minute); status == 429 && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
				status, text = g.post("/reports", full(report(p, "L2", "cmp-1")))
			}
			if status != 200 {
				t.Errorf("request that is repeated after each 429: got %d %.200s, want 200 in the end",
					status, text)
			}
		})
	}
	for until := time.Now().Add(10 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		status, text := g.post("/reports", full(report("x", "L2", "cmp-1")))
		if status == 429 && strings.Contains(text, "Send the request again") {
			break
		}
		if status != 200 || time.Now().After(until) {
			t.Fatalf(
				"POST /reports while a port is locked: got %d %s, want 200 or 429, and a 429 before the deadline",
				status,
				text,
			)
		}
	}
	if _, err := lock.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	agents.Wait()
	if d := cmp.Diff([]verdict{{p, "ignored", "ACTIVE", []string{}}}, g.report(report(p, "L2", "cmp-1"))); d != "" {
		t.Error(d)
	}
}

func TestRequest_InvalidInputErrors(t *testing.T) {
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
		{"/state", `{"agent_type":"x\n","host":"h"}`, 400},
		{"/state", `{"agent_type":"x","host":"h\r"}`, 400},
		{"/state", `{"agent_type":"x","host":"h","binary":"\u001b"}`, 400},
		{"/state", `{"agent_type":"x","host":"h","topic":"a\u0085b"}`, 400},
		{"/state", `{"agent_type":"x","host":"h","availability_zone":"a\u2028b"}`, 400},
		{"/reports", `{"reports":[{"port":"x","entity":"L2\n","host":"h"}]}`, 400},
		{"/reports", `{"reports":[{"port":"x","entity":"L2","host":"h\u007f"}]}`, 400},
		{"/reports", `{"reports":[{"port":"x","entity":"fw","host":"h","event":"block","owner":"a\nb"}]}`, 400},
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
		t.Run(tc.path, func(t *testing.T) {
			g := g.in(t)
			if status, text := g.post(tc.path, tc.body); status != tc.want ||
				status >= 400 && !strings.Contains(text, `"message":"`) {
				t.Errorf(
					"POST %s with the body %.100s: want %d and a message for an error, got %d %.200s",
					tc.path, tc.body, tc.want, status, text,
				)
			}
		})
	}
	for token, want := range map[string]int{"": 401, "u:p": 403} {
		t.Run(token, func(t *testing.T) {
			g := g.in(t)
			g.token = token
			if status, _ := g.post("/reports", `{"reports":[]}`); status != want {
				t.Errorf("POST /reports with token %q: got status %d, want %d", token, status, want)
			}
		})
	}
}
