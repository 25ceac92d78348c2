package placement_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/store/storetest"
)

// writers is how many requests compete in one round.
const writers = 64

// rounds returns how many times the writers compete.
func rounds(t *testing.T) int { return storetest.Rounds(t, 20) }

// arena is a Placement API for tests with competing requests. arena also holds a connection to the API's
// database, and an HTTP client that keeps one connection for each competing writer.
type arena struct {
	*client
	db   *pgx.Conn
	http *http.Client
}

func newArena(t *testing.T) *arena {
	t.Helper()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	connections := &http.Transport{MaxIdleConnsPerHost: writers}
	t.Cleanup(connections.CloseIdleConnections)
	return &arena{
		serveOver(t, s, identity.Noauth{}, policy.Options{}),
		storetest.Connect(t, url),
		&http.Client{Transport: connections},
	}
}

// request is one competing request. If berth refuses the request because another request was faster, the
// response must have the status `lost` and the error code `code`.
type request struct {
	version, method, path, body string
	lost                        int
	code                        string
}

const concurrent = "placement.concurrent_update"

// contend sends the requests of all writers in parallel and returns the index of the request that succeeded.
func (a *arena) contend(want func(writer int) request) int {
	a.t.Helper()
	var start, all sync.WaitGroup
	start.Add(1)
	statuses := make([]int, writers)
	for i := range writers {
		r := want(i)
		all.Go(func() {
			start.Wait()
			status, code := a.do(r)
			if statuses[i] = status; status >= 300 && (status != r.lost || code != r.code) {
				a.t.Errorf(
					"%s %s by a competing request: got %d %s, want success or the expected refusal",
					r.method, r.path, status, code,
				)
			}
		})
	}
	start.Done()
	all.Wait()
	winner := -1
	for i, status := range statuses {
		switch {
		case status == 0 || status >= 300:
		case winner >= 0:
			a.t.Fatalf(
				"the competing requests %d and %d both succeeded, want exactly one success; the request is %+v",
				winner, i, want(i),
			)
		default:
			winner = i
		}
	}
	if winner < 0 {
		a.t.Fatalf("no competing request succeeded, want exactly one success; the request is %+v", want(0))
	}
	return winner
}

// do sends a request and returns the status and the error code.
func (a *arena) do(r request) (int, string) {
	q, err := http.NewRequestWithContext(a.t.Context(), r.method, a.url+r.path, strings.NewReader(r.body))
	if err != nil {
		a.t.Error(err)
		return 0, ""
	}
	q.Header.Set("X-Auth-Token", "admin")
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("OpenStack-API-Version", "placement "+r.version)
	w, err := a.http.Do(q)
	if err != nil {
		a.t.Error(err)
		return 0, ""
	}
	defer func() { _ = w.Body.Close() }()
	var refusal struct{ Errors []struct{ Code string } }
	if err := json.NewDecoder(w.Body).Decode(&refusal); err == nil && len(refusal.Errors) == 1 {
		return w.StatusCode, refusal.Errors[0].Code
	}
	return w.StatusCode, ""
}

// none fails the test if the query returns a row.
func (a *arena) none(what, sql string) {
	a.t.Helper()
	rows, err := a.db.Query(a.t.Context(), sql)
	if err != nil {
		a.t.Fatal(err)
	}
	if found, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(found) > 0 {
		a.t.Errorf("rows that violate the invariant %s: got %v, error %v; want no rows and no error",
			what, found, err)
	}
}

// checkInvariants checks the conditions that hold in every database with allocations.
func (a *arena) checkInvariants() {
	a.t.Helper()
	a.none(
		"consumers without allocations",
		`select uuid from consumer c where not exists (select from allocation where consumer_id = c.id)`,
	)
	a.none(
		"allocations without a consumer",
		`select consumer_id::text from allocation a where not exists (select from consumer where id = a.consumer_id)`,
	)
	a.none(
		"inventories whose usage is not the sum of their allocations",
		`select 'wrong' where (`+storetest.CountWrongUsage+`) > 0`,
	)
	a.none("inventories from which too much is taken", `
		select format('%s of %s', sum(a.amount), i.total)
		from inventory i
		join allocation a using (provider_id, class_id)
		group by i.provider_id, i.class_id
		having sum(a.amount) > (i.total - i.reserved) * i.allocation_ratio`)
}
