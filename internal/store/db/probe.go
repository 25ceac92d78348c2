package db

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrUnusable means that the database answers, but that berth cannot work with it: it is read-only, or it
// does not have berth's schema.
var ErrUnusable = errors.New("the database is not usable")

// CheckWritable returns an error if no write can be committed now, or if the database lacks berth's schema or
// a migration of this program. A newer schema is accepted if it supports this program. CheckWritable changes
// no table.
func (d *DB) CheckWritable(ctx context.Context) error {
	_, err := probe(ctx, d)
	return err
}

// ProbeResult is what Probe reads from a usable database.
type ProbeResult struct {
	Schema  int64 // newest migration that is applied to the database
	Program int64 // newest migration that this program contains
}

// Probe does the same as CheckWritable on a new connection to the database with the given URL, and returns
// what it has read. If the database cannot be reached, the error is not ErrUnusable.
func Probe(ctx context.Context, url string) (ProbeResult, error) {
	var found ProbeResult
	err := withOneConn(ctx, url, func(ctx context.Context, conn *pgx.Conn) (err error) {
		found, err = probe(ctx, conn)
		return err
	})
	return found, err
}

// probeTables are tables that only a database of berth has.
var probeTables = []string{
	"goose_db_version",
	"schema_support",
	"note",
	"port",
	"provider",
	"lease",
	"journal_entry",
}

// rowQuerier is a pool or a connection, so each of its statements is a transaction of its own.
type rowQuerier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func probe(ctx context.Context, q rowQuerier) (ProbeResult, error) {
	var readOnly, inRecovery bool
	var tables int
	var schema Schema
	err := q.QueryRow(ctx, `
		select current_setting('transaction_read_only')::boolean, pg_is_in_recovery(),
			(select count(to_regclass(name)) from unnest($1::text[]) as t (name)), `+unreleasedSchema, probeTables).Scan(
		&readOnly, &inRecovery, &tables, &schema.unreleased)
	switch {
	case err != nil:
		return ProbeResult{}, err
	case inRecovery:
		return ProbeResult{}, fmt.Errorf("%w: it is read-only, because the server is a standby", ErrUnusable)
	case readOnly:
		return ProbeResult{}, fmt.Errorf("%w: it is read-only (default_transaction_read_only)", ErrUnusable)
	case tables < len(probeTables):
		return ProbeResult{}, fmt.Errorf(
			"%w: it is not a database of berth, or the migrations have not run",
			ErrUnusable,
		)
	}
	versions, err := programVersions()
	if err != nil {
		return ProbeResult{}, err
	}
	found := ProbeResult{Program: versions[len(versions)-1]}
	var applied int
	// The message is a record in the write-ahead log that changes no table. Its commit proves that the
	// server, and every synchronous standby, can store a commit.
	err = q.QueryRow(ctx, `
		select max(version_id), count(distinct version_id) filter (where version_id = any($1)), pg_logical_emit_message(true, 'berth', 'write probe')::text is null,
			coalesce((select max(oldest_program) from schema_support), 0)
		from goose_db_version
		where is_applied`, versions).Scan(&found.Schema, &applied, new(bool), &schema.OldestProgram)
	if err != nil {
		return ProbeResult{}, err
	}
	schema.Version, schema.missing = found.Schema, len(versions)-applied
	if err := schema.check(); err != nil {
		return found, fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	return found, nil
}

// Clock reads the clock of the database server with the given URL, on a new connection.
func Clock(ctx context.Context, url string) (at time.Time, err error) {
	err = withOneConn(ctx, url, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `select clock_timestamp()`).Scan(&at)
	})
	return at, err
}
