package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// InPipelinedTx does the same as InTx for a transaction of two round trips. The batch that `reads` fills is sent together with
// `begin`, and the batch that `decide` fills is sent together with `commit`. If `decide` queues nothing, the transaction is
// rolled back. The transaction therefore holds its locks for about one round trip only. Every statement must be able to use an
// index, and none may enqueue notes.
func (d *DB) InPipelinedTx(ctx context.Context, reads func(*pgx.Batch), decide func(tx pgx.Tx, writes *pgx.Batch) error) error {
	return retry(func() error {
		return d.withPreparedConn(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
			return runPipelined(ctx, conn, reads, decide)
		})
	})
}

// InBatch does the same as InTx for a transaction of one round trip: the batch that `queue` fills, which implies begin and
// commit. Every statement must be able to use an index. If a statement enqueues notes, the caller calls NotifyRelays
// afterwards.
func (d *DB) InBatch(ctx context.Context, queue func(*pgx.Batch)) error {
	return retry(func() error {
		batch := &pgx.Batch{}
		queue(batch)
		return d.TryBatch(ctx, batch)
	})
}

// TryBatch does the same as InBatch, but does not retry the transaction.
func (d *DB) TryBatch(ctx context.Context, batch *pgx.Batch) error {
	return d.withPreparedConn(ctx, func(ctx context.Context, conn *pgxpool.Conn) error { return conn.SendBatch(ctx, batch).Close() })
}

// withPreparedConn calls f with a connection of the pool with prepared plans. All calls on the connection fail when ctx ends.
func (d *DB) withPreparedConn(ctx context.Context, f func(context.Context, *pgxpool.Conn) error) error {
	conn, err := d.prepared.Acquire(ctx)
	if err != nil {
		return err
	}
	release := failWhenDone(ctx, conn)
	defer release()
	err = f(context.WithoutCancel(ctx), conn)
	if ctx.Err() != nil && err != nil {
		return ctx.Err()
	}
	return err
}

// failWhenDone makes every call that waits on the connection fail when ctx ends, until the connection is released. failWhenDone
// replaces the goroutines with which pgx watches the context of each statement.
func failWhenDone(ctx context.Context, conn *pgxpool.Conn) (release func()) {
	stop := context.AfterFunc(ctx, func() {
		_ = conn.Conn().PgConn().Conn().SetDeadline(time.Unix(1, 0))
	})
	return func() {
		if !stop() { // ctx has ended, so the connection cannot be used again
			_ = conn.Conn().Close(context.WithoutCancel(ctx))
		}
		conn.Release() // Release closes a connection that is still in a transaction
	}
}

func runPipelined(ctx context.Context, conn *pgxpool.Conn, reads func(*pgx.Batch), decide func(tx pgx.Tx, writes *pgx.Batch) error) error {
	batch := &pgx.Batch{}
	batch.BeginTx(pgx.TxOptions{})
	reads(batch)
	begun := conn.SendBatch(ctx, batch)
	tx := begun.Tx()
	err := begun.Close()
	batch = &pgx.Batch{}
	if err == nil {
		err = decide(tx, batch)
	}
	if err == nil && batch.Len() > 0 {
		batch.Queue(`commit`)
		if err = tx.SendBatch(ctx, batch).Close(); err == nil {
			return nil
		}
	}
	_ = tx.Rollback(ctx)
	return err
}
