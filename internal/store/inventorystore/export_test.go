package inventorystore

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// Together replaces allocations in one transaction, as writers of one provider share it, and returns what each of
// them is told.
func Together(ctx context.Context, s *Store, all ...[]inventory.ConsumerWrite) []error {
	var together []*AllocationWrite
	for _, writes := range all {
		together = append(together, NewAllocationWrite(ctx, writes))
	}
	err := s.settle(ctx, together...)
	var told []error
	for _, r := range together {
		told = append(told, cmp.Or(err, r.Refusal))
	}
	return told
}

// AtOnce tries to do a write in one statement.
func AtOnce(ctx context.Context, s *Store, w inventory.ConsumerWrite) (done bool, err error) {
	return s.allocateAtOnce(ctx, NewAllocationWrite(ctx, []inventory.ConsumerWrite{w}))
}

// Waiting is how many writers wait in a provider's line.
func Waiting(s *Store, provider string) int {
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	if at, ok := s.lines.provider[provider]; ok {
		return len(at.waiting)
	}
	return 0
}

// Lines is how many providers have a line.
func Lines(s *Store) int {
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	return len(s.lines.provider)
}

// Batch runs a batch in a transaction of its own.
func Batch(ctx context.Context, s *Store, queue func(*pgx.Batch)) error {
	return s.db.InTx(ctx, func(tx db.Tx) error {
		batch := &pgx.Batch{}
		queue(batch)
		return tx.SendBatch(ctx, batch).Close()
	})
}
