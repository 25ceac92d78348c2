package store

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
)

// Stock creates a provider with inventories, as a lease does for its hosts.
func Stock(ctx context.Context, s *Store, p inventory.NewProvider, stock map[string]inventory.Inventory) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if err := addProvider(ctx, tx, p); err != nil {
			return err
		}
		for class, i := range stock {
			if err := ensureClass(ctx, tx, class); err != nil {
				return err
			}
			if err := setInventory(ctx, tx, p.UUID, class, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// Together replaces allocations in one transaction, as writers of one provider share it, and returns what each of
// them is told.
func Together(ctx context.Context, s *Store, all ...[]inventory.ConsumerWrite) []error {
	var together []*replacement
	for _, writes := range all {
		together = append(together, newReplacement(ctx, writes))
	}
	err := s.settle(ctx, together...)
	var told []error
	for _, r := range together {
		told = append(told, cmp.Or(err, r.refusal))
	}
	return told
}

// AtOnce tries to do a write in one statement.
func AtOnce(ctx context.Context, s *Store, w inventory.ConsumerWrite) (done bool, err error) {
	return s.allocateAtOnce(ctx, newReplacement(ctx, []inventory.ConsumerWrite{w}))
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
