// Package db opens berth's PostgreSQL database, runs transactions on it and holds its schema. It reads no table of berth: the
// packages beside it own the rows.
package db

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB is two pools of connections to berth's database, each as large as its URL says.
type DB struct {
	pool     *pgxpool.Pool
	prepared *pgxpool.Pool // connections that keep one generic plan per statement
	hasNotes chan struct{} // a transaction with due notes was committed
	stop     context.CancelFunc
	stopped  chan struct{}
}

// Limits that keep a stuck client or a lost worker from holding rows: no statement, lock wait or idle
// transaction of ours lasts longer.
const (
	StatementTimeout = 30 * time.Second
	idleTimeout      = 15 * time.Second
)

// NoteChannel is the PostgreSQL channel on which relays are notified of due notes.
const NoteChannel = "berth_note"

// Open connects to the database at that URL. It does not migrate; see Migrate.
func Open(ctx context.Context, url string) (*DB, error) {
	cfg, err := poolConfig(url)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	// For lists of names PostgreSQL makes a new plan each time, which takes longer than to run it. One plan suffices
	// if it does not read a table sequentially because that table was small when the plan was made.
	cfg = cfg.Copy()
	cfg.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	cfg.ConnConfig.RuntimeParams["enable_seqscan"] = "off"
	prepared, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("open database: %w", err)
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	d := &DB{pool: pool, prepared: prepared, hasNotes: make(chan struct{}, 1), stop: stop, stopped: make(chan struct{})}
	go d.notifyRelays(background)
	return d, nil
}

func poolConfig(url string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	params := cfg.ConnConfig.RuntimeParams
	for name, value := range map[string]string{
		"statement_timeout":                   fmt.Sprint(StatementTimeout.Milliseconds()),
		"idle_in_transaction_session_timeout": fmt.Sprint(idleTimeout.Milliseconds()),
		// Plans are kept per connection. With the default, which suits rotating disks, a plan that was made while a table
		// was small reads the table sequentially, and goes on doing so while it grows.
		"random_page_cost": "1.1",
		// Compiling a plan takes longer than any query of ours does.
		"jit": "off",
	} {
		if _, given := params[name]; !given {
			params[name] = value
		}
	}
	params["timezone"] = "UTC"
	params["application_name"] = "berth"
	cfg.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		encodeUUIDs(conn.TypeMap())
		return nil
	}
	return cfg, nil
}

// Close waits for running methods and closes every connection.
func (d *DB) Close() {
	d.stop()
	<-d.stopped
	d.prepared.Close()
	d.pool.Close()
}

// Ping returns an error unless the database answers.
func (d *DB) Ping(ctx context.Context) error { return d.pool.Ping(ctx) }

// Query runs one statement in a transaction of its own.
func (d *DB) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return d.pool.Query(ctx, sql, args...)
}

// QueryRow runs one statement that returns at most one row, in a transaction of its own.
func (d *DB) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return d.pool.QueryRow(ctx, sql, args...)
}

// Exec runs one statement without a result, in a transaction of its own.
func (d *DB) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return d.pool.Exec(ctx, sql, args...)
}

// SendBatch runs a batch in a transaction of its own.
func (d *DB) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return d.pool.SendBatch(ctx, b)
}

// Acquire lends a connection until its Release.
func (d *DB) Acquire(ctx context.Context) (*pgxpool.Conn, error) { return d.pool.Acquire(ctx) }

// NotifyRelays tells the relays of every process that notes are due. Calls that come while a notification is being sent
// share the next one.
func (d *DB) NotifyRelays() {
	select {
	case d.hasNotes <- struct{}{}:
	default:
	}
}

// notifyRelays sends the notifications after the commits rather than in them, because PostgreSQL lets transactions that
// notify commit only one after another. If a crash between the two loses a notification, the relays' own timer finds the
// notes.
func (d *DB) notifyRelays(ctx context.Context) {
	defer close(d.stopped)
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.hasNotes:
		}
		if _, err := d.pool.Exec(ctx, `select pg_notify($1, '')`, NoteChannel); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "notify relays", "error", err)
		}
	}
}
