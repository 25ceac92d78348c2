package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/journal"
)

// Nudge leaves notes in a transaction of their own.
func Nudge(ctx context.Context, s *Store, n ...contract.Nudge) error {
	return s.inTx(ctx, func(tx pgx.Tx) error { return nudge(ctx, tx, n...) })
}

// Record writes changes into the journal in a transaction of their own.
func Record(ctx context.Context, s *Store, c ...journal.Change) error {
	return s.inTx(ctx, func(tx pgx.Tx) error { return record(ctx, tx, c...) })
}

// Batch runs a batch in a transaction of its own.
func Batch(ctx context.Context, s *Store, queue func(*pgx.Batch)) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		queue(batch)
		return tx.SendBatch(ctx, batch).Close()
	})
}
