package figure

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/google/uuid"

	"berth/bench/harness"
)

// readableRows is the number of rows in a measurement of reads. The measurement reads the rows one after the
// other and then begins again with the first row.
const readableRows = 1000

// openSelects measures the baseline of all reads: an HTTP request for one row by its primary key. The server
// of the baseline is a separate process that uses only net/http and the PostgreSQL driver.
func openSelects(ctx context.Context, s *harness.Stack) (*Subject, error) {
	ids := make([]uuid.UUID, readableRows)
	for i := range ids {
		ids[i] = uuid.New()
	}
	if err := s.CreateBenchTable(ctx); err != nil {
		return nil, err
	}
	if _, err := s.Rows.Exec(ctx, `insert into bench_row (id, value) select id, 'bench' from unnest($1::uuid[]) as id`, ids); err != nil {
		return nil, err
	}
	return measureReads(s, s.Stubs.ReadBaseline, func(n int64) string {
		return "/" + ids[n%readableRows].String()
	}), nil
}

// openReads measures GET /allocations/{consumer}. A compute service sends this request before it changes a
// server.
func openReads(ctx context.Context, s *harness.Stack) (*Subject, error) {
	providers, err := s.API.CreateProviders(ctx, 16)
	if err != nil {
		return nil, err
	}
	connections := harness.NewHTTPConnections(s.API.Base, 1)
	defer connections.Close()
	if err := connections.Open(ctx); err != nil {
		return nil, err
	}
	ids := make([]string, readableRows)
	for i := range ids {
		ids[i] = uuid.NewString()
		if err := connections.Send(0, http.MethodPut, "/placement/allocations/"+ids[i], allocationBody(providers[i%len(providers)])); err != nil {
			return nil, err
		}
	}
	return measureReads(s, s.API.Base, func(n int64) string {
		return "/placement/allocations/" + ids[n%readableRows]
	}), nil
}

// measureReads measures GET requests; the parameter `path` returns the URL path of the n-th request.
func measureReads(s *harness.Stack, base string, path func(n int64) string) *Subject {
	connections := harness.NewHTTPConnections(base, s.Clients)
	s.OnClose(connections.Close)
	var next atomic.Int64
	return &Subject{setUp: connections.Open, op: func(_ context.Context, client int) (int, error) {
		return 1, connections.Send(client, http.MethodGet, path(next.Add(1)), "")
	}}
}
