package inventorystore

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// Classes returns all resource classes, standard classes first.
func (s *Store) Classes(ctx context.Context) ([]inventory.ResourceClass, error) {
	classes, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[inventory.ResourceClass],
		`select name, coalesce(updated_at, created_at) from resource_class order by id`)
	if err != nil {
		return nil, fmt.Errorf("read resource classes: %w", err)
	}
	return classes, nil
}

// Class returns the resource class with the given name.
func (s *Store) Class(ctx context.Context, name string) (inventory.ResourceClass, error) {
	c := inventory.ResourceClass{Name: name}
	err := s.db.QueryRow(ctx, `
		select coalesce(updated_at, created_at)
		from resource_class
		where name = $1`, name).Scan(&c.ChangedAt)
	return c, db.NotFoundOr(err, "no resource class %s", name)
}

// EnsureClass creates a custom resource class unless it exists, and reports whether the class was created.
func (s *Store) EnsureClass(ctx context.Context, name string) (created bool, err error) {
	err = s.db.InTx(ctx, func(tx db.Tx) error {
		created, err = addClass(ctx, tx, name)
		tx.Changed(db.Change{Type: "resource_class", ID: name})
		return err
	})
	return created, err
}

// RenameClass renames a custom resource class.
func (s *Store) RenameClass(ctx context.Context, name, newName string) error {
	return s.db.InTx(ctx, func(tx db.Tx) error {
		id, err := lockClass(ctx, tx, name)
		if err != nil {
			return err
		}
		if id < firstCustom {
			return inventory.Faultf(inventory.Invalid, "Cannot update standard resource class %s", name)
		}
		_, err = tx.Exec(ctx,
			`update resource_class set name = $2, updated_at = now() where id = $1`, id, newName)
		if db.Violates(err, "resource_class_name") {
			return inventory.Faultf(inventory.Conflict, "Resource class already exists: %s", newName)
		}
		if err != nil {
			return fmt.Errorf("rename resource class %s: %w", name, err)
		}
		return nil
	})
}

// DeleteClass deletes a custom resource class. If a provider has an inventory of the class, DeleteClass
// returns a fault of kind Conflict.
func (s *Store) DeleteClass(ctx context.Context, name string) error {
	return s.db.InTx(ctx, func(tx db.Tx) error {
		id, err := lockClass(ctx, tx, name)
		if err != nil {
			return err
		}
		if id < firstCustom {
			return inventory.Faultf(inventory.Invalid, "Cannot delete standard resource class %s.", name)
		}
		return DropClass(ctx, tx, name)
	})
}

func lockClass(ctx context.Context, tx db.Tx, name string) (int32, error) {
	var id int32
	err := tx.QueryRow(ctx, `select id from resource_class where name = $1 for update`, name).Scan(&id)
	return id, db.NotFoundOr(err, "no resource class %s", name)
}

// EnsureClass creates a resource class in the caller's transaction, unless the class exists.
func EnsureClass(ctx context.Context, tx db.Tx, name string) error {
	_, err := addClass(ctx, tx, name)
	return err
}

// addClass creates a resource class unless it exists, and reports whether the class was created.
func addClass(ctx context.Context, tx db.Tx, name string) (created bool, err error) {
	tag, err := tx.Exec(ctx, `
		insert into resource_class (name)
		select $1
		where not exists (select from resource_class where name = $1)
		on conflict do nothing`, name)
	if err != nil {
		return false, fmt.Errorf("create resource class %s: %w", name, err)
	}
	return tag.RowsAffected() == 1, nil
}

// DropClass deletes a custom resource class if it exists, in the caller's transaction. If a provider has an
// inventory of the class, DropClass returns a fault of kind Conflict.
func DropClass(ctx context.Context, tx db.Tx, name string) error {
	_, err := tx.Exec(ctx, `delete from resource_class where name = $1 and id >= $2`, name, firstCustom)
	if db.Violates(err, "inventory_class") {
		return inventory.Faultf(inventory.Conflict,
			"Cannot delete resource class %s. Class is in use in inventory.", name)
	}
	if err != nil {
		return fmt.Errorf("drop resource class %s: %w", name, err)
	}
	return nil
}

// checkClasses returns a fault if one of the names is not a resource class. checkClasses locks the existing
// resource classes, so that no other transaction can delete them until the caller's transaction ends.
func checkClasses(ctx context.Context, q db.Querier, names []string) error {
	known, err := db.QueryAll(ctx, q, pgx.RowTo[string], `select name from resource_class where name = any($1) for key share`, names)
	if err != nil {
		return fmt.Errorf("read resource classes: %w", err)
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(known, name) {
			return inventory.Faultf(inventory.UnknownClass, "No such resource class %s.", name)
		}
	}
	return nil
}
