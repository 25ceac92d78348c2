package inventorystore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// UpdateProvider renames a provider. If the change names a parent other than the current one, UpdateProvider
// also moves the provider and its descendants below the named parent. UpdateProvider does not change the
// generation of the provider.
func (s *Store) UpdateProvider(ctx context.Context, c inventory.ProviderChange) (inventory.Provider, error) {
	var changed inventory.Provider
	err := s.db.InTx(ctx, func(tx db.Tx) error {
		if err := moveProvider(ctx, tx, c); err != nil {
			return err
		}
		_, err := tx.Exec(ctx,
			`update provider set name = $2, updated_at = now() where uuid = $1`, c.UUID, c.Name)
		if db.Violates(err, "provider_name") {
			return inventory.Faultf(inventory.DuplicateName,
				"Conflicting resource provider %s already exists.", c.Name)
		}
		if err != nil {
			return fmt.Errorf("rename provider %s: %w", c.UUID, err)
		}
		changed, err = provider(ctx, tx, c.UUID)
		return err
	})
	return changed, err
}

// moveProvider moves a provider to the parent that the change names. If the change names the current parent
// of the provider, as most changes do, moveProvider does not take treeLock.
func moveProvider(ctx context.Context, tx db.Tx, c inventory.ProviderChange) error {
	current, err := provider(ctx, tx, c.UUID)
	if err != nil || c.Parent == nil || *c.Parent == current.Parent {
		return err
	}
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, treeLock); err != nil {
		return fmt.Errorf("lock the provider trees: %w", err)
	}
	if current, err = provider(ctx, tx, c.UUID); err != nil {
		return err
	}
	if *c.Parent != "" {
		if _, err := provider(ctx, tx, *c.Parent); errors.Is(err, db.ErrNotFound) {
			return inventory.Faultf(inventory.Invalid, "parent provider UUID does not exist.")
		} else if err != nil {
			return err
		}
	}
	if err := inventory.CheckMove(current.Parent, *c.Parent, c.Move); err != nil {
		return err
	}
	return reparent(ctx, tx, c.UUID, *c.Parent)
}

// reparent moves a provider and its descendants below the provider `parent` or, if `parent` is empty, makes
// the provider the root of a separate tree. The caller of reparent must hold treeLock in exclusive mode.
func reparent(ctx context.Context, tx db.Tx, uuid, parent string) error {
	var ids []int64
	var id int64
	var member string
	loop := false
	rows, err := tx.Query(ctx, `
		with recursive subtree as (
			select id, uuid
			from provider
			where uuid = $1
			union all
			select child.id, child.uuid
			from subtree
			join provider child on child.parent_id = subtree.id)
		select id, uuid
		from subtree`, uuid)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&id, &member}, func() error {
			ids, loop = append(ids, id), loop || member == parent
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("read the subtree of provider %s: %w", uuid, err)
	}
	if loop {
		return inventory.Faultf(inventory.Invalid, "creating loop in the provider tree is not allowed.")
	}
	tag, err := tx.Exec(ctx, `
		with place as (
			select me.id, parent.id as parent_id, coalesce(parent.root_id, me.id) as root_id
			from provider me
			left join provider parent on parent.uuid = $2
			where me.uuid = $1 and ($2 = '' or parent.id is not null))
		update provider p
		set root_id = place.root_id,
			parent_id = case when p.id = place.id then place.parent_id else p.parent_id end
		from place
		where p.id = any($3)`, uuid, parent, ids)
	parentDeleted := db.Violates(err, "provider_parent") || db.Violates(err, "provider_root") ||
		err == nil && tag.RowsAffected() == 0
	switch {
	case parentDeleted && parent != "": // another writer has deleted the parent
		return inventory.Faultf(inventory.Invalid, "parent provider UUID does not exist.")
	case err != nil:
		return fmt.Errorf("move provider %s: %w", uuid, err)
	}
	return nil
}
