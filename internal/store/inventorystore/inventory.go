package inventorystore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// SetInventory is the step that gives a provider an inventory of one class, new or changed, and moves the
// provider's generation on. Allocations stay as they are, even if they exceed the new capacity. An unknown
// provider is ErrNotFound, an unknown class an *inventory.Fault.
func SetInventory(ctx context.Context, tx db.Tx, provider, class string, i inventory.Inventory) error {
	p, err := lockProvider(ctx, tx, provider)
	if err != nil {
		return err
	}
	if err := checkClasses(ctx, tx, []string{class}); err != nil {
		return err
	}
	batch := &pgx.Batch{}
	QueueInventory(batch, p, class, i)
	p.QueueGeneration(ctx, batch, inventory.CauseInventories)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("set inventory of %s: %w", provider, err)
	}
	return nil
}

// QueueInventory writes an inventory of a class that exists.
func QueueInventory(batch *pgx.Batch, p LockedProvider, class string, i inventory.Inventory) {
	batch.Queue(`
		insert into inventory (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
		select $1, id, $3, $4, $5, $6, $7, $8
		from resource_class
		where name = $2
		on conflict (provider_id, class_id) do update
		set total = excluded.total, reserved = excluded.reserved, min_unit = excluded.min_unit, max_unit = excluded.max_unit,
			step_size = excluded.step_size, allocation_ratio = excluded.allocation_ratio, updated_at = now()`,
		p.id, class, i.Total, i.Reserved, i.MinUnit, i.MaxUnit, i.StepSize, i.AllocationRatio)
}
