package db

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// maxDuration is the maximum duration of a transaction or statement whose context has no deadline. maxDuration ends a statement whose
// connection is stalled, for example by a proxy: PostgreSQL's own time limits do not end the wait of the client.
const maxDuration = 2 * time.Minute

// withDeadline returns a context that ends after maxDuration, unless ctx has a deadline already.
func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, limited := ctx.Deadline(); limited {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, maxDuration)
}

// Query runs one SQL statement in its own transaction.
func (d *DB) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	ctx, conn, end, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	found, err := conn.Query(ctx, sql, args...)
	if err != nil {
		end()
		return nil, classify(err, true)
	}
	return &rows{found, end}, nil
}

// QueryRow runs one SQL statement that returns at most one row, in its own transaction. The caller must call the method Scan of the
// result.
func (d *DB) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	ctx, conn, end, err := d.begin(ctx)
	if err != nil {
		return failedRow{err}
	}
	return &row{conn.QueryRow(ctx, sql, args...), end}
}

// Exec runs one SQL statement without a result, in its own transaction.
func (d *DB) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	ctx, conn, end, err := d.begin(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer end()
	tag, err := conn.Exec(ctx, sql, args...)
	return tag, classify(err, true)
}

// ExecInTx runs one SQL statement that writes rows of its condition, in a transaction that also writes the audit record of the request.
func (d *DB) ExecInTx(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	err = d.InTx(ctx, func(tx Tx) (err error) {
		tag, err = tx.Exec(ctx, sql, args...)
		return err
	})
	return tag, err
}

// SendBatch runs a batch of SQL statements in its own transaction. The caller must close the result.
func (d *DB) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	ctx, conn, end, err := d.begin(ctx)
	if err != nil {
		return failedBatch{err}
	}
	return &results{conn.SendBatch(ctx, b), end}
}

// begin limits the duration of a statement outside of a transaction and acquires a connection for the statement. The caller must call
// `end` when the statement has ended.
func (d *DB) begin(ctx context.Context) (_ context.Context, conn *pgxpool.Conn, end func(), err error) {
	ctx, cancel := withDeadline(ctx)
	pool := d.poolFor(ctx)
	release, err := d.admit(ctx, pool)
	if err != nil {
		cancel()
		return ctx, nil, nil, err
	}
	if conn, err = pool.Acquire(ctx); err != nil {
		release()
		cancel()
		return ctx, nil, nil, classify(err, false)
	}
	return ctx, conn, sync.OnceFunc(func() {
		conn.Release()
		release()
		cancel()
	}), nil
}

// rows are the rows of a statement outside of a transaction.
type rows struct {
	pgx.Rows
	end func()
}

func (r *rows) Next() bool {
	more := r.Rows.Next()
	if !more {
		r.end()
	}
	return more
}

func (r *rows) Close() {
	r.Rows.Close()
	r.end()
}

func (r *rows) Err() error { return classify(r.Rows.Err(), true) }

func (r *rows) Scan(dest ...any) error { return classify(r.Rows.Scan(dest...), true) }

// row is the row of a statement outside of a transaction.
type row struct {
	pgx.Row
	end func()
}

func (r *row) Scan(dest ...any) error {
	defer r.end()
	return classify(r.Row.Scan(dest...), true)
}

// results are the results of a batch outside of a transaction.
type results struct {
	pgx.BatchResults
	end func()
}

func (r *results) Close() error {
	defer r.end()
	return classify(r.BatchResults.Close(), true)
}

// failedRow is the row of a statement that got no connection.
type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

// failedBatch is the result of a batch that got no connection.
type failedBatch struct{ err error }

func (b failedBatch) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, b.err }
func (b failedBatch) Query() (pgx.Rows, error)         { return nil, b.err }
func (b failedBatch) QueryRow() pgx.Row                { return failedRow(b) }
func (b failedBatch) Close() error                     { return b.err }
func (b failedBatch) Tx() pgx.Tx                       { return nil }
