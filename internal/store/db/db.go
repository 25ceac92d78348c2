// Package db opens berth's PostgreSQL database, runs transactions and contains the schema. Package db does not read berth's tables, because
// each table belongs to one of the store packages, such as internal/store/leasestore.
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

// DB contains two pools of connections to berth's database. The database URL sets the size of each of the two pools.
type DB struct {
	pool     *pgxpool.Pool
	prepared *pgxpool.Pool // connections that use one generic plan for each prepared statement
	hasNotes chan struct{} // receives a value after a transaction with due notes is committed
	stop     context.CancelFunc
	stopped  chan struct{}
}

// Time limits of berth's SQL statements, lock waits and idle transactions. If a client of the database hangs or is lost, the time limits
// make PostgreSQL release the locks of that client.
const (
	StatementTimeout = 30 * time.Second
	idleTimeout      = 15 * time.Second
)

// NoteChannel is the PostgreSQL channel on which relays are notified of due notes.
const NoteChannel = "berth_note"

// Open connects to the database with the given URL. Open does not migrate the schema; Migrate does.
func Open(ctx context.Context, url string) (*DB, error) {
	cfg, err := poolConfig(url)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	// By default, PostgreSQL plans a statement with a list parameter again at each execution, which takes longer than the execution itself.
	// With the following settings, PostgreSQL makes one generic plan for the statement, and the plan uses indexes even if PostgreSQL makes
	// the plan while a table is small.
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
		return nil, fmt.Errorf("parse the database URL: %w", err)
	}
	params := cfg.ConnConfig.RuntimeParams
	for name, value := range map[string]string{
		"statement_timeout":                   fmt.Sprint(StatementTimeout.Milliseconds()),
		"idle_in_transaction_session_timeout": fmt.Sprint(idleTimeout.Milliseconds()),
		// A connection keeps the plans of its statements. The default of random_page_cost is for rotating disks: with this default, a plan
		// that PostgreSQL makes for a small table reads the table sequentially, even after the table has grown.
		"random_page_cost": "1.1",
		// Compiling a plan (JIT) takes longer than any query of berth.
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

// Close waits until the running methods of DB have returned, and closes every connection.
func (d *DB) Close() {
	d.stop()
	<-d.stopped
	d.prepared.Close()
	d.pool.Close()
}

// Ping returns an error if the database does not answer.
func (d *DB) Ping(ctx context.Context) error { return d.pool.Ping(ctx) }

// Query runs one SQL statement in its own transaction.
func (d *DB) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return d.pool.Query(ctx, sql, args...)
}

// QueryRow runs one SQL statement that returns at most one row, in its own transaction.
func (d *DB) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return d.pool.QueryRow(ctx, sql, args...)
}

// Exec runs one SQL statement without a result, in its own transaction.
func (d *DB) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return d.pool.Exec(ctx, sql, args...)
}

// SendBatch runs a batch of SQL statements in its own transaction.
func (d *DB) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return d.pool.SendBatch(ctx, b)
}

// Acquire returns a connection from the pool of DB. The caller of Acquire must release the connection.
func (d *DB) Acquire(ctx context.Context) (*pgxpool.Conn, error) { return d.pool.Acquire(ctx) }

// NotifyRelays notifies the relays of every process that notes are due. If NotifyRelays is called several times while a notification is
// being sent, DB sends only one further notification for all these calls.
func (d *DB) NotifyRelays() {
	select {
	case d.hasNotes <- struct{}{}:
	default:
	}
}

// notifyRelays sends a NOTIFY after the commit of a transaction and not as part of the transaction, because PostgreSQL commits transactions
// that contain a NOTIFY only one after another. If the process crashes between the commit and the NOTIFY, the relays find the notes when
// they poll the outbox.
func (d *DB) notifyRelays(ctx context.Context) {
	defer close(d.stopped)
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.hasNotes:
		}
		if _, err := d.pool.Exec(ctx, `select pg_notify($1, '')`, NoteChannel); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "notification of the relays failed; they poll the outbox", "error", err)
		}
	}
}
