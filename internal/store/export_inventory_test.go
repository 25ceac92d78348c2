package store

import (
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
