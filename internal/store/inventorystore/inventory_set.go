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

// ProviderInventories is what a provider has of every class.
func (s *Store) ProviderInventories(ctx context.Context, provider string) (inventory.ProviderInventories, error) {
	return stock(ctx, s.db, provider)
}

func stock(ctx context.Context, q db.Querier, provider string) (inventory.ProviderInventories, error) {
	rows, err := q.Query(ctx, `
		select p.generation, c.name, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.allocation_ratio,
			coalesce(i.updated_at, i.created_at)
		from provider p
		left join (inventory i join resource_class c on c.id = i.class_id) on i.provider_id = p.id
		where p.uuid = $1`, provider)
	if err != nil {
		return inventory.ProviderInventories{}, fmt.Errorf("stock of %s: %w", provider, err)
	}
	s := inventory.ProviderInventories{Classes: map[string]inventory.Inventory{}}
	var class *string
	var total, reserved, minUnit, maxUnit, stepSize *int64
	var ratio *float64
	var at *time.Time
	tag, err := pgx.ForEachRow(rows, []any{&s.Generation, &class, &total, &reserved, &minUnit, &maxUnit, &stepSize, &ratio, &at},
		func() error {
			if class == nil {
				return nil
			}
			s.Classes[*class] = inventory.Inventory{Total: *total, Reserved: *reserved, MinUnit: *minUnit, MaxUnit: *maxUnit,
				StepSize: *stepSize, AllocationRatio: *ratio}
			s.ChangedAt = latest(s.ChangedAt, *at)
			return nil
		})
	if err != nil {
		return inventory.ProviderInventories{}, fmt.Errorf("stock of %s: %w", provider, err)
	}
	if tag.RowsAffected() == 0 {
		return inventory.ProviderInventories{}, fmt.Errorf("%w: no provider %s", db.ErrNotFound, provider)
	}
	return s, nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// CreateInventory gives a provider an inventory of a class that it does not have yet.
func (s *Store) CreateInventory(ctx context.Context, provider, class string, i inventory.Inventory) (inventory.ProviderInventories, error) {
	return s.changeStock(ctx, provider, func(tx db.Tx, p LockedInventories, batch *pgx.Batch) error {
		if slices.Contains(p.classes, class) {
			return inventory.Faultf(inventory.ConcurrentUpdate,
				"Update conflict: Inventory for '%s' on resource provider '%s' already exists.", class, p.uuid)
		}
		QueueInventory(batch, p.LockedProvider, class, i)
		return p.checkNew(ctx, tx, class)
	})
}

// UpdateInventory changes an inventory that the provider, at that generation, has. A class that does not exist
// is an UnknownClass, one that the provider does not have Missing.
func (s *Store) UpdateInventory(ctx context.Context, provider string, generation int64, class string,
	i inventory.Inventory) (inventory.ProviderInventories, error) {
	return s.changeStock(ctx, provider, func(tx db.Tx, p LockedInventories, batch *pgx.Batch) error {
		if err := p.at(generation, staleStock); err != nil {
			return err
		}
		if err := p.checkNew(ctx, tx, class); err != nil {
			return err
		}
		if !slices.Contains(p.classes, class) {
			return inventory.Faultf(inventory.Missing, "No inventory of class %s found.", class)
		}
		QueueInventory(batch, p.LockedProvider, class, i)
		return nil
	})
}

// ReplaceInventories makes the inventories of a provider, at that generation, exactly those. One that is allocated
// from cannot be left out (InventoryInUse).
func (s *Store) ReplaceInventories(ctx context.Context, provider string, generation int64,
	classes map[string]inventory.Inventory) (inventory.ProviderInventories, error) {
	return s.changeStock(ctx, provider, func(tx db.Tx, p LockedInventories, batch *pgx.Batch) error {
		if err := p.at(generation, staleStock); err != nil {
			return err
		}
		names := slices.Sorted(maps.Keys(classes))
		if err := p.checkNew(ctx, tx, names...); err != nil {
			return err
		}
		for _, class := range names {
			QueueInventory(batch, p.LockedProvider, class, classes[class])
		}
		return p.QueueDelete(ctx, tx, batch, slices.DeleteFunc(p.classes, func(class string) bool {
			_, stays := classes[class]
			return stays
		}))
	})
}

// DeleteInventory takes an inventory away; Missing if the provider has none of the class, InventoryInUse if it
// is allocated from.
func (s *Store) DeleteInventory(ctx context.Context, provider, class string) error {
	_, err := s.changeStock(ctx, provider, func(tx db.Tx, p LockedInventories, batch *pgx.Batch) error {
		if !slices.Contains(p.classes, class) {
			return inventory.Faultf(inventory.Missing, "No inventory of class %s found for delete", class)
		}
		return p.QueueDelete(ctx, tx, batch, []string{class})
	})
	return err
}

// DeleteInventories takes every inventory away; InventoryInUse if one is allocated from.
func (s *Store) DeleteInventories(ctx context.Context, provider string) error {
	_, err := s.changeStock(ctx, provider, func(tx db.Tx, p LockedInventories, batch *pgx.Batch) error {
		return p.QueueDelete(ctx, tx, batch, p.classes)
	})
	return err
}

const staleStock = "resource provider generation conflict"

// LockedInventories is a locked provider and the classes of its inventories in the order of their IDs.
type LockedInventories struct {
	LockedProvider
	classes []string
}

// changeStock locks the provider, lets prepare check the change and put it into the batch, does it, moves the
// generation on and reads what became of it.
func (s *Store) changeStock(ctx context.Context, provider string,
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
		p.QueueGeneration(ctx, batch, inventory.CauseInventories)
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("change stock of %s: %w", provider, err)
		}
		after, err = stock(ctx, tx, provider)
		return err
	})
	return after, err
}

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
		return p, fmt.Errorf("classes of %s: %w", provider, err)
	}
	if p.classes, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return p, fmt.Errorf("classes of %s: %w", provider, err)
	}
	return p, nil
}

// checkNew refuses classes that do not exist. Those of which the provider has inventory do.
func (p LockedInventories) checkNew(ctx context.Context, tx db.Tx, classes ...string) error {
	fresh := slices.DeleteFunc(slices.Clone(classes), func(class string) bool { return slices.Contains(p.classes, class) })
	if len(fresh) == 0 {
		return nil
	}
	return checkClasses(ctx, tx, fresh)
}

// QueueDelete puts into the batch that inventories go away, unless one of them is allocated from.
func (p LockedInventories) QueueDelete(ctx context.Context, tx db.Tx, batch *pgx.Batch, classes []string) error {
	if len(classes) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, `
		select c.name
		from inventory i
		join resource_class c on c.id = i.class_id
		where i.provider_id = $1 and c.name = any($2)
			and exists (select from allocation a where a.provider_id = i.provider_id and a.class_id = i.class_id)
		order by c.id`, p.id, classes)
	if err != nil {
		return fmt.Errorf("inventories in use: %w", err)
	}
	used, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("inventories in use: %w", err)
	}
	if len(used) > 0 {
		return inventory.Faultf(inventory.InventoryInUse, "Inventory for '%s' on resource provider '%s' in use.",
			strings.Join(used, ", "), p.uuid)
	}
	batch.Queue(`
		delete from inventory i
		using resource_class c
		where i.provider_id = $1 and i.class_id = c.id and c.name = any($2)`, p.id, classes)
	return nil
}
