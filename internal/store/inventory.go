package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
)

// setInventory is the step that gives a provider an inventory of one class, new or changed, and moves the
// provider's generation on. Allocations stay as they are, even if they exceed the new capacity. An unknown
// provider is ErrNotFound, an unknown class an *inventory.Problem.
func setInventory(ctx context.Context, tx pgx.Tx, provider, class string, i inventory.Inventory) error {
	p, err := lockProvider(ctx, tx, provider)
	if err != nil {
		return err
	}
	if err := knownClasses(ctx, tx, []string{class}); err != nil {
		return err
	}
	batch := &pgx.Batch{}
	queueInventory(batch, p, class, i)
	p.queueGeneration(batch)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("set inventory of %s: %w", provider, err)
	}
	return nil
}

// queueInventory writes an inventory of a class that exists.
func queueInventory(batch *pgx.Batch, p lockedProvider, class string, i inventory.Inventory) {
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

// dropInventory is the step that makes sure that a provider has no inventory of a class, and moves the
// provider's generation on if it had. One that is allocated from is refused (InventoryInUse).
func dropInventory(ctx context.Context, tx pgx.Tx, provider, class string) error {
	p, err := lockProvider(ctx, tx, provider)
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `
		delete from inventory i
		using resource_class c
		where i.provider_id = $1 and i.class_id = c.id and c.name = $2`, p.id, class)
	if violates(err, "allocation_inventory") {
		return inventory.Refuse(inventory.InventoryInUse, "Inventory for '%s' on resource provider '%s' in use.", class, provider)
	}
	if err != nil {
		return fmt.Errorf("drop inventory of %s: %w", provider, err)
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	p.queueGeneration(batch)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("drop inventory of %s: %w", provider, err)
	}
	return nil
}
