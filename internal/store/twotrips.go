package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// inTwoTrips is inTx for a transaction of two batches: what reads queues goes to the database along with begin, and
// what f queues, having judged what came of it, along with the commit; if that is nothing, all is rolled back. Locks
// are held no longer than that. Every statement of both must have an index for what it looks for. Notes cannot be
// left in it.
func (s *Store) inTwoTrips(ctx context.Context, reads func(*pgx.Batch), f func(tx pgx.Tx, writes *pgx.Batch) error) error {
	for attempt := 1; ; attempt++ {
		err := s.twoTrips(ctx, reads, f)
		if err == nil || attempt == retries || !transient(err) {
			return err
		}
	}
}

func (s *Store) twoTrips(ctx context.Context, reads func(*pgx.Batch), f func(tx pgx.Tx, writes *pgx.Batch) error) error {
	return s.onPaved(ctx, func(ctx context.Context, conn *pgxpool.Conn) error { return converse(ctx, conn, reads, f) })
}

// inOneTrip is inTx for a transaction of one batch, with which nothing is judged in between: it is begun and committed
// by the way. Every statement must have an index for what it looks for. Notes cannot be left in it, unless the caller
// wakes those who deliver them.
func (s *Store) inOneTrip(ctx context.Context, queue func(*pgx.Batch)) error {
	for attempt := 1; ; attempt++ {
		batch := &pgx.Batch{}
		queue(batch)
		err := s.oneTrip(ctx, batch)
		if err == nil || attempt == retries || !transient(err) {
			return err
		}
	}
}

func (s *Store) oneTrip(ctx context.Context, batch *pgx.Batch) error {
	return s.onPaved(ctx, func(ctx context.Context, conn *pgxpool.Conn) error { return conn.SendBatch(ctx, batch).Close() })
}

// onPaved lends f a connection on which everything fails when ctx ends.
func (s *Store) onPaved(ctx context.Context, f func(context.Context, *pgxpool.Conn) error) error {
	conn, err := s.paved.Acquire(ctx)
	if err != nil {
		return err
	}
	release := watched(ctx, conn)
	defer release()
	err = f(context.WithoutCancel(ctx), conn)
	if ctx.Err() != nil && err != nil {
		return ctx.Err()
	}
	return err
}

// watched makes everything that waits for a connection fail when ctx ends, until the connection is released. It
// spares the goroutines with which pgx watches each of a few short statements.
func watched(ctx context.Context, conn *pgxpool.Conn) (release func()) {
	stop := context.AfterFunc(ctx, func() {
		_ = conn.Conn().PgConn().Conn().SetDeadline(time.Unix(1, 0))
	})
	return func() {
		if !stop() { // nobody can use it any more
			_ = conn.Conn().Close(context.WithoutCancel(ctx))
		}
		conn.Release() // which closes a connection that is left in a transaction
	}
}

// converse is the transaction over a connection.
func converse(ctx context.Context, conn *pgxpool.Conn, reads func(*pgx.Batch), f func(tx pgx.Tx, writes *pgx.Batch) error) error {
	batch := &pgx.Batch{}
	batch.BeginTx(pgx.TxOptions{})
	reads(batch)
	begun := conn.SendBatch(ctx, batch)
	tx := begun.Tx()
	err := begun.Close()
	batch = &pgx.Batch{}
	if err == nil {
		err = f(tx, batch)
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
