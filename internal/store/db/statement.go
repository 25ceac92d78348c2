package db

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Query runs one SQL statement in its own transaction.
func (d *DB) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	o, err := d.begin(ctx, d.poolFor(ctx))
	if err != nil {
		return nil, err
	}
	found, err := o.conn.Query(o.ctx, sql, args...)
	if err != nil {
		err = o.classify(err, true)
		o.end(err)
		return nil, err
	}
	return &rows{Rows: found, operation: o}, nil
}

// QueryRow runs one SQL statement that returns at most one row, in its own transaction. The caller must call
// the method Scan of the result.
func (d *DB) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	o, err := d.begin(ctx, d.poolFor(ctx))
	if err != nil {
		return failedRow{err}
	}
	return &row{o.conn.QueryRow(o.ctx, sql, args...), o}
}

// Exec runs one SQL statement without a result, in its own transaction.
func (d *DB) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	err = d.withConn(ctx, d.poolFor(ctx), func(o *operation) (bool, error) {
		tag, err = o.conn.Exec(o.ctx, sql, args...)
		return true, err
	})
	return tag, err
}

// ExecInTx runs one SQL statement that writes rows of its condition, in a transaction that also writes the
// audit record of the request.
func (d *DB) ExecInTx(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	err = d.InTx(ctx, func(tx Tx) (err error) {
		tag, err = tx.Exec(ctx, sql, args...)
		return err
	})
	return tag, err
}

// SendBatch runs a batch of SQL statements in its own transaction. The caller must close the result.
func (d *DB) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	o, err := d.begin(ctx, d.poolFor(ctx))
	if err != nil {
		return failedBatch{err}
	}
	return &results{o.conn.SendBatch(o.ctx, b), o}
}

// rows are the rows of a statement outside of a transaction.
type rows struct {
	pgx.Rows
	operation *operation
	err       error // after the end of the operation
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

func (r *rows) end() {
	if !r.operation.ended {
		r.err = r.operation.classify(r.Rows.Err(), true)
		r.operation.end(r.err)
	}
}

func (r *rows) Err() error {
	if r.operation.ended {
		return r.err
	}
	return r.operation.classify(r.Rows.Err(), true)
}

func (r *rows) Scan(dest ...any) error { return r.operation.classify(r.Rows.Scan(dest...), true) }

// row is the row of a statement outside of a transaction.
type row struct {
	pgx.Row
	operation *operation
}

func (r *row) Scan(dest ...any) error {
	err := r.operation.classify(r.Row.Scan(dest...), true)
	r.operation.end(err)
	return err
}

// results are the results of a batch outside of a transaction.
type results struct {
	pgx.BatchResults
	operation *operation
}

func (r *results) Close() error {
	err := r.operation.classify(r.BatchResults.Close(), true)
	r.operation.end(err)
	return err
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
