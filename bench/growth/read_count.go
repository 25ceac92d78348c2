package main

import (
	"context"
	"fmt"

	"berth/bench/harness"
)

// countedRequests is the number of requests of each route whose reads are counted. After five executions of a
// statement, PostgreSQL may choose a plan that does not depend on the values.
const countedRequests = 10

// countReads counts the rows and index entries of each table that PostgreSQL reads for a request of each
// route. Unlike times, the counts do not depend on other work of the machine. A connection reports its reads
// at the latest when it ends, so each route has a process of its own.
func (m *measurement) countReads(ctx context.Context) error {
	alone, err := m.countReadsOf(ctx, func(*requester) error { return nil })
	if err != nil {
		return err
	}
	for _, r := range routes {
		if r.request == nil {
			continue
		}
		reads, err := m.countReadsOf(ctx, func(c *requester) error {
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
		result := m.result.addRoute(r.name)
		result.Reads, result.ReadsOf = reads.without(alone).perRequest()
	}
	return nil
}

// tableReads is how many rows and index entries PostgreSQL has read, by table.
type tableReads map[string]int64

// without returns the reads that r has more than other.
func (r tableReads) without(other tableReads) tableReads {
	more := tableReads{}
	for table, reads := range r {
		more[table] = reads - other[table]
	}
	return more
}

// perRequest returns the reads for one of the counted requests: of all tables, and of each table with at
// least one read for each request.
func (r tableReads) perRequest() (all float64, of map[string]float64) {
	of = map[string]float64{}
	for table, reads := range r {
		each := float64(reads) / countedRequests
		if all += each; each >= 1 {
			of[table] = each
		}
	}
	return max(0, all), of
}

// countReadsOf starts a process with the role api, calls the function, stops the process, and returns what
// PostgreSQL has read meanwhile.
func (m *measurement) countReadsOf(ctx context.Context, do func(*requester) error) (tableReads, error) {
	before, err := m.readTables(ctx)
	if err != nil {
		return nil, err
	}
	a, _, err := m.start(ctx, "api")
	if err != nil {
		return nil, err
	}
	c := newRequester(m.size, a, m.servers)
	err = do(c)
	c.close()
	a.Stop()
	if err != nil {
		return nil, err
	}
	after, err := m.readTables(ctx)
	return after.without(before), err
}

// readTables returns the reads of all tables since the start of PostgreSQL. It waits until berth has closed
// its connections.
func (m *measurement) readTables(ctx context.Context) (tableReads, error) {
	for connected := true; connected; harness.Pause(ctx, harness.PollInterval) {
		err := m.servers.Rows.QueryRow(ctx, `
			select exists (
				select from pg_stat_activity
				where datname = current_database() and application_name = 'berth')`).Scan(&connected)
		if err != nil {
			return nil, err
		}
	}
	rows, err := m.servers.Rows.Query(ctx, `
		select relname, seq_tup_read + (select coalesce(sum(idx_tup_read), 0)::bigint from pg_stat_user_indexes i where i.relid = t.relid)
		from pg_stat_user_tables t`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := tableReads{}
	for rows.Next() {
		var table string
		var reads int64
		if err := rows.Scan(&table, &reads); err != nil {
			return nil, err
		}
		all[table] += reads
	}
	return all, rows.Err()
}
