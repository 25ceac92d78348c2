// Package store keeps berth's rows in PostgreSQL. It is the only room with SQL.
// An exported method is one transaction; a function that takes a tx is one step of somebody's.
// It never speaks to the network, to Temporal or in HTTP.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"berth/internal/lease"
)

var (
	// ErrNotFound means that no such row exists.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that somebody was faster, or that the row is in another state than the writer acted on.
	ErrConflict = errors.New("conflict")
)

// Store is two pools of connections to berth's database, each as large as its URL says.
type Store struct {
	pool   *pgxpool.Pool
	paved  *pgxpool.Pool // of connections that inTwoTrips uses
	terms  terms
	limits lease.Limits
	tells  bool // see Tell
	pools  bool // see Pool
	lines  lines
	left   chan struct{} // notes were committed; see announce
	stop   context.CancelFunc
	done   chan struct{}
}

// Limits that keep a stuck client or a lost worker from holding rows: no statement, lock wait or idle
// transaction of ours lasts longer.
const (
	statementTimeout = 30 * time.Second
	idleTimeout      = 15 * time.Second
)

// Open connects to the database at that URL. It does not migrate; see Migrate.
func Open(ctx context.Context, url string) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	setting := func(name string, d time.Duration) {
		if _, given := cfg.ConnConfig.RuntimeParams[name]; !given {
			cfg.ConnConfig.RuntimeParams[name] = fmt.Sprint(d.Milliseconds())
		}
	}
	setting("statement_timeout", statementTimeout)
	setting("idle_in_transaction_session_timeout", idleTimeout)
	if _, given := cfg.ConnConfig.RuntimeParams["random_page_cost"]; !given {
		// Plans are kept per connection. With the default, made for disks that turn, those made while a table is
		// small read it whole, and go on doing so while it grows.
		cfg.ConnConfig.RuntimeParams["random_page_cost"] = "1.1"
	}
	if _, given := cfg.ConnConfig.RuntimeParams["jit"]; !given {
		// Compiling a plan takes longer than any query of ours does.
		cfg.ConnConfig.RuntimeParams["jit"] = "off"
	}
	cfg.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		encodeUUIDs(conn.TypeMap())
		return nil
	}
	cfg.ConnConfig.RuntimeParams["timezone"] = "UTC"
	cfg.ConnConfig.RuntimeParams["application_name"] = "berth"
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	// For lists of names PostgreSQL makes a new plan each time, which takes longer than to run it. One plan will do
	// if it reads no table whole because that was small when the plan was made.
	cfg = cfg.Copy()
	cfg.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	cfg.ConnConfig.RuntimeParams["enable_seqscan"] = "off"
	paved, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("open database: %w", err)
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Store{pool: pool, paved: paved, limits: lease.Limits{Lead: lease.BeforeEndLead}, lines: lines{provider: map[string]*line{}}, left: make(chan struct{}, 1), stop: stop, done: make(chan struct{})}
	go s.announce(background)
	return s, nil
}

// Close waits for running methods and closes every connection.
func (s *Store) Close() {
	s.stop()
	<-s.done
	s.paved.Close()
	s.pool.Close()
}

// Ping tells whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.pool.Ping(ctx) }

// retries is how often a transaction is run again after the database itself refused it.
const retries = 5

// inTx runs f in one read-committed transaction and commits it. A deadlock or serialization failure, which
// nothing but the database's own timing decides, runs f again; f must therefore not act outside the transaction.
func (s *Store) inTx(ctx context.Context, f func(pgx.Tx) error) error {
	return s.inTxOf(ctx, s.pool, f)
}

// inTxOf is inTx on a connection of that pool. On a paved one each statement must have an index for what it looks for.
func (s *Store) inTxOf(ctx context.Context, pool *pgxpool.Pool, f func(pgx.Tx) error) error {
	for attempt := 1; ; attempt++ {
		nudged := false
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			nudged = false
			return f(&noting{Tx: tx, terms: s.terms, tells: s.tells, nudged: &nudged})
		})
		if err == nil && nudged {
			s.wake()
		}
		if err == nil || attempt == retries || !transient(err) {
			return err
		}
	}
}

// noting is a transaction of a store: it knows the store's terms and whether anybody listens to leases, and remembers
// whether notes were left in it that are due at once.
type noting struct {
	pgx.Tx
	terms  terms
	tells  bool
	nudged *bool
}

// Begin makes a savepoint that is as much the store's as the transaction.
func (t *noting) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := t.Tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &noting{Tx: tx, terms: t.terms, tells: t.tells, nudged: t.nudged}, nil
}

// SendBatch sends a batch whose outcome is what the database refused rather than what a callback made of an
// earlier result. The server runs the whole batch whatever the callbacks think of it: a deadlock behind a
// callback that refused ends the transaction, and only inTx can help then.
func (t *noting) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	r := &results{}
	for _, q := range b.QueuedQueries {
		q.Fn = r.heed(q.Fn)
	}
	r.BatchResults = t.Tx.SendBatch(ctx, b)
	return r
}

// results are those of a batch, with the first error that was made of them.
type results struct {
	pgx.BatchResults
	refused error
}

// heed calls the callback unless an earlier one refused, and reads on if it refuses itself.
func (r *results) heed(callback func(pgx.BatchResults) error) func(pgx.BatchResults) error {
	return func(b pgx.BatchResults) error {
		if callback == nil || r.refused != nil {
			_, err := b.Exec()
			return err
		}
		r.refused = callback(b)
		return nil
	}
}

// Close tells how the batch went.
func (r *results) Close() error {
	if err := r.BatchResults.Close(); err != nil {
		return err
	}
	return r.refused
}

// Limit sets what is asked of leases from now on. It is called before the store is used.
func (s *Store) Limit(m lease.Limits) { s.limits = m }

// transient tells whether PostgreSQL asks for the same transaction again, or whether others have overtaken it.
func transient(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return errors.Is(err, errOvertaken)
	}
	return pg.Code == "40001" || pg.Code == "40P01" || overtaken(err)
}

// violates tells whether err is the violation of the constraint with that name.
func violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.ConstraintName == constraint
}

// found turns "no rows" into ErrNotFound with words that say what was looked for.
func found(err error, format string, args ...any) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%w: %s", ErrNotFound, fmt.Sprintf(format, args...))
	}
	return err
}
