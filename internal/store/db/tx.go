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
	// ErrNotFound means that the requested row does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that another writer was faster, or that the row is in another state than the writer expected.
	ErrConflict = errors.New("conflict")
	// ErrRetry means that another writer has created a row that this transaction did not see. A transaction that fails with
	// ErrRetry is retried.
	ErrRetry = errors.New("another writer was faster")
)

// Tx is a transaction of berth. A function with a Tx parameter runs as part of its caller's transaction.
type Tx interface {
	pgx.Tx
	// NotifyRelays requests that, after the commit, the relays are notified of due notes.
	NotifyRelays()
}

// retries is the maximum number of retries of a transaction after a deadlock or serialization failure.
const retries = 5

// InTx runs f in one read-committed transaction and commits it. After a deadlock or serialization failure, InTx runs f again; f
// must therefore have no effect outside the transaction.
func (d *DB) InTx(ctx context.Context, f func(Tx) error) error {
	return d.inTx(ctx, d.pool, f)
}

// InPreparedTx does the same as InTx on a connection that plans each statement once. Each statement of f must be able to
// use an index.
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

// InSnapshot runs f in a read-only transaction whose queries all see the same snapshot of the database.
func (d *DB) InSnapshot(ctx context.Context, f func(Tx) error) error {
	readOnly := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, d.pool, readOnly, func(tx pgx.Tx) error { return f(&transaction{tx, new(bool)}) })
}

// Savepoint runs f in a savepoint. If f fails, its writes are rolled back and the transaction continues.
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

// transaction is a Tx that records whether it has enqueued notes that are due immediately.
type transaction struct {
	pgx.Tx
	hasNotes *bool
}

func (t *transaction) NotifyRelays() { *t.hasNotes = true }

// Begin creates a savepoint. Notes that are enqueued in the savepoint count as notes of the transaction.
func (t *transaction) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := t.Tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &transaction{tx, t.hasNotes}, nil
}

// SendBatch sends a batch. If the database and a callback report errors, the result returns the database's error. The server runs
// the whole batch even if a callback fails: a deadlock after the failure of a callback aborts the transaction, so that it must be
// retried.
func (t *transaction) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	r := &batchResults{}
	for _, q := range b.QueuedQueries {
		q.Fn = r.keepFirstError(q.Fn)
	}
	r.BatchResults = t.Tx.SendBatch(ctx, b)
	return r
}

// batchResults contains the results of a batch and the first error that a callback returned.
type batchResults struct {
	pgx.BatchResults
	firstError error
}

// keepFirstError wraps a callback. The wrapper stores the callback's error. The wrapper does not call the callback if an earlier
// callback has failed. The results after the failure are still read.
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

// Close returns the database's error or, without one, the first error of a callback.
func (r *batchResults) Close() error {
	if err := r.BatchResults.Close(); err != nil {
		return err
	}
	return r.firstError
}

// Transient reports whether a retry of the transaction may succeed: PostgreSQL reported it (serialization failure,
// deadlock), or another writer was faster (ErrRetry).
func Transient(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "40001" || pg.Code == "40P01" || isCreatedTwice(err)
	}
	return errors.Is(err, ErrRetry)
}

// isCreatedTwice reports whether another writer has created the same consumer meanwhile. The package db must know the constraint
// consumer_uuid, because the commit of a pipelined transaction may report the violation after all callbacks have run.
func isCreatedTwice(err error) bool { return Violates(err, "consumer_uuid") }

// WasOvertaken reports whether a transaction failed because another writer created the same row.
func WasOvertaken(err error) bool { return errors.Is(err, ErrRetry) || isCreatedTwice(err) }

// Violates reports whether err is a violation of the constraint with the given name.
func Violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.ConstraintName == constraint
}

// NotFoundOr converts pgx.ErrNoRows to ErrNotFound with a description of the missing row, and returns other errors unchanged.
func NotFoundOr(err error, format string, args ...any) error {
	if NoRows(err) {
		return fmt.Errorf("%w: %s", ErrNotFound, fmt.Sprintf(format, args...))
	}
	return err
}

// NoRows reports whether an error means that a query found no row.
func NoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
