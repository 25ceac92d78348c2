package devstack

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// TestTemporal is a Temporal server with a PostgreSQL server of its own, for tests. Tests that stop Temporal
// or delete its data do not disturb other tests. Like a production server, it keeps its data in PostgreSQL.
type TestTemporal struct {
	*Temporal
	server   *postgresTemporal
	postgres *Postgres
}

// copySuffix is the end of the names of those databases that hold a copy of Temporal's data.
const copySuffix = "_copy"

// StartTestTemporal builds and starts a Temporal server and its PostgreSQL server. The folder `dir` holds
// their data. The server makes new search attributes visible to the next request. StartTestTemporal passes
// messages about the build to `progress`.
func StartTestTemporal(ctx context.Context, dir string, progress func(string)) (*TestTemporal, error) {
	programs, err := TemporalServer(ctx, progress)
	if err != nil {
		return nil, err
	}
	t := &TestTemporal{}
	if t.postgres, err = StartPostgres(ctx, PostgresOptions{Dir: filepath.Join(dir, "postgres"), Unsafe: true}); err != nil {
		return nil, err
	}
	t.server, err = preparePostgresTemporal(ctx, programs,
		filepath.Join(dir, "temporal"), t.postgres, dynamicConfig)
	if err == nil {
		t.server.environ = []string{"GOGC=400"} // collect garbage rarely, which saves CPU time
		err = t.dropVisibilityIndexes(ctx)
	}
	if err == nil {
		t.Temporal, err = t.server.start(ctx)
	}
	if err != nil {
		t.postgres.Stop()
		return nil, err
	}
	return t, nil
}

// Close ends both servers. It kills Temporal, whose shutdown takes seconds, because the data is of no use any
// more.
func (t *TestTemporal) Close() {
	t.Kill()
	t.postgres.Stop()
}

// DatabaseURLs returns the URLs of the database of executions and of the database of visibility, for a user
// who may restore them.
func (t *TestTemporal) DatabaseURLs() (executions, visibility string) {
	server := strings.TrimSuffix(t.postgres.adminURL(), "postgres")
	return server + temporalDatabase, server + visibilityDatabase
}

// CopyData copies the data of the stopped server. A later copy replaces an earlier one.
func (t *TestTemporal) CopyData(ctx context.Context) error {
	return t.eachDatabase(ctx,
		func(c *pgx.Conn, name string) error { return replaceDatabase(ctx, c, name+copySuffix, name) })
}

// RestoreData replaces the data of the stopped server by the copy that CopyData has made.
func (t *TestTemporal) RestoreData(ctx context.Context) error {
	return t.eachDatabase(ctx,
		func(c *pgx.Conn, name string) error { return replaceDatabase(ctx, c, name, name+copySuffix) })
}

// EraseData deletes all data of the stopped server. The copy that CopyData has made stays.
func (t *TestTemporal) EraseData(ctx context.Context) error {
	err := t.eachDatabase(ctx, func(c *pgx.Conn, name string) error {
		_, err := c.Exec(ctx, `drop database `+name+` with (force)`)
		return err
	})
	if err != nil {
		return err
	}
	c, err := t.postgres.connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	if err := t.server.createDatabases(ctx, c); err != nil {
		return err
	}
	return t.dropVisibilityIndexes(ctx)
}

// Dump returns the values of all columns of all tables of the server, one after another. The output of
// pg_dump has the bytes of binary columns in hexadecimal digits; the result of Dump can be searched for a
// text.
func (t *TestTemporal) Dump(ctx context.Context) ([]byte, error) {
	var dump []byte
	for _, name := range []string{temporalDatabase, visibilityDatabase} {
		c, err := t.postgres.connect(ctx, name)
		if err != nil {
			return nil, err
		}
		err = dumpTables(ctx, c, &dump)
		_ = c.Close(ctx)
		if err != nil {
			return nil, fmt.Errorf("dump the database %s: %w", name, err)
		}
	}
	return dump, nil
}

// dumpTables appends the values of all columns of all tables.
func dumpTables(ctx context.Context, c *pgx.Conn, dump *[]byte) error {
	rows, err := c.Query(ctx, `select tablename from pg_tables where schemaname = 'public'`)
	if err != nil {
		return err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, table := range tables {
		rows, err := c.Query(ctx, `select * from `+pgx.Identifier{table}.Sanitize())
		if err != nil {
			return err
		}
		for rows.Next() {
			for _, value := range rows.RawValues() {
				*dump = append(append(*dump, value...), '\n')
			}
		}
		if rows.Close(); rows.Err() != nil {
			return rows.Err()
		}
	}
	return nil
}

// dropVisibilityIndexes removes the secondary indexes of the visibility database, one for each predefined
// search attribute. Writing these indexes takes most of PostgreSQL's CPU time for a workflow, and a test's
// namespace has so few workflows that its lists need no index.
func (t *TestTemporal) dropVisibilityIndexes(ctx context.Context) error {
	c, err := t.postgres.connect(ctx, visibilityDatabase)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	_, err = c.Exec(ctx, `
		do $$
		declare
			name text;
		begin
			for name in select indexrelid::regclass from pg_index where indrelid = 'executions_visibility'::regclass and not indisunique loop
				execute 'drop index ' || name;
			end loop;
		end $$`)
	return err
}

// eachDatabase calls f for both databases of the server.
func (t *TestTemporal) eachDatabase(ctx context.Context, f func(c *pgx.Conn, name string) error) error {
	c, err := t.postgres.connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	return errors.Join(f(c, temporalDatabase), f(c, visibilityDatabase))
}

// replaceDatabase replaces a database, if it exists, by a copy of another one. Open sessions of a killed
// server would make the copy fail, so replaceDatabase ends these sessions.
func replaceDatabase(ctx context.Context, c *pgx.Conn, name, original string) error {
	for _, statement := range []string{
		`select pg_terminate_backend(pid, 60000) from pg_stat_activity where datname = '` + original + `'`,
		`drop database if exists ` + name + ` with (force)`,
		`create database ` + name + ` template ` + original + ` owner ` + temporalRole,
	} {
		if _, err := c.Exec(ctx, statement); err != nil {
			return fmt.Errorf("copy the database %s to %s: %w", original, name, err)
		}
	}
	return nil
}
