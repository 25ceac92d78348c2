package inventorystore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// SetInventory creates or replaces a provider's inventory of one resource class and increments the provider's
// generation, in the caller's transaction. SetInventory does not change existing allocations, even if they
// exceed the capacity of the new inventory. SetInventory returns db.ErrNotFound for an unknown provider, and
// an *inventory.Fault for an unknown resource class.
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
		return fmt.Errorf("set inventory of provider %s: %w", provider, err)
	}
	return nil
}

// QueueInventory queues the statement that creates or replaces a provider's inventory of a resource class.
// The resource class must exist.
func QueueInventory(batch *pgx.Batch, p LockedProvider, class string, i inventory.Inventory) {
	batch.Queue(
		`
		insert into inventory (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
		select @provider, id, @total, @reserved, @min_unit, @max_unit, @step_size, @allocation_ratio
		from resource_class
		where name = @class
		on conflict (provider_id, class_id) do update
		set total = excluded.total, reserved = excluded.reserved, min_unit = excluded.min_unit, max_unit = excluded.max_unit,
			step_size = excluded.step_size, allocation_ratio = excluded.allocation_ratio, updated_at = now()`,
		pgx.NamedArgs{
			"provider":         p.id,
			"class":            class,
			"total":            i.Total,
			"reserved":         i.Reserved,
			"min_unit":         i.MinUnit,
			"max_unit":         i.MaxUnit,
			"step_size":        i.StepSize,
			"allocation_ratio": i.AllocationRatio,
		},
	)
}
