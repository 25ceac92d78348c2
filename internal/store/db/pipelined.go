package db

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// InPipelinedTx runs a transaction as InTx does, but with only two round trips to PostgreSQL. InPipelinedTx
// sends `begin` together with the batch that the function `reads` fills, and then the batch that the function
// `decide` fills together with `commit`. If `decide` queues no statement, InPipelinedTx rolls the transaction
// back. Because a pipelined transaction has only two round trips, it holds its locks for about the time of
// one round trip. Every statement in the two batches must be able to use an index, and no statement may
// enqueue notes.
func (d *DB) InPipelinedTx(
	ctx context.Context,
	reads func(*pgx.Batch),
	decide func(tx pgx.Tx, writes *pgx.Batch) error,
) error {
	return d.retry(func() error {
		return d.withPreparedConn(ctx, func(ctx context.Context, conn *pgxpool.Conn) (bool, error) {
			return runPipelined(ctx, conn, reads, decide)
		})
	})
}

// InBatch runs a transaction as InTx does, but with only one round trip to PostgreSQL: the transaction
// consists of the batch that the function `queue` fills, without explicit begin and commit. Every statement
// in the batch must be able to use an index. If a statement in the batch enqueues notes, the caller of
// InBatch must call NotifyRelays afterwards.
func (d *DB) InBatch(ctx context.Context, queue func(*pgx.Batch)) error {
	return d.retry(func() error {
		batch := &pgx.Batch{}
		queue(batch)
		return d.TryBatch(ctx, batch)
	})
}

// TryBatch runs a batch of statements as one transaction, as InBatch does, but does not retry the transaction
// after a deadlock or serialization failure.
func (d *DB) TryBatch(ctx context.Context, batch *pgx.Batch) error {
	return d.withPreparedConn(ctx, func(ctx context.Context, conn *pgxpool.Conn) (bool, error) {
		return true, conn.SendBatch(ctx, batch).Close()
	})
}

// withPreparedConn calls f with a connection that uses one generic plan for each prepared statement. The
// context of f never ends: when ctx ends, the connection fails.
func (d *DB) withPreparedConn(
	ctx context.Context,
	f func(context.Context, *pgxpool.Conn) (committing bool, err error),
) error {
	return d.withConn(ctx, d.prepared, func(o *operation) (bool, error) {
		committing, err := f(context.WithoutCancel(o.ctx), o.conn)
		if o.ctx.Err() != nil && err != nil {
			err = o.ctx.Err()
		}
		return committing, err
	})
}

func runPipelined(
	ctx context.Context,
	conn *pgxpool.Conn,
	reads func(*pgx.Batch),
	decide func(tx pgx.Tx, writes *pgx.Batch) error,
) (committing bool, err error) {
	batch := &pgx.Batch{}
	batch.BeginTx(pgx.TxOptions{})
	reads(batch)
	begun := conn.SendBatch(ctx, batch)
	tx := begun.Tx()
	err = begun.Close()
	batch = &pgx.Batch{}
	if err == nil {
		err = decide(tx, batch)
	}
	if err == nil && batch.Len() > 0 {
		batch.Queue(`commit`)
		committing = true
		if err = tx.SendBatch(ctx, batch).Close(); err == nil {
			return true, nil
		}
	}
	_ = tx.Rollback(ctx)
	return committing, err
}
