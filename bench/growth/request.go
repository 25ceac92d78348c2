package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"berth/bench/dataset"
	"berth/bench/harness"
)

// quietTimeout is how long the requests wait until the servers are quiet.
const quietTimeout = 2 * time.Minute

// measureRoutes starts a process with the role api, and sends requests to it with one client. The client
// requests one route after the other, and then begins again, so that other work of the machine affects all
// routes. The routes that read more in a larger cloud by design come after all others: each of their requests
// would replace the pages in PostgreSQL's memory that the next request of another route needs.
func (m *measurement) measureRoutes(ctx context.Context) (err error) {
	a, process, err := m.start(ctx, "api")
	if err != nil {
		return err
	}
	defer func() {
		err = m.stop(a, &process, err)
		m.result.API = process
	}()
	c := newRequester(m.size, a, m.servers)
	defer c.close()
	if err := m.insertBaselineRows(ctx, c); err != nil {
		return err
	}
	for _, bounded := range []bool{false, true} {
		if err := m.sendAll(ctx, c, 0, m.Warmup, boundedRoutes(bounded), nil); err != nil {
			return err
		}
	}
	if !m.stack.DevServer {
		if _, err := harness.AwaitQuiet(ctx, quietTimeout, harness.ReadBusyTime, harness.Pause); err != nil {
			return err
		}
	}
	if err := c.open(ctx); err != nil { // berth has closed the idle connections
		return err
	}
	times := map[string][]time.Duration{}
	use, err := harness.WatchCPU(func() error {
		if err := m.sendAll(ctx, c, m.Warmup, m.Requests, boundedRoutes(true), times); err != nil {
			return err
		}
		return m.sendAll(ctx, c, m.Warmup, m.Requests, boundedRoutes(false), times)
	})
	if err != nil {
		return err
	}
	m.result.OtherCores = use.OtherCores
	for _, r := range routes {
		to := m.result.addRoute(r.name)
		to.Count = len(times[r.name])
		to.P50 = harness.Milliseconds(harness.Percentile(times[r.name], 50))
		to.P99 = harness.Milliseconds(harness.Percentile(times[r.name], 99))
	}
	return nil
}

// boundedRoutes returns the routes that have a bound, or those that have none.
func boundedRoutes(bounded bool) []route {
	return slices.DeleteFunc(slices.Clone(routes), func(r route) bool { return (r.bound > 0) != bounded })
}

// sendAll sends a number of requests of each of the routes, and appends their times by name of the route,
// unless `times` is nil.
func (m *measurement) sendAll(
	ctx context.Context,
	c *requester,
	first, count int,
	of []route,
	times map[string][]time.Duration,
) error {
	for i := range count {
		for _, r := range of {
			took, err := c.send(r, first+i)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			if times != nil {
				times[r.name] = append(times[r.name], took)
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// requester sends the requests of all routes, one after the other.
type requester struct {
	size           int
	admin, member  *harness.HTTPConnections
	baseline       *harness.HTTPConnections
	baselineRowIDs []string
}

func newRequester(size int, a *harness.API, servers *harness.Stack) *requester {
	connect := func(base, token string) *harness.HTTPConnections {
		c := harness.NewHTTPConnections(base, 1)
		c.Token = token
		return c
	}
	return &requester{
		size:     size,
		admin:    connect(a.Base, "admin"),
		member:   connect(a.Base, "ann:"+dataset.BigProject),
		baseline: connect(servers.Stubs.ReadBaseline, "none"),
	}
}

// insertBaselineRows inserts the rows that the baseline reads.
func (m *measurement) insertBaselineRows(ctx context.Context, c *requester) error {
	if err := m.servers.CreateBenchTable(ctx); err != nil {
		return err
	}
	return m.servers.Rows.QueryRow(ctx, `
		with made as (
			insert into bench_row (id, value)
			select gen_random_uuid(), 'bench' from generate_series(1, $1)
			returning id)
		select array_agg(id::text) from made`, m.size).Scan(&c.baselineRowIDs)
}

// open replaces all connections by new ones.
func (c *requester) open(ctx context.Context) error {
	return errors.Join(c.admin.Open(ctx), c.member.Open(ctx), c.baseline.Open(ctx))
}

func (c *requester) close() {
	c.admin.Close()
	c.member.Close()
	c.baseline.Close()
}

// send sends the i-th request of a route and returns its time.
func (c *requester) send(r route, i int) (time.Duration, error) {
	connections, q := c.admin, request{}
	if r.request == nil {
		connections, q = c.baseline, get("/"+c.baselineRowIDs[object(c.size, readShare, i)-1])
	} else {
		q = r.request(c.size, i)
	}
	if q.member {
		connections = c.member
	}
	begin := time.Now()
	err := connections.Send(0, q.method, q.path, q.body)
	return time.Since(begin), err
}

// postLease creates a lease of one second, in an hour or two; no other lease of a cloud has this time.
func postLease(_, i int) request {
	begin := time.Now().Add(2 * time.Hour).Truncate(time.Hour).Add(time.Duration(i) * time.Second)
	return post("/reservation/v1/leases",
		`{"name":"bench","start_date":%q,"end_date":%q,"events":[],"reservations":[{"resource_type":"physical:host",`+
			`"min":1,"max":1,"hypervisor_properties":"","resource_properties":""}]}`,
		begin.UTC().Format(time.RFC3339), begin.Add(time.Second).UTC().Format(time.RFC3339))
}
