package inventorystore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// ProviderInventories returns the inventories of a provider, by resource class.
func (s *Store) ProviderInventories(
	ctx context.Context,
	provider string,
) (inventory.ProviderInventories, error) {
	return providerInventories(ctx, s.db, provider)
}

// providerInventoryRow is a row of a query result with one inventory of a provider. If a provider has no
// inventories, the result has one row in which every field except Generation is null.
type providerInventoryRow struct {
	Generation                                  int64
	Class                                       *string
	Total, Reserved, MinUnit, MaxUnit, StepSize *int64
	AllocationRatio                             *float64
	ChangedAt                                   *time.Time
}

func providerInventories(
	ctx context.Context,
	q db.Querier,
	provider string,
) (inventory.ProviderInventories, error) {
	all := inventory.ProviderInventories{Classes: map[string]inventory.Inventory{}}
	rows, err := db.QueryAll(ctx, q, pgx.RowToStructByName[providerInventoryRow], `
		select p.generation, c.name as class, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.allocation_ratio,
			coalesce(i.updated_at, i.created_at) as changed_at
		from provider p
		left join (inventory i join resource_class c on c.id = i.class_id) on i.provider_id = p.id
		where p.uuid = $1`, provider)
	if err != nil {
		return inventory.ProviderInventories{}, fmt.Errorf("read inventories of provider %s: %w",
			provider, err)
	}
	if len(rows) == 0 {
		return inventory.ProviderInventories{}, fmt.Errorf("%w: no provider %s", db.ErrNotFound, provider)
	}
	for _, r := range rows {
		all.Generation = r.Generation
		if r.Class == nil {
			continue
		}
		all.Classes[*r.Class] = inventory.Inventory{
			Total:           *r.Total,
			Reserved:        *r.Reserved,
			MinUnit:         *r.MinUnit,
			MaxUnit:         *r.MaxUnit,
			StepSize:        *r.StepSize,
			AllocationRatio: *r.AllocationRatio,
		}
		all.ChangedAt = latest(all.ChangedAt, *r.ChangedAt)
	}
	return all, nil
}

// latest returns the later one of the two given times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// CreateInventory creates a provider's inventory of a resource class. CreateInventory returns a fault if the
// provider already has an inventory of the resource class.
func (s *Store) CreateInventory(
	ctx context.Context,
	provider, class string,
	i inventory.Inventory,
) (inventory.ProviderInventories, error) {
	return s.changeInventories(ctx, provider, func(tx db.Tx, p LockedInventories, batch *pgx.Batch) error {
		if slices.Contains(p.classes, class) {
			return inventory.Faultf(inventory.ConcurrentUpdate,
				"Update conflict: Inventory for '%s' on resource provider '%s' already exists.",
				class, p.uuid).About(inventory.ProviderObject, p.uuid)
		}
		QueueInventory(batch, p.LockedProvider, class, i)
		return p.checkNewClasses(ctx, tx, class)
	})
}

// UpdateInventory changes a provider's inventory of a resource class; the provider must have the given
// generation. UpdateInventory returns a fault of kind UnknownClass for an unknown resource class, and a fault
// of kind Missing if the provider has no inventory of the class.
func (s *Store) UpdateInventory(ctx context.Context, provider string, generation int64, class string,
	i inventory.Inventory) (inventory.ProviderInventories, error) {
	return s.changeInventories(ctx, provider, func(tx db.Tx, p LockedInventories, batch *pgx.Batch) error {
		if err := p.checkGeneration(generation, staleGenerationMessage); err != nil {
			return err
		}
		if err := p.checkNewClasses(ctx, tx, class); err != nil {
			return err
		}
		if !slices.Contains(p.classes, class) {
			return inventory.Faultf(inventory.Missing, "No inventory of class %s found.", class)
		}
		QueueInventory(batch, p.LockedProvider, class, i)
		return nil
	})
}

// ReplaceInventories replaces all inventories of a provider; the provider must have the given generation. If
// a present inventory has allocations and the new inventories do not contain its resource class,
// ReplaceInventories returns a fault of kind InventoryInUse.
func (s *Store) ReplaceInventories(ctx context.Context, provider string, generation int64,
	classes map[string]inventory.Inventory) (inventory.ProviderInventories, error) {
	return s.changeInventories(ctx, provider, func(tx db.Tx, p LockedInventories, batch *pgx.Batch) error {
		if err := p.checkGeneration(generation, staleGenerationMessage); err != nil {
			return err
		}
		names := slices.Sorted(maps.Keys(classes))
		if err := p.checkNewClasses(ctx, tx, names...); err != nil {
			return err
		}
		for _, class := range names {
			QueueInventory(batch, p.LockedProvider, class, classes[class])
		}
		return p.QueueDelete(ctx, tx, batch, slices.DeleteFunc(p.classes, func(class string) bool {
			_, kept := classes[class]
			return kept
		}))
	})
}

// DeleteInventory deletes a provider's inventory of a resource class. DeleteInventory returns a fault of kind
// Missing if the provider has no inventory of the class, and a fault of kind InventoryInUse if the inventory
// has allocations.
func (s *Store) DeleteInventory(ctx context.Context, provider, class string) error {
	_, err := s.changeInventories(ctx, provider, func(tx db.Tx, p LockedInventories, batch *pgx.Batch) error {
		if !slices.Contains(p.classes, class) {
			return inventory.Faultf(inventory.Missing, "No inventory of class %s found for delete", class)
		}
		return p.QueueDelete(ctx, tx, batch, []string{class})
	})
	return err
}

// DeleteInventories deletes all inventories of a provider. DeleteInventories returns a fault of kind
// InventoryInUse if one of the inventories has allocations.
func (s *Store) DeleteInventories(ctx context.Context, provider string) error {
	_, err := s.changeInventories(ctx, provider, func(tx db.Tx, p LockedInventories, batch *pgx.Batch) error {
		return p.QueueDelete(ctx, tx, batch, p.classes)
	})
	return err
}

const staleGenerationMessage = "resource provider generation conflict"

// LockedInventories is a locked provider with the resource classes of the provider's inventories, in the
// order of the IDs of the classes.
type LockedInventories struct {
	LockedProvider
	classes []string
}

// changeInventories locks a provider, calls the function `prepare`, which checks and queues the change of the
// provider's inventories, then increments the provider's generation, and returns the new inventories.
func (s *Store) changeInventories(ctx context.Context, provider string,
	prepare func(db.Tx, LockedInventories, *pgx.Batch) error) (inventory.ProviderInventories, error) {
	var after inventory.ProviderInventories
	err := s.db.InTx(ctx, func(tx db.Tx) error {
		p, err := LockInventories(ctx, tx, provider)
		if err != nil {
			return err
		}
		batch := &pgx.Batch{}
		if err := prepare(tx, p, batch); err != nil {
			return err
		}
		before := p.generation
		p.QueueGeneration(ctx, batch, inventory.CauseInventories)
		p.changed(tx, before)
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("change inventories of provider %s: %w", provider, err)
		}
		after, err = providerInventories(ctx, tx, provider)
		return err
	})
	s.conflicts.record(err, inventory.CauseInventories)
	return after, err
}

// LockInventories locks a provider and reads the resource classes of the provider's inventories.
func LockInventories(ctx context.Context, tx db.Tx, provider string) (LockedInventories, error) {
	p := LockedInventories{}
	var err error
	if p.LockedProvider, err = lockProvider(ctx, tx, provider); err != nil {
		return p, err
	}
	rows, err := tx.Query(ctx, `
		select c.name
		from inventory i
		join resource_class c on c.id = i.class_id
		where i.provider_id = $1
		order by c.id`, p.id)
	if err != nil {
		return p, fmt.Errorf("read inventory classes of provider %s: %w", provider, err)
	}
	if p.classes, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return p, fmt.Errorf("read inventory classes of provider %s: %w", provider, err)
	}
	return p, nil
}

// checkNewClasses returns a fault if one of the resource classes does not exist. If the provider already has
// an inventory of a class, checkNewClasses does not check the class, because the class then exists.
func (p LockedInventories) checkNewClasses(ctx context.Context, tx db.Tx, classes ...string) error {
	unknown := slices.DeleteFunc(slices.Clone(classes),
		func(class string) bool { return slices.Contains(p.classes, class) })
	if len(unknown) == 0 {
		return nil
	}
	return checkClasses(ctx, tx, unknown)
}

// QueueDelete queues the deletion of a provider's inventories of the given resource classes. If one of these
// inventories has allocations, QueueDelete returns a fault of kind InventoryInUse.
func (p LockedInventories) QueueDelete(
	ctx context.Context,
	tx db.Tx,
	batch *pgx.Batch,
	classes []string,
) error {
	if len(classes) == 0 {
		return nil
	}
	used, err := db.QueryAll(ctx, tx, pgx.RowTo[string], `
		select c.name
		from inventory i
		join resource_class c on c.id = i.class_id
		where i.provider_id = $1 and c.name = any($2)
			and exists (select from allocation a where a.provider_id = i.provider_id and a.class_id = i.class_id)
		order by c.id`, p.id, classes)
	if err != nil {
		return fmt.Errorf("check whether inventories are in use: %w", err)
	}
	if len(used) > 0 {
		return inventory.Faultf(inventory.InventoryInUse,
			"Inventory for '%s' on resource provider '%s' in use.", strings.Join(used, ", "), p.uuid)
	}
	batch.Queue(`
		delete from inventory i
		using resource_class c
		where i.provider_id = $1 and i.class_id = c.id and c.name = any($2)`, p.id, classes)
	return nil
}
