package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
)

// treeLock is the advisory lock of the shape of the provider trees: shared by those who add a child, exclusive
// for those who move a subtree, so that a root never misses a descendant.
const treeLock = 0x62657274

// addProvider is the step that creates a provider. A taken name or UUID is a DuplicateName, an unknown parent
// Invalid; a transaction that was refused for a duplicate can only be rolled back.
func addProvider(ctx context.Context, tx pgx.Tx, p inventory.NewProvider) error {
	if p.Parent != "" {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock_shared($1)`, treeLock); err != nil {
			return fmt.Errorf("lock the provider trees: %w", err)
		}
	}
	tag, err := tx.Exec(ctx, `
		with me as (select nextval('provider_id') as id)
		insert into provider (id, uuid, name, parent_id, root_id)
		select me.id, $1, $2, parent.id, coalesce(parent.root_id, me.id)
		from me
		left join provider parent on parent.uuid = $3
		where $3 = '' or parent.id is not null`, p.UUID, p.Name, p.Parent)
	switch {
	case violates(err, "provider_name"):
		return inventory.Refuse(inventory.DuplicateName, "Conflicting resource provider name: %s already exists.", p.Name)
	case violates(err, "provider_uuid"):
		return inventory.Refuse(inventory.DuplicateName, "Conflicting resource provider uuid: %s already exists.", p.UUID)
	case violates(err, "provider_parent"): // it was deleted meanwhile
		return inventory.Refuse(inventory.Invalid, "parent provider UUID does not exist.")
	case err != nil:
		return fmt.Errorf("create provider %s: %w", p.UUID, err)
	case tag.RowsAffected() == 0:
		return inventory.Refuse(inventory.Invalid, "parent provider UUID does not exist.")
	}
	return nil
}

// ensureProvider is the step that makes sure that a provider with that UUID exists, whatever its name and
// parent are by now.
func ensureProvider(ctx context.Context, tx pgx.Tx, p inventory.NewProvider) error {
	_, err := lockProvider(ctx, tx, p.UUID)
	if errors.Is(err, ErrNotFound) {
		return addProvider(ctx, tx, p)
	}
	return err
}

// dropProvider is the step that makes sure that a provider does not exist, with its inventories, traits and
// aggregates. One with children (HasChildren) or allocations (ProviderInUse) is refused.
func dropProvider(ctx context.Context, tx pgx.Tx, uuid string) error {
	var children, allocations bool
	var id int64
	batch := &pgx.Batch{}
	batch.Queue(`select id from provider where uuid = $1 for update`, uuid).
		QueryRow(func(row pgx.Row) error { return row.Scan(&id) })
	batch.Queue(`
		select exists (select from provider child where child.parent_id = p.id),
			exists (select from allocation a where a.provider_id = p.id)
		from provider p
		where p.uuid = $1`, uuid).
		QueryRow(func(row pgx.Row) error { return row.Scan(&children, &allocations) })
	err := tx.SendBatch(ctx, batch).Close()
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("drop provider %s: %w", uuid, err)
	case children:
		return inventory.Refuse(inventory.HasChildren,
			"Unable to delete parent resource provider %s: It has child resource providers.", uuid)
	case allocations:
		return inventory.Refuse(inventory.ProviderInUse,
			"Unable to delete resource provider %s: Resource provider has allocations.", uuid)
	}
	if _, err := tx.Exec(ctx, `delete from provider where id = $1`, id); err != nil {
		return fmt.Errorf("drop provider %s: %w", uuid, err)
	}
	return nil
}

// lockedProvider is a provider whose row this transaction has locked: its generation, inventories, traits and
// aggregates stay as they are until somebody in this transaction changes them.
type lockedProvider struct {
	id         int64
	uuid       string
	generation int64
}

// lockProvider locks a provider against every other writer.
func lockProvider(ctx context.Context, tx pgx.Tx, uuid string) (lockedProvider, error) {
	p := lockedProvider{uuid: uuid}
	err := tx.QueryRow(ctx, `
		select id, generation
		from provider
		where uuid = $1
		for no key update`, uuid).Scan(&p.id, &p.generation)
	if err := found(err, "No resource provider with uuid %s found", uuid); err != nil {
		return p, fmt.Errorf("lock provider: %w", err)
	}
	return p, nil
}

// queueGeneration moves a locked provider's generation on.
func (p *lockedProvider) queueGeneration(batch *pgx.Batch) {
	p.generation++
	batch.Queue(`update provider set generation = $2, updated_at = now() where id = $1`, p.id, p.generation)
}
