package db

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	// ErrNotFound means that no such row exists.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that another writer was faster, or that the row is in another state than the writer acted on.
	ErrConflict = errors.New("conflict")
	// ErrRetry means that another writer has created a row that this transaction did not see: the transaction runs again.
	ErrRetry = errors.New("another writer was faster")
)

// Tx is a transaction of berth. A function that takes one is a step of its caller's transaction.
type Tx interface {
	pgx.Tx
	// NotifyRelays has the relays notified after the commit that notes are due.
	NotifyRelays()
}

// retries is how often a transaction is run again after the database itself refused it.
const retries = 5

// InTx runs f in one read-committed transaction and commits it. A deadlock or serialization failure, which
// nothing but the database's own timing decides, runs f again; f must therefore not act outside the transaction.
func (d *DB) InTx(ctx context.Context, f func(Tx) error) error {
	return d.inTx(ctx, d.pool, f)
}

// InPreparedTx is InTx on a connection that plans each statement once. Each statement of f must have an index for what it
// looks for.
func (d *DB) InPreparedTx(ctx context.Context, f func(Tx) error) error {
	return d.inTx(ctx, d.prepared, f)
}

func (d *DB) inTx(ctx context.Context, pool *pgxpool.Pool, f func(Tx) error) error {
	return retry(func() error {
		hasNotes := false
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return f(&transaction{tx, &hasNotes}) })
		if err == nil && hasNotes {
			d.NotifyRelays()
		}
		return err
	})
}

// InSnapshot runs f in a read-only transaction that sees one state of the database.
func (d *DB) InSnapshot(ctx context.Context, f func(Tx) error) error {
	readOnly := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, d.pool, readOnly, func(tx pgx.Tx) error { return f(&transaction{tx, new(bool)}) })
}

// Savepoint runs f in a savepoint: if f fails, what it wrote is undone and the transaction goes on.
func Savepoint(ctx context.Context, tx Tx, f func(Tx) error) error {
	return pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error { return f(inner.(Tx)) })
}

func retry(f func() error) error {
	for attempt := 1; ; attempt++ {
		err := f()
		if err == nil || attempt == retries || !Transient(err) {
			return err
		}
	}
}

// transaction remembers whether notes were enqueued in it that are due at once.
type transaction struct {
	pgx.Tx
	hasNotes *bool
}

func (t *transaction) NotifyRelays() { *t.hasNotes = true }

// Begin makes a savepoint, whose notes are the transaction's.
func (t *transaction) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := t.Tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &transaction{tx, t.hasNotes}, nil
}

// SendBatch sends a batch whose error is the database's rather than what a callback made of an earlier result. The
// server runs the whole batch whatever the callbacks return: a deadlock behind a callback that returned an error ends the
// transaction, and only running it again can help then.
func (t *transaction) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	r := &batchResults{}
	for _, q := range b.QueuedQueries {
		q.Fn = r.keepFirstError(q.Fn)
	}
	r.BatchResults = t.Tx.SendBatch(ctx, b)
	return r
}

// batchResults are those of a batch, with the first error that a callback returned.
type batchResults struct {
	pgx.BatchResults
	firstError error
}

// keepFirstError calls the callback unless an earlier one failed, and reads on if it fails itself.
func (r *batchResults) keepFirstError(callback func(pgx.BatchResults) error) func(pgx.BatchResults) error {
	return func(b pgx.BatchResults) error {
		if callback == nil || r.firstError != nil {
			_, err := b.Exec()
			return err
		}
		r.firstError = callback(b)
		return nil
	}
}

// Close returns the database's error, else the first error of a callback.
func (r *batchResults) Close() error {
	if err := r.BatchResults.Close(); err != nil {
		return err
	}
	return r.firstError
}

// Transient returns whether the same transaction may succeed when it runs again: PostgreSQL says so (serialization failure,
// deadlock), or another writer was faster (ErrRetry).
func Transient(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "40001" || pg.Code == "40P01" || isCreatedTwice(err)
	}
	return errors.Is(err, ErrRetry)
}

// isCreatedTwice returns whether another writer has created the same consumer meanwhile. It is known here because the
// constraint may be checked by the commit of a pipelined transaction, after its callbacks.
func isCreatedTwice(err error) bool { return Violates(err, "consumer_uuid") }

// WasOvertaken returns whether a transaction lost against a writer who created the same row.
func WasOvertaken(err error) bool { return errors.Is(err, ErrRetry) || isCreatedTwice(err) }

// Violates returns whether err is the violation of the constraint with that name.
func Violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.ConstraintName == constraint
}

// NotFoundOr turns "no rows" into ErrNotFound with a description of what was looked for, and returns other errors unchanged.
func NotFoundOr(err error, format string, args ...any) error {
	if NoRows(err) {
		return fmt.Errorf("%w: %s", ErrNotFound, fmt.Sprintf(format, args...))
	}
	return err
}

// NoRows returns whether a query found no row.
func NoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
