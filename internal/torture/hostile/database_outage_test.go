package hostile

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/api/osapi"
	"berth/internal/server/servertest"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// routesWithoutDatabase are the routes that do not read the database, each with the status of its answer.
var routesWithoutDatabase = []string{
	"GET /console/login: 200", "GET /console/ports: 200", "GET /console/static/{file}: 200", "POST /console/login: 400", "POST /console/logout: 200",
	"GET /networking/: 200", "GET /networking/v2.0: 200", "GET /networking/v2.0/: 200",
	"GET /networking/v2.0/extensions: 200", "GET /networking/v2.0/extensions/{alias}: 200", "GET /networking/v2.0/quotas/project: 200",
	"GET /networking/v2.0/quotas/tenant: 200", "GET /networking/v2.0/quotas/{project}/default: 200", "GET /operator/v1/policy/rules: 200",
	"GET /placement/: 200", "GET /reservation/: 300", "GET /reservation/versions: 300",
	"POST /operator/v1/codec/decode: 409", "POST /operator/v1/codec/encode: 409", "POST /operator/v1/policy/check: 200",
}

// requestsWithoutWrite are the routes whose example request berth answers without writing a row, because the
// request asks a question, the tag does not exist, or the generation is not the current one. Each route has
// the status of its answer.
var requestsWithoutWrite = []string{
	"DELETE /networking/v2.0/networks/{id}/tags/{tag}: 404", "DELETE /networking/v2.0/ports/{id}/tags/{tag}: 404",
	"DELETE /networking/v2.0/security-groups/{id}/tags/{tag}: 404", "DELETE /networking/v2.0/subnets/{id}/tags/{tag}: 404",
	"DELETE /networking/v2.0/trunks/{id}/tags/{tag}: 404", "POST /console/login: 400", "POST /console/logout: 200",
	"POST /operator/v1/codec/decode: 409", "POST /operator/v1/codec/encode: 409",
	"POST /operator/v1/policy/check: 200", "POST /placement/reshaper: 409",
}

// everyRouteAtOnce lets expectUnavailable open a connection for each route at the same time.
const everyRouteAtOnce = "BERTH_MAX_CONNECTIONS_PER_ADDRESS=0"

// requiredQueries has the query string for each route that refuses a request without a query string.
var requiredQueries = map[string]string{
	"/placement/allocation_candidates": "?resources=VCPU:1",
	"/placement/usages":                "?project_id=demo",
	"/operator/v1/candidates/explain":  "?resources=VCPU:1",
	"/console/find":                    "?id=1",
}

// expectUnavailable sends an example request to each route or, if onlyWrites is true, to each route whose
// method is not GET. Each route must answer 503 in the format of its API, with the given reason in its
// message; the answer must have the header Retry-After, or say that the change may have been made.
// expectUnavailable returns the routes that gave another answer, each with the status of that answer.
func expectUnavailable(h *hostileClient, onlyWrites bool, reason db.Reason) (others []string) {
	h.t.Helper()
	var mu sync.Mutex
	var requests sync.WaitGroup
	forEachRoute(h, func(api *osapi.API, r osapi.Route) {
		if strings.HasSuffix(r.Path, ".json") || onlyWrites && r.Method == http.MethodGet {
			return
		}
		route := r.Method + " " + api.Prefix + r.Path
		if onlyWrites && strings.HasPrefix(route, "POST /console/journal/") {
			return // without a reason, the console reads the database and shows the form again
		}
		path := strings.ReplaceAll(h.concretePath(api.Prefix+r.Path), "{seq}", "1")
		path += requiredQueries[path]
		a := attack{
			method: r.Method,
			path:   path,
			body: strings.NewReplacer(providerGenerationMark, "1", consumerGenerationMark, "1").
				Replace(h.fill(validBodies[route])),
		}
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
				h.t.Errorf("%s: got the body %.300s; want an error in the format of the API: %v",
					route, body, err)
			}
			if !bytes.Contains(body, []byte(reason)) {
				h.t.Errorf("%s: got the body %.300s; want an error with the reason %q", route, body, reason)
			}
			repeatable := r.Method != http.MethodPost && r.Method != http.MethodPatch || r.Repeatable
			unknown := bytes.Contains(body, []byte("may have been made"))
			if after, err := strconv.Atoi(header.Get("Retry-After")); (err != nil || after < 1) &&
				(repeatable || !unknown) ||
				unknown && repeatable {
				h.t.Errorf(
					"%s: got Retry-After %q and the body %.300s; want seconds, or a POST that says that the change may have been made",
					route, header.Get("Retry-After"), body,
				)
			}
		})
	})
	requests.Wait()
	slices.Sort(others)
	return others
}

func TestUnavailableDatabase_EveryRouteAnswers503(t *testing.T) {
	t.Parallel()
	postgres := storetest.NewServer(t)
	h := newHostileClientOn(t, postgres.URL, "api", everyRouteAtOnce, "BERTH_REQUEST_TIMEOUT=50s")
	for _, outage := range append(postgres.Outages(), sessionsEnd(t, postgres)) {
		if outage.Reason != db.NoAnswer { // such an outage ends no request before the request timeout
			t.Run(outage.Name, func(t *testing.T) { checkOutage(t, h, outage) })
		}
	}
}

func TestHangingDatabase_EveryRouteAnswers503(t *testing.T) {
	t.Parallel()
	postgres := storetest.NewServer(t)
	h := newHostileClientOn(t, postgres.URL, "api", everyRouteAtOnce, "BERTH_REQUEST_TIMEOUT=20s")
	for _, outage := range postgres.Outages() {
		if outage.Reason == db.NoAnswer {
			checkOutage(t, h, outage)
		}
	}
}

// checkOutage checks that each route answers 503 during the outage, and that the APIs answer after it.
func checkOutage(t *testing.T, h *hostileClient, outage storetest.Outage) {
	t.Helper()
	end := sync.OnceFunc(outage.End)
	defer end()
	outage.Begin()
	others := expectUnavailable(h, outage.Reads, "")
	servertest.Await(t, "a write names the reason", func() bool {
		status, body, header, err := h.send(t.Context(), attack{
			method: http.MethodPost,
			path:   "/networking/v2.0/networks",
			body:   `{"network":{"name":"green"}}`,
		})
		if err != nil || status != http.StatusServiceUnavailable {
			t.Fatalf("create a network: got status %d, body %s, error %v; want 503", status, body, err)
		}
		return strings.Contains(string(body), string(outage.Reason)) && header.Get("Retry-After") != ""
	})
	end()
	want := routesWithoutDatabase
	if outage.Reads {
		want = requestsWithoutWrite
	}
	if d := cmp.Diff(slices.Sorted(slices.Values(want)), others); d != "" {
		t.Errorf("routes that answer something else than 503 during the outage (-want +got):\n%s", d)
	}
	servertest.Await(t, "the APIs answer after the outage", func() bool {
		status, _, _, err := h.send(t.Context(),
			attack{method: http.MethodGet, path: "/networking/v2.0/ports"})
		return err == nil && status == http.StatusOK
	})
}

// sessionsEnd returns an outage in which each statement waits for a lock until the test terminates the
// session of the statement.
func sessionsEnd(t *testing.T, postgres *storetest.Server) storetest.Outage {
	t.Helper()
	var rival storetest.Rival
	done, ended := make(chan struct{}), make(chan struct{})
	return storetest.Outage{
		Name:   "sessions end (57P01)",
		Reason: db.ShuttingDown,
		Begin: func() {
			rival = storetest.NewRival(t, postgres.SuperuserURL())
			// PostgreSQL ends the other session if the two sessions wait for each other
			rival.Do(`set deadlock_timeout = '1h'`)
			rival.Do(`begin`)
			rival.Do(`do $$
				declare
					name text;
				begin
					for name in select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace loop
						execute format('lock table %I', name);
					end loop;
				end $$`)
			go func() {
				defer close(ended)
				for {
					select {
					case <-done:
						return
					default:
						postgres.EndSessions()
					}
				}
			}()
		},
		End: func() {
			close(done)
			<-ended
			rival.Do(`rollback`)
		},
	}
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
				status, _, _, err := h.send(
					ctx,
					attack{method: http.MethodPost, path: "/networking/v2.0/ports",
						body: `{"port":{"network_id":"` + h.ids["network"] + `","project_id":"demo"}}`},
				)
				if err == nil {
					results <- status
				}
			}
		})
	}
	rival.AwaitWaiter()
	// the waiting requests already use all database connections that requests of this kind may use
	if status := <-results; status != http.StatusServiceUnavailable {
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
			t.Errorf("%s while another table is locked: got status %d, body %s, error %v; want success",
				a, status, body, err)
		}
	}
	servertest.Await(t, "/readyz names the database as ok while a table is locked", func() bool {
		_, body := servertest.ReadReadiness(t, h.app)
		return body.Checks["database"] == "ok"
	})
	rival.Do(`rollback`)
	cancel()
	writers.Wait()
}

func TestGoneClient_StopsItsWork(t *testing.T) {
	t.Parallel()
	database := storetest.URL(t)
	h := newHostileClientOn(t, database, "api")
	rival := storetest.NewRival(t, database)
	const lock = `lock table network, port, provider, consumer, lease, agent, journal_entry, generation_change`
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
			// several clients, so that the test also covers requests that berth handles in one transaction
			for range 3 {
				clients.Go(func() { _, _, _, _ = h.send(ctx, a) })
			}
			rival.AwaitWaiter()
			cancel()
			clients.Wait()
			rival.AwaitNoWaiter()
			rival.Do(`rollback`)
		})
	}
}

func TestHungDatabase_EveryRouteAnswers503AtOnce(t *testing.T) {
	t.Parallel()
	postgres := storetest.NewServer(t)
	u, err := url.Parse(postgres.URL)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("connect_timeout", "600") // no request must fail before the hang is detected
	u.RawQuery = query.Encode()
	h := newHostileClientOn(t, u.String(), "api", everyRouteAtOnce, "BERTH_REQUEST_TIMEOUT=50s",
		"BERTH_DATABASE_ANSWER_TIMEOUT=15s")
	hang := postgres.Outages()[0]
	end := sync.OnceFunc(hang.End)
	defer end()
	hang.Begin()
	for _, requests := range []string{"that run when the hang is detected", "that arrive later"} {
		if d := cmp.Diff(slices.Sorted(slices.Values(routesWithoutDatabase)), expectUnavailable(h, false, db.Hung)); d != "" {
			t.Errorf("routes that answer requests %s (-want +got):\n%s", requests, d)
		}
	}
	end()
	servertest.Await(t, "the APIs answer after the hang", func() bool {
		status, _, _, err := h.send(t.Context(),
			attack{method: http.MethodGet, path: "/networking/v2.0/ports"})
		return err == nil && status == http.StatusOK
	})
}
