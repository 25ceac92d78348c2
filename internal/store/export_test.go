package store

import (
	"context"

	"github.com/google/uuid"
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

// BlockNetworks registers networks as objects that entities can block. What decides them leaves a note for each
// completion that was the last.
func BlockNetworks() {
	blockables["network"] = blockable{
		lock: `select from network where id = $1 for update`,
		decide: func(ctx context.Context, tx pgx.Tx, id uuid.UUID, entity string, blocked bool) error {
			if entity == "" || blocked {
				return nil
			}
			return nudge(ctx, tx, contract.Nudge{Workflow: "Network", ID: "network/" + id.String(), Summary: entity})
		},
	}
}

// ForgetNetworks undoes BlockNetworks.
func ForgetNetworks() { delete(blockables, "network") }
