package main

import (
	"context"
	"fmt"

	"berth/bench/harness"
)

// countedRequests is the number of requests of each route whose reads are counted. After five executions of a
// statement, PostgreSQL may choose a plan that does not depend on the values.
const countedRequests = 10

// countReads counts the rows and index entries that PostgreSQL reads for a request of each route. Unlike
// times, the counts do not depend on other work of the machine. A connection reports its reads at the latest
// when it ends, so each route has a process of its own.
func (m *measurement) countReads(ctx context.Context) error {
	alone, err := m.readsOf(ctx, func(*requester) error { return nil })
	if err != nil {
		return err
	}
	for _, r := range routes {
		if r.request == nil {
			continue
		}
		reads, err := m.readsOf(ctx, func(c *requester) error {
			for i := range countedRequests {
				if _, err := c.send(r, m.Warmup+m.Requests+i); err != nil {
					return fmt.Errorf("%s: %w", r.name, err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		m.result.addRoute(r.name).Reads = float64(max(0, reads-alone)) / countedRequests
	}
	return nil
}

// readsOf starts a process with the role api, calls the function, stops the process, and returns how many
// rows and index entries PostgreSQL has read meanwhile.
func (m *measurement) readsOf(ctx context.Context, do func(*requester) error) (int64, error) {
	before, err := m.tableReads(ctx)
	if err != nil {
		return 0, err
	}
	a, _, err := m.start(ctx, "api")
	if err != nil {
		return 0, err
	}
	c := newRequester(m.size, a, m.servers)
	err = do(c)
	c.close()
	a.Stop()
	if err != nil {
		return 0, err
	}
	after, err := m.tableReads(ctx)
	return after - before, err
}

// tableReads returns the reads of all tables since the start of PostgreSQL. It waits until berth has closed
// its connections.
func (m *measurement) tableReads(ctx context.Context) (reads int64, err error) {
	for connected := true; connected; harness.Pause(ctx, harness.PollInterval) {
		err := m.servers.Rows.QueryRow(ctx, `
			select exists (
				select from pg_stat_activity
				where datname = current_database() and application_name = 'berth')`).Scan(&connected)
		if err != nil {
			return 0, err
		}
	}
	err = m.servers.Rows.QueryRow(ctx, `
		select (select sum(seq_tup_read) from pg_stat_user_tables) + (select sum(idx_tup_read) from pg_stat_user_indexes)`).Scan(&reads)
	return reads, err
}
