// Package db opens berth's PostgreSQL database, runs transactions and contains the schema. Package db does
// not read berth's tables, because each table belongs to one of the store packages, such as
// internal/store/leasestore.
package db

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB contains three pools of connections to berth's database. The database URL sets the sizes of the pools
// `pool` and `prepared`.
type DB struct {
	pool       *pgxpool.Pool
	prepared   *pgxpool.Pool // connections that use one generic plan for each prepared statement
	reserve    *pgxpool.Pool // for contexts that WithReserve returned
	admissions map[*pgxpool.Pool]*admission
	retried    [len(retryReasons)]atomic.Int64 // repeated transactions, in the order of retryReasons
	answers    *answerWatch
	session    *pgx.ConnConfig // of Session
	hasNotes   chan struct{}   // receives a value after a transaction with due notes is committed
	stop       context.CancelFunc
	loops      sync.WaitGroup
}

// reservedConnections is the size of the pool for readiness checks, metrics and the APIs of operators.
const reservedConnections = 2

// minPoolSize is the smallest default size of a pool. In a smaller pool, two classes of callers could hold
// all connections.
const minPoolSize = 8

// NoteChannel is the PostgreSQL channel on which relays are notified of due notes.
const NoteChannel = "berth_note"

// Options are the options of a DB.
type Options struct {
	// Pooler is the URL of the database through a pooler in transaction mode. With it, all transactions use
	// the pooler. If it is empty, they use connections to PostgreSQL.
	Pooler  string
	Answers AnswerLimits
}

// Open connects to the database with the given URL. Open does not migrate the schema; Migrate does.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	cfg, err := poolConfig(url)
	if err != nil {
		return nil, err
	}
	answers := newAnswerWatch(o.Answers, cfg.ConnConfig) // without a fence, which may wait longer than a probe
	addTimelineFence(cfg.ConnConfig)
	session := cfg.ConnConfig
	if o.Pooler != "" {
		if cfg, _, err = poolerConfig(o.Pooler); err != nil {
			return nil, err
		}
		addTimelineFence(cfg.ConnConfig)
	}
	// By default, PostgreSQL plans a statement with a list parameter again at each execution, and the
	// planning takes longer than the execution itself. With the following settings, PostgreSQL makes one
	// generic plan for the statement, and the plan uses indexes even if PostgreSQL makes the plan while a
	// table is small.
	generic := cfg.Copy()
	if o.Pooler == "" { // behind a pooler, no plan is kept
		generic.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
		generic.ConnConfig.RuntimeParams["enable_seqscan"] = "off"
	}
	reserve := cfg.Copy()
	reserve.MaxConns, reserve.MinConns, reserve.MinIdleConns = reservedConnections, 1, 0
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	d := &DB{
		admissions: map[*pgxpool.Pool]*admission{},
		answers:    answers,
		session:    session,
		hasNotes:   make(chan struct{}, 1),
		stop:       stop,
	}
	for _, p := range []struct {
		pool **pgxpool.Pool
		cfg  *pgxpool.Config
	}{{&d.pool, cfg}, {&d.prepared, generic}, {&d.reserve, reserve}} {
		if *p.pool, err = pgxpool.NewWithConfig(ctx, p.cfg); err != nil {
			stop()
			d.closePools()
			return nil, fmt.Errorf("open database: %w", err)
		}
		d.admissions[*p.pool] = newAdmission(p.cfg.MaxConns)
	}
	d.loops.Go(func() { d.notifyRelays(background) })
	d.loops.Go(func() { d.answers.run(background) })
	return d, nil
}

// closeTimeout is how long Close waits for connections that are still in use or whose database does not
// answer.
const closeTimeout = 5 * time.Second

// Close waits until the running methods of DB have returned, and closes every connection. If the database
// hangs, Close returns after the time closeTimeout.
func (d *DB) Close() {
	d.stop()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		d.loops.Wait()
		d.closePools()
	}()
	select {
	case <-closed:
	case <-time.After(closeTimeout):
		slog.Warn("database connections are still in use; not waiting any longer", "waited", closeTimeout)
	}
}

func (d *DB) closePools() {
	for pool := range d.admissions {
		pool.Close()
	}
}

// Ping returns an error if the database does not answer.
func (d *DB) Ping(ctx context.Context) error {
	_, err := d.Exec(ctx, `select`)
	return err
}

// Session opens a connection that belongs to no pool and leads to PostgreSQL itself: for LISTEN, and for
// locks that a session holds. The caller must close it with CloseSession.
func (d *DB) Session(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, d.session)
	return conn, classify(err, false)
}

// NotifyRelays notifies the relays of every process that notes are due. If NotifyRelays is called several
// times while a notification is being sent, DB sends only one further notification for all these calls.
func (d *DB) NotifyRelays() {
	select {
	case d.hasNotes <- struct{}{}:
	default:
	}
}

// notifyRelays sends a NOTIFY after the commit of a transaction and not as part of the transaction, because
// PostgreSQL commits transactions that contain a NOTIFY only one after another. If the process crashes
// between the commit and the NOTIFY, the relays find the notes when they poll the outbox.
func (d *DB) notifyRelays(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.hasNotes:
		}
		if _, err := d.Exec(WithClass(ctx, "notify"), `select pg_notify($1, '')`, NoteChannel); err != nil &&
			ctx.Err() == nil {
			slog.WarnContext(ctx, "notification of the relays failed; they poll the outbox", "error", err)
		}
	}
}
