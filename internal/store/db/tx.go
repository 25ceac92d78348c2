package db

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	// ErrNotFound means that the requested row does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that another writer has changed the row first, or that the row is not in the state
	// that the writer expected.
	ErrConflict = errors.New("conflict")
	// ErrRetry means that another writer has created a row that the transaction did not see. If a transaction
	// fails with ErrRetry, InTx and InPipelinedTx retry the transaction.
	ErrRetry = errors.New("another writer was faster")
)

// Tx is a transaction of berth. A function with a parameter of type Tx runs as part of its caller's
// transaction.
type Tx interface {
	pgx.Tx
	// NotifyRelays requests that the relays are notified after the commit that notes are due.
	NotifyRelays()
	// Changed records a change of an object for the audit log.
	Changed(Change)
	// QueueLast queues a statement that runs at the end of the transaction, together with the commit. The
	// queued statements run in the order of their keys, so transactions lock the rows that the keys name in
	// the same order, and no other lock follows. Statements with the same key run in the order in which they
	// were queued.
	QueueLast(key, sql string, args ...any)
	// LimitRest ends the transaction after the given time, unless the transaction has ended before. The
	// caller then gets an error for which WasLocked reports true. Only the first call has an effect.
	LimitRest(limit time.Duration)
}

// retries is the maximum number of retries of a transaction after a deadlock or serialization failure.
const retries = 5

// InTx runs f in one read-committed transaction and commits it. After a deadlock or serialization failure,
// InTx runs f again; therefore f must not have an effect outside the transaction.
func (d *DB) InTx(ctx context.Context, f func(Tx) error) error {
	return d.inTx(ctx, d.poolFor(ctx), f)
}

// InPreparedTx does the same as InTx, but on a connection that plans each statement only once. Each statement
// that f runs must be able to use an index.
func (d *DB) InPreparedTx(ctx context.Context, f func(Tx) error) error {
	return d.inTx(ctx, d.prepared, f)
}

func (d *DB) inTx(ctx context.Context, pool *pgxpool.Pool, f func(Tx) error) error {
	return d.retry(func() error {
		state := &txState{audit: &auditState{recorder: RecorderOf(ctx)}}
		err := d.runTx(ctx, pool, pgx.TxOptions{}, state, f)
		if err == nil && state.hasNotes {
			d.NotifyRelays()
		}
		return err
	})
}

// InSnapshot runs f in a read-only transaction; all queries of this transaction see the same snapshot of the
// database.
func (d *DB) InSnapshot(ctx context.Context, f func(Tx) error) error {
	readOnly := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return d.runTx(ctx, d.poolFor(ctx), readOnly, &txState{audit: &auditState{}}, f)
}

// runTx runs f in a transaction. If the answer to the commit is missing, runTx returns an *UnavailableError
// with an unknown outcome.
func (d *DB) runTx(
	ctx context.Context,
	pool *pgxpool.Pool,
	options pgx.TxOptions,
	state *txState,
	f func(Tx) error,
) error {
	return d.withConn(ctx, pool, func(o *operation) (committing bool, err error) {
		ctx, conn := o.ctx, o.conn
		state.operation = o
		tx, err := conn.Conn().BeginTx(ctx, options)
		if err != nil {
			return false, err
		}
		if err = f(&transaction{tx, state}); err != nil {
			_ = tx.Rollback(ctx)
			return false, err
		}
		end := state.end()
		if end.Len() == 0 {
			return true, tx.Commit(ctx)
		}
		end.Queue(`commit`)
		if err = conn.SendBatch(ctx, end).Close(); err != nil {
			_ = tx.Rollback(ctx)
		}
		return true, err
	})
}

// Savepoint runs f in a savepoint. If f returns an error, Savepoint rolls the writes of f back, and the
// caller can continue the transaction.
func Savepoint(ctx context.Context, tx Tx, f func(Tx) error) error {
	state := tx.(*transaction).txState
	queued, changes := len(state.last), len(state.audit.changes)
	err := pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error { return f(inner.(Tx)) })
	if err != nil {
		state.last, state.audit.changes = state.last[:queued], state.audit.changes[:changes]
	}
	return err
}

func (d *DB) retry(f func() error) error {
	for attempt := 1; ; attempt++ {
		err := f()
		if err == nil || attempt == retries || !Transient(err) {
			return err
		}
		d.retried[retryReason(err)].Add(1)
	}
}

// txState is what a transaction shares with its savepoints, and records for the end of the transaction.
type txState struct {
	operation *operation
	hasNotes  bool // notes that are due immediately were enqueued
	audit     *auditState
	last      []lastStatement
}

// lastStatement is a statement of QueueLast.
type lastStatement struct {
	key, sql string
	args     []any
}

// end returns the statements that run between the function of the transaction and the commit.
func (s *txState) end() *pgx.Batch {
	batch := &pgx.Batch{}
	slices.SortStableFunc(s.last, func(a, b lastStatement) int { return strings.Compare(a.key, b.key) })
	for _, l := range s.last {
		batch.Queue(l.sql, l.args...)
	}
	s.audit.queueRecords(batch)
	return batch
}

// transaction is a Tx with the state that it shares with its savepoints.
type transaction struct {
	pgx.Tx
	*txState
}

func (t *transaction) NotifyRelays() { t.hasNotes = true }

func (t *transaction) LimitRest(limit time.Duration) { t.operation.limitRest(limit) }

func (t *transaction) QueueLast(key, sql string, args ...any) {
	t.audit.note(sql)
	t.last = append(t.last, lastStatement{key, sql, args})
}

// Begin creates a savepoint. Notes that are enqueued after the creation of the savepoint count as notes of
// the whole transaction.
func (t *transaction) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := t.Tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &transaction{tx, t.txState}, nil
}

// SendBatch sends a batch. If both PostgreSQL and a callback of the batch return an error, Close of the
// result returns PostgreSQL's error. PostgreSQL runs the whole batch even if a callback fails. If a deadlock
// follows the failure of a callback, PostgreSQL aborts the transaction, and Close must return the error of
// the deadlock so that the transaction is retried.
func (t *transaction) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	r := &batchResults{}
	for _, q := range b.QueuedQueries {
		q.Fn = t.audit.watch(q.SQL, r.keepFirstError(q.Fn))
	}
	r.BatchResults = t.Tx.SendBatch(ctx, b)
	return r
}

// batchResults contains the results of a batch and the first error that a callback returned.
type batchResults struct {
	pgx.BatchResults
	firstError error
}

// keepFirstError returns a callback of a batch that calls `callback` and stores its error. If an earlier
// callback of the batch has failed, the returned callback does not call `callback`, but still reads the
// result of its statement.
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

// Transient reports whether a retry of the transaction may succeed, because the error is a serialization
// failure or a deadlock in PostgreSQL, or because another writer has created a row first (ErrRetry).
func Transient(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "40001" || pg.Code == "40P01" || isCreatedTwice(err)
	}
	return errors.Is(err, ErrRetry)
}

// isCreatedTwice reports whether the error means that another writer has created the same consumer since the
// transaction began. The constraint consumer_uuid must be known in package db, because the violation of this
// constraint may be reported only at the commit of a pipelined transaction, after all callbacks have run.
func isCreatedTwice(err error) bool { return Violates(err, "consumer_uuid") }

// WasOvertaken reports whether a transaction failed with the error err because another writer created the
// same row first.
func WasOvertaken(err error) bool { return errors.Is(err, ErrRetry) || isCreatedTwice(err) }

// Violates reports whether err is a violation of the constraint with the given name.
func Violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.ConstraintName == constraint
}

// NotFoundOr converts pgx.ErrNoRows to ErrNotFound with a description of the missing row, and returns other
// errors unchanged.
func NotFoundOr(err error, format string, args ...any) error {
	if NoRows(err) {
		return fmt.Errorf("%w: %s", ErrNotFound, fmt.Sprintf(format, args...))
	}
	return err
}

// NoRows reports whether an error means that a query found no row.
func NoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
