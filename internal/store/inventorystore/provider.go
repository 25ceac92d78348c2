package inventorystore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// treeLock is the key of the advisory lock that protects the parents of all providers. A transaction that
// adds a child provider takes treeLock in shared mode. A transaction that moves a provider with its
// descendants takes treeLock in exclusive mode, so that no other transaction can add a descendant during the
// move.
const treeLock = 0x62657274

// CreateProvider creates a provider. CreateProvider returns a fault of kind DuplicateName if another provider
// has the same name or UUID, and a fault of kind Invalid if the parent provider does not exist.
func (s *Store) CreateProvider(ctx context.Context, p inventory.ProviderDraft) (inventory.Provider, error) {
	var created inventory.Provider
	err := s.db.InTx(ctx, func(tx db.Tx) error {
		if err := AddProvider(ctx, tx, p); err != nil {
			return err
		}
		var err error
		created, err = provider(ctx, tx, p.UUID)
		tx.Changed(db.Change{Type: providerType, ID: p.UUID, After: &created.Generation})
		return err
	})
	return created, err
}

// DeleteProvider deletes a provider with its inventories, traits and aggregates. DeleteProvider returns a
// fault of kind HasChildren if the provider has children, and a fault of kind ProviderInUse if consumers have
// allocations from it.
func (s *Store) DeleteProvider(ctx context.Context, uuid string) error {
	return s.db.InTx(ctx, func(tx db.Tx) error { return removeProvider(ctx, tx, uuid) })
}

// AddProvider does the same as CreateProvider, but in the caller's transaction. If AddProvider returns a
// fault of kind DuplicateName, the caller can only roll the transaction back.
func AddProvider(ctx context.Context, tx db.Tx, p inventory.ProviderDraft) error {
	if p.Parent != "" {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock_shared($1)`, treeLock); err != nil {
			return fmt.Errorf("lock the provider trees: %w", err)
		}
	}
	created := int64(0)
	batch := &pgx.Batch{}
	batch.Queue(`
		with new as (select nextval('provider_id') as id)
		insert into provider (id, uuid, name, parent_id, root_id)
		select new.id, $1, $2, parent.id, coalesce(parent.root_id, new.id)
		from new
		left join provider parent on parent.uuid = $3
		where $3 = '' or parent.id is not null`, p.UUID, p.Name, p.Parent).
		Exec(func(tag pgconn.CommandTag) error {
			created = tag.RowsAffected()
			return nil
		})
	queueHistory(
		ctx, batch, inventory.CauseCreated,
		inventory.GenerationChange{Provider: &inventory.GenerationShift{UUID: p.UUID, To: new(int64(0))}},
	)
	err := tx.SendBatch(ctx, batch).Close()
	switch {
	case db.Violates(err, "provider_name"):
		return inventory.Faultf(inventory.DuplicateName,
			"Conflicting resource provider name: %s already exists.", p.Name)
	case db.Violates(err, "provider_uuid"):
		return inventory.Faultf(inventory.DuplicateName,
			"Conflicting resource provider uuid: %s already exists.", p.UUID)
	case db.Violates(err, "provider_parent"),
		db.Violates(err, "provider_root"): // another writer has deleted the parent
		return inventory.Faultf(inventory.Invalid, "parent provider UUID does not exist.")
	case err != nil:
		return fmt.Errorf("create provider %s: %w", p.UUID, err)
	case created == 0:
		return inventory.Faultf(inventory.Invalid, "parent provider UUID does not exist.")
	}
	return nil
}

// DropProvider does the same as DeleteProvider, but in the caller's transaction, and returns nil if the
// provider does not exist.
func DropProvider(ctx context.Context, tx db.Tx, uuid string) error {
	if err := removeProvider(ctx, tx, uuid); !errors.Is(err, db.ErrNotFound) {
		return err
	}
	return nil
}

// removeProvider deletes a provider in the given transaction, under the same conditions as DeleteProvider.
func removeProvider(ctx context.Context, tx db.Tx, uuid string) error {
	var id, generation int64
	var children, allocations bool
	batch := &pgx.Batch{}
	batch.Queue(`select id, generation from provider where uuid = $1 for update`, uuid).
		QueryRow(func(row pgx.Row) error { return row.Scan(&id, &generation) })
	batch.Queue(`
		select exists (select from provider child where child.parent_id = p.id),
			exists (select from allocation a where a.provider_id = p.id)
		from provider p
		where p.uuid = $1`, uuid).
		QueryRow(func(row pgx.Row) error { return row.Scan(&children, &allocations) })
	err := db.NotFoundOr(tx.SendBatch(ctx, batch).Close(), "no provider %s", uuid)
	switch {
	case err != nil:
		return fmt.Errorf("delete provider %s: %w", uuid, err)
	case children:
		return inventory.Faultf(inventory.HasChildren,
			"Unable to delete parent resource provider %s: It has child resource providers.", uuid)
	case allocations:
		return inventory.Faultf(inventory.ProviderInUse,
			"Unable to delete resource provider %s: Resource provider has allocations.", uuid)
	}
	tx.Changed(db.Change{Type: providerType, ID: uuid, Before: &generation})
	batch = &pgx.Batch{}
	batch.Queue(`delete from provider where id = $1`, id)
	queueHistory(ctx, batch, inventory.CauseDeleted,
		inventory.GenerationChange{Provider: &inventory.GenerationShift{UUID: uuid, From: &generation}})
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("delete provider %s: %w", uuid, err)
	}
	return nil
}

// providerType is the type of providers in the audit log.
const providerType = "resource_provider"

// changed records a change of a locked provider for the audit log.
func (p LockedProvider) changed(tx db.Tx, before int64) {
	tx.Changed(db.Change{
		Type:   providerType,
		ID:     p.uuid,
		Before: &before,
		After:  &p.generation,
	})
}

// LockedProvider is a provider whose row the current transaction has locked. Until the transaction ends, no
// other transaction can change the generation, inventories, traits or aggregates of a LockedProvider.
type LockedProvider struct {
	id         int64
	uuid       string
	generation int64
}

// lockProvider locks the row of a provider, so that other writers of the provider wait until the caller's
// transaction ends.
func lockProvider(ctx context.Context, tx db.Tx, uuid string) (LockedProvider, error) {
	p := LockedProvider{uuid: uuid}
	err := tx.QueryRow(ctx, `
		select id, generation
		from provider
		where uuid = $1
		for no key update`, uuid).Scan(&p.id, &p.generation)
	if err := db.NotFoundOr(err, "No resource provider with uuid %s found", uuid); err != nil {
		return p, fmt.Errorf("lock provider: %w", err)
	}
	return p, nil
}

// checkGeneration returns a fault of kind ConcurrentUpdate with the given message if the provider does not
// have the generation that the writer expects.
func (p LockedProvider) checkGeneration(generation int64, message string) error {
	if p.generation != generation {
		return inventory.Faultf(inventory.ConcurrentUpdate, "%s", message).
			About(inventory.ProviderObject, p.uuid)
	}
	return nil
}

// QueueGeneration queues two statements: one increments the generation of a locked provider, the other adds
// an entry about the increment to the generation history.
func (p *LockedProvider) QueueGeneration(ctx context.Context, batch *pgx.Batch, cause inventory.Cause) {
	before := p.generation
	p.generation++
	batch.Queue(`update provider set generation = $2, updated_at = now() where id = $1`, p.id, p.generation)
	queueHistory(ctx, batch, cause, inventory.GenerationChange{
		Provider: &inventory.GenerationShift{UUID: p.uuid, From: &before, To: new(p.generation)},
	})
}
