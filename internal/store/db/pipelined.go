package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// InPipelinedTx is InTx for a transaction of two round trips: the batch that reads fills goes to the database along with
// begin, and the batch that decide fills goes along with commit. If decide queues nothing, the transaction is rolled back.
// Locks are held no longer than that. Every statement must have an index for what it looks for, and none may enqueue notes.
func (d *DB) InPipelinedTx(ctx context.Context, reads func(*pgx.Batch), decide func(tx pgx.Tx, writes *pgx.Batch) error) error {
	return retry(func() error {
		return d.withPreparedConn(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
			return runPipelined(ctx, conn, reads, decide)
		})
	})
}

// InBatch is InTx for a transaction of one round trip: the batch that queue fills, which implies begin and commit. Every
// statement must have an index for what it looks for. If it enqueues notes, the caller calls NotifyRelays afterwards.
func (d *DB) InBatch(ctx context.Context, queue func(*pgx.Batch)) error {
	return retry(func() error {
		batch := &pgx.Batch{}
		queue(batch)
		return d.TryBatch(ctx, batch)
	})
}

// TryBatch is InBatch without running the transaction again.
func (d *DB) TryBatch(ctx context.Context, batch *pgx.Batch) error {
	return d.withPreparedConn(ctx, func(ctx context.Context, conn *pgxpool.Conn) error { return conn.SendBatch(ctx, batch).Close() })
}

// withPreparedConn lends f a connection on which everything fails when ctx ends.
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

// failWhenDone makes everything that waits for a connection fail when ctx ends, until the connection is released. It
// spares the goroutines with which pgx watches the context of each statement.
func failWhenDone(ctx context.Context, conn *pgxpool.Conn) (release func()) {
	stop := context.AfterFunc(ctx, func() {
		_ = conn.Conn().PgConn().Conn().SetDeadline(time.Unix(1, 0))
	})
	return func() {
		if !stop() { // the deadline has passed, so the connection cannot be used again
			_ = conn.Conn().Close(context.WithoutCancel(ctx))
		}
		conn.Release() // which closes a connection that is left in a transaction
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
