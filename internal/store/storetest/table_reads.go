package storetest

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TableReads counts what PostgreSQL has read of a table.
type TableReads struct {
	Scans int64 // of the whole table
	Rows  int64 // rows of such scans, and entries of indexes
}

// ReadsOfTables returns what PostgreSQL has read of each of the tables since its start. ReadsOfTables waits
// until all connections of stores on the database are closed, because a connection reports its reads only
// then.
func ReadsOfTables(t testing.TB, c *pgx.Conn, tables ...string) map[string]TableReads {
	t.Helper()
	for connected := true; connected; {
		err := c.QueryRow(t.Context(), `
			select exists (
				select from pg_stat_activity
				where datname = current_database() and application_name = 'berth')
			from pg_sleep(0.005)`).Scan(&connected)
		if err != nil {
			t.Fatal(err)
		}
	}
	rows, err := c.Query(t.Context(), `
		select relname::text, seq_scan,
			seq_tup_read + coalesce((select sum(idx_tup_read) from pg_stat_user_indexes i where i.relid = s.relid), 0)::bigint
		from pg_stat_user_tables s
		where relname = any($1)`, tables)
	if err != nil {
		t.Fatal(err)
	}
	reads := map[string]TableReads{}
	var table string
	var r TableReads
	if _, err := pgx.ForEachRow(rows, []any{&table, &r.Scans, &r.Rows}, func() error { reads[table] = r; return nil }); err != nil {
		t.Fatal(err)
	}
	if len(reads) != len(tables) {
		t.Fatalf("PostgreSQL has statistics of the tables %v, want %v", reads, tables)
	}
	return reads
}

// FixPlans runs ANALYZE on the tables, or on all tables if none is given. FixPlans switches off autovacuum
// for all tables, so that PostgreSQL keeps their statistics, and with them the plans of queries, until the
// test ends.
func FixPlans(t testing.TB, url string, tables ...string) {
	t.Helper()
	ExecScript(t, url, `
		do $$
		declare name regclass;
		begin
			for name in select oid from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace loop
				execute format('alter table %s set (autovacuum_enabled = false)', name);
			end loop;
		end $$;
		analyze `+strings.Join(tables, ", "))
}

// PlanRepeats is the number of calls after which PostgreSQL uses generic plans for prepared statements.
const PlanRepeats = 8

// mostRowsRead is the maximum number of rows of a growing table that one call may read.
const mostRowsRead = 500

// ExpectFewReads checks that a call reads few rows of tables that grow, and scans none of them. The function
// `repeat` makes the call PlanRepeats times on connections of its own, and closes these connections.
func ExpectFewReads(t testing.TB, c *pgx.Conn, call string, tables []string, repeat func()) {
	t.Helper()
	before := ReadsOfTables(t, c, tables...)
	repeat()
	for table, r := range ReadsOfTables(t, c, tables...) {
		scans, rows := r.Scans-before[table].Scans, (r.Rows-before[table].Rows)/PlanRepeats
		if scans > 0 || rows > mostRowsRead {
			t.Errorf("%s: got %d scans of the table %s and %d rows read in each call, want no scan and at most %d rows",
				call, scans, table, rows, mostRowsRead)
		}
	}
}
