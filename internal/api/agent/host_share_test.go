package agent_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/api/agent"
	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// contested is a gateway with two ports of the host cmp-1, one of which another transaction has locked.
type contested struct {
	gateway
	locked, other string
	lock          *pgx.Conn
}

func newContested(t *testing.T) contested {
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	server := serveAPI(t, agent.Options{Store: s.Network, Identity: identity.Noauth{}, Tokens: s.Agents})
	g := gateway{t, server + "/agent/v1", "admin", s}
	g.post("/state", `{"agent_type":"Open vSwitch agent","host":"cmp-1"}`)
	p := g.ports(2)
	c := contested{g, p[0], p[1], storetest.Connect(t, url)}
	if _, err := c.lock.Exec(t.Context(), `begin; select from port where id = '`+p[0]+`' for update`); err != nil {
		t.Fatal(err)
	}
	return c
}

// flood sends requests about the locked port with a token of the host cmp-1 until the returned function
// unlocks the port.
func (c contested) flood(requests, reportsEach int) (unlock func()) {
	hostile, _ := c.as("cmp-1")
	one := report(c.locked, "L2", "cmp-1")
	body := `{"reports":[` + strings.Repeat(one+",", reportsEach-1) + one + `]}`
	var flood sync.WaitGroup
	ctx, stop := context.WithCancel(c.t.Context())
	for range requests {
		flood.Go(func() {
			for ctx.Err() == nil {
				// 503: the lock timeout of the database
				if status, text := hostile.post("/reports", body); status != 200 && status != 429 &&
					status != 503 {
					c.t.Errorf("POST /reports of the busy host: got %d %.200s, want 200, 429 or 503",
						status, text)
					return
				}
			}
		})
	}
	return func() {
		stop()
		if _, err := c.lock.Exec(c.t.Context(), `rollback`); err != nil {
			c.t.Error(err)
		}
		flood.Wait()
	}
}

// await calls f until it returns true.
func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	for until := time.Now().Add(10 * time.Minute); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not reached in ten minutes: %s", what)
		}
	}
}

func TestReports_OneHostLeavesPlacesForOthers(t *testing.T) {
	t.Parallel()
	c := newContested(t)
	unlock := c.flood(9, 1000)
	defer unlock()
	busy, _ := c.as("cmp-1")
	await(t, "a 429 for the busy host", func() bool {
		status, text := busy.post("/reports", `{"reports":[`+report("x", "L2", "cmp-1")+`]}`)
		return status == 429 && strings.Contains(text, "reports")
	})
	other, _ := c.as("cmp-2")

	for range 10 {
		if status, text := other.post("/reports", `{"reports":[`+strings.Repeat(report("x", "L2", "cmp-2")+",", 999)+report("x", "L2", "cmp-2")+`]}`); status != 200 {
			t.Fatalf("full request of another host: got %d %.200s, want 200", status, text)
		}
	}
	if status, _ := c.post("/reports", `{"reports":[`+report(c.other, "L2", "cmp-1")+`]}`); status != 200 {
		t.Errorf("request of an administrator: got %d, want 200", status)
	}
}

func TestReports_OneHostLeavesDatabaseConnectionsForOthers(t *testing.T) {
	t.Parallel()
	c := newContested(t)
	unlock := c.flood(100, 1)
	defer unlock()
	waiting := func() (n int) {
		if err := c.store.DB.QueryRow(db.WithReserve(t.Context()), `
			select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	await(t, "four reports that wait for the locked port", func() bool { return waiting() >= 4 })
	other, _ := c.as("cmp-2")

	for range 20 {
		if d := other.report(report(uuid.NewString(), "L2", "cmp-2")); len(d) != 1 || d[0].Result != "gone" {
			t.Fatalf("report of another host: got %v, want the result gone", d)
		}
	}
	if n := waiting(); n > 4 {
		t.Errorf("database connections of the busy host: got %d, want at most 4", n)
	}
}

func TestState_LimitsWhatOneHostStores(t *testing.T) {
	t.Parallel()
	g := openWithTokens(t)
	compute, _ := g.as("cmp-1")
	state := func(kind, configurations string) string {
		return fmt.Sprintf(`{"agent_type":%q,"host":"cmp-1","configurations":%s}`, kind, configurations)
	}
	for i := range 16 {
		if status, text := compute.post("/state", state(fmt.Sprintf("type %d", i), `{}`)); status != 200 {
			t.Fatalf("agent %d of a host: got %d %s, want 200", i, status, text)
		}
	}
	text := func(n int) string { return `{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}` }
	for _, tc := range []struct {
		name, body string
		want       int
		message    string
	}{
		{"17th type", state("type 16", `{}`), http.StatusConflict, "has agents of 16 types"},
		{"known type", state("type 15", `{}`), http.StatusOK, "alive"},
		{"64 KiB of configurations", state("type 0", text(64<<10)), http.StatusOK, "alive"},
		{"more configurations", state("type 0", text(64<<10+1)), http.StatusBadRequest, "'configurations' of the agent are 65537 bytes long"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if status, text := compute.in(t).post("/state", tc.body); status != tc.want ||
				!strings.Contains(text, tc.message) {
				t.Errorf("POST /state: got %d %.200s, want %d with %q", status, text, tc.want, tc.message)
			}
		})
	}
}

// By default, a host may send 10,000 reports at once.
func TestReports_ManyCountAsSeveralRequests(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	rate := &osapi.HostRate{
		PerSecond: 1.0 / 3600,
		Burst:     100,
		Now:       func() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) },
		Refused:   func(string) {},
	}
	server := serveAPI(t, agent.Options{Store: s.Network, Identity: identity.Noauth{}, Tokens: s.Agents},
		func(a *osapi.API) { a.HostRate = rate })
	g := gateway{t, server + "/agent/v1", "admin", s}
	busy, _ := g.as("cmp-1")
	other, _ := g.as("cmp-2")
	for i, step := range []struct {
		by            gateway
		host          string
		reports, want int
	}{
		{busy, "cmp-1", 10, 200},
		{busy, "cmp-1", 961, 200},
		{busy, "cmp-1", 1, 200},
		{busy, "cmp-1", 1000, 200}, // the last one of 100
		{busy, "cmp-1", 1, 429},
		{other, "cmp-2", 1000, 200},
		{other, "cmp-2", 0, 429},
		{g, "cmp-1", 1000, 200},
	} {
		one := report("x", "L2", step.host) + ","
		body := `{"reports":[` + strings.TrimSuffix(strings.Repeat(one, step.reports), ",") + `]}`
		if status, text := step.by.post("/reports", body); status != step.want {
			t.Errorf("request %d, with %d reports of %s: got %d %.200s, want %d",
				i, step.reports, step.host, status, text, step.want)
		}
	}
}
