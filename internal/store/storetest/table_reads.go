package storetest

import (
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
