package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// inTwoTrips is inTx for a transaction of two batches: what reads queues goes to the database along with begin, and
// what f queues, having judged what came of it, along with the commit. Locks are held no longer than that. Every
// statement of both must have an index for what it looks for. Notes cannot be left in it.
func (s *Store) inTwoTrips(ctx context.Context, reads func(*pgx.Batch), f func(tx pgx.Tx, writes *pgx.Batch) error) error {
	for attempt := 1; ; attempt++ {
		err := s.twoTrips(ctx, reads, f)
		if err == nil || attempt == retries || !transient(err) {
			return err
		}
	}
}

func (s *Store) twoTrips(ctx context.Context, reads func(*pgx.Batch), f func(tx pgx.Tx, writes *pgx.Batch) error) error {
	conn, err := s.paved.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // which closes a connection that is left in a transaction
	batch := &pgx.Batch{}
	batch.BeginTx(pgx.TxOptions{})
	reads(batch)
	begun := conn.SendBatch(ctx, batch)
	tx := begun.Tx()
	err = begun.Close()
	if err == nil {
		batch = &pgx.Batch{}
		err = f(tx, batch)
	}
	if err == nil {
		batch.Queue(`commit`)
		err = tx.SendBatch(ctx, batch).Close()
	}
	if err != nil {
		_ = tx.Rollback(ctx)
	}
	return err
}
