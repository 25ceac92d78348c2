package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
)

// ensureClass is the step that makes sure that a resource class exists.
func ensureClass(ctx context.Context, tx pgx.Tx, name string) error {
	if _, err := tx.Exec(ctx, `
		insert into resource_class (name)
		select $1
		where not exists (select from resource_class where name = $1)
		on conflict do nothing`, name); err != nil {
		return fmt.Errorf("resource class %s: %w", name, err)
	}
	return nil
}

// dropClass is the step that makes sure that a custom resource class does not exist. One that a provider has
// inventory of is refused.
func dropClass(ctx context.Context, tx pgx.Tx, name string) error {
	_, err := tx.Exec(ctx, `delete from resource_class where name = $1 and id >= 10000`, name)
	if violates(err, "inventory_class") {
		return inventory.Refuse(inventory.Refused, "Cannot delete resource class %s. Class is in use in inventory.", name)
	}
	if err != nil {
		return fmt.Errorf("drop resource class %s: %w", name, err)
	}
	return nil
}

// knownClasses refuses the first of the names that is no resource class.
func knownClasses(ctx context.Context, tx pgx.Tx, names []string) error {
	rows, err := tx.Query(ctx, `select name from resource_class where name = any($1)`, names)
	if err != nil {
		return fmt.Errorf("resource classes: %w", err)
	}
	known, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("resource classes: %w", err)
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(known, name) {
			return inventory.Refuse(inventory.UnknownClass, "No such resource class %s.", name)
		}
	}
	return nil
}
