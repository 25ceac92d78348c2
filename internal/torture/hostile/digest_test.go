package hostile

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// comparedTables is a condition on pg_class: a refused request changes none of these tables. The tables of
// the audit log and of generation conflicts are left out, because berth records there which requests it has
// refused.
const comparedTables = `relkind = 'r' and relnamespace = 'public'::regnamespace and relname not like 'audit\_%' and relname <> 'generation_conflict'`

// countWritesSQL is SQL that installs triggers which count the write statements of each table. The triggers
// count in PostgreSQL sequences, because a rollback does not reset a sequence, so rolled back writes are
// counted, too. The sequence touched counts the writes of all tables, because reading one sequence after each
// request is cheap.
const countWritesSQL = `
create sequence touched;
create function touch() returns trigger language plpgsql as $$
begin
	perform nextval('touched'), nextval('touched_' || tg_table_name);
	return null;
end $$;
do $$
declare
	name text;
begin
	for name in select relname from pg_class where ` + comparedTables + ` loop
		execute format('create sequence %I', 'touched_' || name);
		execute format('create trigger touch after insert or update or delete or truncate on %I execute function touch()', name);
	end loop;
end $$`

// writtenTables returns the tables that a statement has written since the last call.
func (h *hostileClient) writtenTables() (tables []string) {
	h.t.Helper()
	var all int64
	if err := h.conn.QueryRow(h.t.Context(), `select last_value + is_called::int from touched`).Scan(&all); err != nil {
		h.t.Fatal(err)
	}
	if all == h.allWrites {
		return nil
	}
	h.allWrites = all
	rows, err := h.conn.Query(h.t.Context(), `
		select substr(relname, 9), coalesce(pg_sequence_last_value(oid), 0)
		from pg_class
		where relkind = 'S' and relname like 'touched\_%'`)
	if err != nil {
		h.t.Fatal(err)
	}
	writes := map[string]int64{}
	var table string
	var count int64
	if _, err := pgx.ForEachRow(rows, []any{&table, &count}, func() error {
		writes[table] = count
		return nil
	}); err != nil {
		h.t.Fatal(err)
	}
	for table, count := range writes {
		if count != h.writes[table] {
			tables = append(tables, table)
		}
	}
	h.writes = writes
	return tables
}

// digests returns the number of rows and a hash of all rows of each of the tables.
func (h *hostileClient) digests(tables []string) map[string]string {
	h.t.Helper()
	var queries []string
	for _, table := range tables {
		queries = append(queries, h.digestSQL[table])
	}
	return h.textByTable(strings.Join(queries, " union all "))
}

// textByTable runs a query that returns the names of tables, each with a text.
func (h *hostileClient) textByTable(sql string) map[string]string {
	h.t.Helper()
	rows, err := h.conn.Query(h.t.Context(), sql, pgx.QueryExecModeExec)
	if err != nil {
		h.t.Fatal(err)
	}
	texts := map[string]string{}
	var table, text string
	if _, err := pgx.ForEachRow(rows, []any{&table, &text}, func() error {
		texts[table] = text
		return nil
	}); err != nil {
		h.t.Fatal(err)
	}
	return texts
}
