package torture

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/api/osapi"
	"berth/internal/devstack"
	"berth/internal/server/servertest"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// startPostgres starts a PostgreSQL server with a migrated database. startPostgres returns the URL of the database, and a function that
// sends a signal to every process of the server.
func startPostgres(t *testing.T) (database string, signal func(syscall.Signal)) {
	t.Helper()
	dir := filepath.Join(filepath.Dir(servertest.DataFolder(t)), "postgres")
	p, err := devstack.StartPostgres(t.Context(), devstack.PostgresOptions{Dir: dir, Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	if _, err := db.Migrate(t.Context(), p.URL); err != nil {
		t.Fatal(err)
	}
	signal = func(s syscall.Signal) {
		t.Helper()
		lock, err := os.ReadFile(filepath.Join(dir, "cluster", "postmaster.pid"))
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(lock), "\n")
		for _, child := range processesOf(t, first) {
			if err := syscall.Kill(child, s); err != nil && err != syscall.ESRCH {
				t.Fatal(err)
			}
		}
	}
	t.Cleanup(func() { signal(syscall.SIGCONT) }) // so that Stop can stop the server
	return p.URL, signal
}

// processesOf returns the IDs of a process and its children. The process comes first, so that after a SIGSTOP it starts no more children.
func processesOf(t *testing.T, parent string) []int {
	t.Helper()
	id, err := strconv.Atoi(parent)
	if err != nil {
		t.Fatal(err)
	}
	all := []int{id}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", id, id))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range strings.Fields(string(children)) {
		child, err := strconv.Atoi(c)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, child)
	}
	return all
}

// routesWithoutDatabase are the routes that do not read the database, with their statuses.
var routesWithoutDatabase = []string{
	"GET /networking/: 200", "GET /networking/v2.0: 200", "GET /networking/v2.0/: 200",
	"GET /networking/v2.0/extensions: 200", "GET /networking/v2.0/extensions/{alias}: 200", "GET /networking/v2.0/quotas/project: 200",
	"GET /networking/v2.0/quotas/tenant: 200", "GET /networking/v2.0/quotas/{project}/default: 200", "GET /placement/: 200",
	"GET /reservation/: 300", "GET /reservation/versions: 300",
}

// requiredQueries are the queries of routes that refuse a request without a query.
var requiredQueries = map[string]string{"/placement/allocation_candidates": "?resources=VCPU:1", "/placement/usages": "?project_id=demo",
	"/operator/v1/candidates/explain": "?resources=VCPU:1"}

// expectUnavailable sends an example of each route's requests. Each route must answer 503 with Retry-After in the format of its API, or say
// that the change may have been made. expectUnavailable returns the routes that answered otherwise, with their statuses.
func expectUnavailable(h *hostileClient) (others []string) {
	h.t.Helper()
	var mu sync.Mutex
	var requests sync.WaitGroup
	forEachRoute(h, func(api *osapi.API, r osapi.Route) {
		if strings.HasSuffix(r.Path, ".json") {
			return
		}
		route := r.Method + " " + api.Prefix + r.Path
		path := strings.ReplaceAll(h.concretePath(api.Prefix+r.Path), "{seq}", "1")
		path += requiredQueries[path]
		a := attack{method: r.Method, path: path, body: strings.NewReplacer(providerGenerationMark, "1", consumerGenerationMark, "1").Replace(h.fill(validBodies[route]))}
		requests.Go(func() {
			status, body, header, err := h.send(h.t.Context(), a)
			if err != nil {
				h.t.Errorf("%s: got no answer: %v", route, err)
				return
			}
			if status != http.StatusServiceUnavailable {
				mu.Lock()
				defer mu.Unlock()
				others = append(others, fmt.Sprintf("%s: %d", route, status))
				return
			}
			if err := checkErrorBody(a.path, status, header, body); err != nil {
				h.t.Errorf("%s: got the body %.300s; want an error in the format of the API: %v", route, body, err)
			}
			repeatable := r.Method != http.MethodPost && r.Method != http.MethodPatch || r.Repeatable
			unknown := bytes.Contains(body, []byte("may have been made"))
			if after, err := strconv.Atoi(header.Get("Retry-After")); (err != nil || after < 1) && (repeatable || !unknown) || unknown && repeatable {
				h.t.Errorf("%s: got Retry-After %q and the body %.300s; want seconds, or a POST that says that the change may have been made",
					route, header.Get("Retry-After"), body)
			}
		})
	})
	requests.Wait()
	slices.Sort(others)
	return others
}

func TestHungDatabase_EveryRouteAnswers503(t *testing.T) {
	t.Parallel()
	database, signal := startPostgres(t)
	h := newHostileClientOn(t, database, "api", "BERTH_REQUEST_TIMEOUT=2s")

	signal(syscall.SIGSTOP)
	others := expectUnavailable(h)
	signal(syscall.SIGCONT)

	want := slices.Sorted(slices.Values(routesWithoutDatabase))
	if d := cmp.Diff(want, others); d != "" {
		t.Errorf("routes that did not answer 503 while the database hung (-want +got):\n%s", d)
	}
	servertest.Await(t, "the APIs answer after the database continues", func() bool {
		status, _, _, err := h.send(t.Context(), attack{method: http.MethodGet, path: "/networking/v2.0/ports"})
		return err == nil && status == http.StatusOK
	})
}

func TestUnusableDatabase_ReasonIsNamed(t *testing.T) {
	t.Parallel()
	superuser := storetest.URL(t)
	name := strings.TrimPrefix(must(url.Parse(superuser)).Path, "/")
	h := newHostileClientOn(t, superuser, "api")
	create := attack{method: http.MethodPost, path: "/networking/v2.0/networks", body: `{"network":{"name":"green"}}`}
	for _, tc := range []struct{ name, begin, end, reason string }{
		{"read-only", `alter database ` + name + ` set default_transaction_read_only = on`, `alter database ` + name + ` reset default_transaction_read_only`, "accepts no writes"},
		{"no connections allowed", `alter database ` + name + ` allow_connections off`, `alter database ` + name + ` allow_connections on`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			admin := *must(url.Parse(superuser))
			admin.Path, admin.RawQuery = "/postgres", ""
			restart := func(sql string) { // existing sessions keep their settings, so they end
				storetest.Exec(t, admin.String(), sql)
				storetest.Exec(t, admin.String(), `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and application_name = 'berth'`, name)
			}
			restart(tc.begin)
			defer restart(tc.end)
			servertest.Await(t, "a write names the reason", func() bool {
				status, body, header, err := h.send(t.Context(), create)
				if err != nil || status != http.StatusServiceUnavailable {
					t.Fatalf("create a network: got status %d, body %s, error %v; want 503", status, body, err)
				}
				return strings.Contains(string(body), tc.reason) && header.Get("Retry-After") != ""
			})
		})
	}
	servertest.Await(t, "writes succeed again", func() bool {
		status, _, _, err := h.send(t.Context(), create)
		return err == nil && status == http.StatusCreated
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestLockedTable_OtherTablesAndOperatorsAreServed(t *testing.T) {
	t.Parallel()
	database := storetest.URL(t)
	h := newHostileClientOn(t, database, "api")
	rival := storetest.NewRival(t, database)
	rival.Do(`begin`)
	rival.Do(`lock table port`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writers sync.WaitGroup
	results := make(chan int, 10000)
	for range 200 {
		writers.Go(func() { // writes again and again, as an impatient client does
			for ctx.Err() == nil {
				status, _, _, err := h.send(ctx, attack{method: http.MethodPost, path: "/networking/v2.0/ports",
					body: `{"port":{"network_id":"` + h.ids["network"] + `","project_id":"demo"}}`})
				if err == nil {
					results <- status
				}
			}
		})
	}
	rival.AwaitWaiter()
	if status := <-results; status != http.StatusServiceUnavailable { // the clients have filled all connections that they can get
		t.Errorf("create a port while the table is locked: got status %d, want 503", status)
	}
	for _, a := range []attack{
		{method: http.MethodGet, path: "/networking/v2.0/networks"},
		{method: http.MethodPost, path: "/networking/v2.0/networks", body: `{"network":{"name":"green"}}`},
		{method: http.MethodGet, path: "/placement/resource_providers"},
		{method: http.MethodPost, path: "/placement/resource_providers", body: `{"name":"cmp-7"}`},
		{method: http.MethodGet, path: "/reservation/v1/leases"},
		{method: http.MethodGet, path: "/journal/v1/entries"},
		{method: http.MethodGet, path: "/operator/v1/providers/" + h.ids["provider"] + "/history"},
	} {
		status, body, _, err := h.send(t.Context(), a)
		if err != nil || status >= 300 {
			t.Errorf("%s while another table is locked: got status %d, body %s, error %v; want success", a, status, body, err)
		}
	}
	if _, body := servertest.ReadReadiness(t, h.app); body.Checks["database"] != "ok" {
		t.Errorf("/readyz while a table is locked: got %q for the database, want ok", body.Checks["database"])
	}
	rival.Do(`rollback`)
	cancel()
	writers.Wait()
}

func TestGoneClient_StopsItsWork(t *testing.T) {
	t.Parallel()
	database := storetest.URL(t)
	h := newHostileClientOn(t, database, "api")
	rival := storetest.NewRival(t, database)
	watch := storetest.Connect(t, database)
	waiting := func() (n int) {
		if err := watch.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	lock := `lock table ` + strings.Join([]string{"network", "port", "provider", "consumer", "lease", "agent", "journal_entry", "generation_change"}, ", ")
	for _, a := range []attack{
		{method: http.MethodGet, path: "/networking/v2.0/ports"},
		{method: http.MethodPost, path: "/networking/v2.0/networks", body: `{"network":{"name":"green"}}`},
		{method: http.MethodPut, path: "/networking/v2.0/ports/{port}", body: `{"port":{"name":"p"}}`},
		{method: http.MethodGet, path: "/placement/allocation_candidates?resources=VCPU:1"},
		{method: http.MethodPut, path: "/placement/allocations/{consumer}", body: `{"allocations":{"{provider}":{"resources":{"VCPU":2}}},"project_id":"demo","user_id":"u","consumer_generation":1,"consumer_type":"INSTANCE"}`},
		{method: http.MethodGet, path: "/reservation/v1/leases"},
		{method: http.MethodPost, path: "/agent/v1/reports", body: validBodies["POST /agent/v1/reports"]},
		{method: http.MethodGet, path: "/journal/v1/entries"},
		{method: http.MethodGet, path: "/operator/v1/providers/{provider}/history"},
	} {
		t.Run(a.method+" "+a.path, func(t *testing.T) {
			rival.Do(`begin`)
			rival.Do(lock)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			a.path, a.body = h.fill(a.path), h.fill(a.body)
			var clients sync.WaitGroup
			for range 3 { // several clients, so that the requests that share a transaction are covered, too
				clients.Go(func() { _, _, _, _ = h.send(ctx, a) })
			}
			rival.AwaitWaiter()
			cancel()
			clients.Wait()
			servertest.Await(t, "no statement waits for a lock", func() bool { return waiting() == 0 })
			rival.Do(`rollback`)
		})
	}
}
