package journalstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
	"berth/internal/store/db"
)

// RecordChanges records changes of objects that berth has no API for and returns their entries. RecordChanges
// records either all or none. A create of an existing object returns db.ErrConflict; an update or delete of a
// missing object returns db.ErrNotFound. A delete first deletes the objects that the controller deletes
// together with the object, and records a change for each of them. The data of a delete entry is the last
// state of the object.
func (s *Store) RecordChanges(ctx context.Context, changes []journal.Change) ([]journal.Entry, error) {
	var entries []journal.Entry
	err := s.db.InTx(ctx, func(tx db.Tx) error {
		var all []journal.Change
		for _, c := range changes {
			kept, err := SaveObject(ctx, tx, c)
			if err != nil {
				return err
			}
			all = append(all, kept...)
		}
		seqs, err := Append(ctx, tx, all)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx,
			`select `+EntryColumns+` from journal_entry where seq = any($1) order by seq`, seqs)
		if err != nil {
			return err
		}
		for _, c := range changes {
			tx.Changed(db.Change{Type: c.Object.Type, ID: c.Object.ID})
		}
		entries, err = pgx.CollectRows(rows, ScanEntry)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("record changes: %w", err)
	}
	return entries, nil
}

// SaveObject locks an object, applies a change to its row, and returns the changes to record in the journal.
func SaveObject(ctx context.Context, tx db.Tx, c journal.Change) ([]journal.Change, error) {
	before, err := lockObject(ctx, tx, c.Object)
	switch {
	case err != nil:
		return nil, err
	case c.Operation == journal.Create && before != nil:
		return nil, fmt.Errorf("%w: %s %s exists already", db.ErrConflict, c.Object.Type, c.Object.ID)
	case c.Operation != journal.Create && before == nil:
		return nil, fmt.Errorf("%w: %s %s", db.ErrNotFound, c.Object.Type, c.Object.ID)
	case journal.IsAssociation(c.Object.Type):
		return saveAssociation(ctx, tx, c, before)
	case c.Operation == journal.Delete:
		return deleteObject(ctx, tx, *before)
	}
	if before != nil {
		if c.Data, err = journal.KeepAssociations(c.Object.Type, before.Data, c.Data); err != nil {
			return nil, err
		}
	}
	if c, err = c.WithReferences(before); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, `
		insert into mirror_object (object_type, object_id, data, parents, project, name)
		values ($1, $2, $3, $4, $5, $6)
		on conflict (object_type, object_id) do update
		set data = excluded.data, parents = excluded.parents, project = excluded.project, name = excluded.name,
			revision = excluded.revision, updated_at = now()
		returning `+objectColumns, c.Object.Type, c.Object.ID, c.Data, parentKeys(c), c.Project, c.Name)
	if err != nil {
		return nil, err
	}
	row, err := pgx.CollectExactlyOneRow(rows, scanObject)
	c.Data = row.Data
	return []journal.Change{c}, err
}

// objectColumns lists the columns that scanObject reads. If the service that recorded the object sent no
// revision_number, the third column adds the number in the column `revision`.
const objectColumns = `object_type, object_id, jsonb_build_object('revision_number', revision) || data, project, name`

// scanObject reads the row of an object and returns it as a create change. The returned change names no
// parents.
func scanObject(row pgx.CollectableRow) (journal.Change, error) {
	c := journal.Change{Operation: journal.Create}
	err := row.Scan(&c.Object.Type, &c.Object.ID, &c.Data, &c.Project, &c.Name)
	return c, err
}

// lockObject locks an object and reads it. If the object does not exist, lockObject returns nil but still
// locks the ID.
func lockObject(ctx context.Context, tx db.Tx, r journal.Ref) (*journal.Change, error) {
	if err := lockRef(ctx, tx, r); err != nil {
		return nil, err
	}
	c, err := db.QueryOne(ctx, tx, scanObject, nil, `
		select `+objectColumns+`
		from mirror_object
		where object_type = $1 and object_id = $2`, r.Type, r.ID)
	if err != nil || c.Object.ID == "" {
		return nil, err
	}
	c, err = c.WithReferences(nil)
	return &c, err
}

// lockRef locks an object until the transaction ends, whether or not the object exists.
func lockRef(ctx context.Context, tx db.Tx, r journal.Ref) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, 0))`, "mirror "+parentKey(r)); err != nil {
		return fmt.Errorf("lock %s %s: %w", r.Type, r.ID, err)
	}
	return nil
}

// deleteObject deletes an object and, before it, the objects that it owns.
func deleteObject(ctx context.Context, tx db.Tx, c journal.Change) ([]journal.Change, error) {
	rows, err := tx.Query(ctx, `
		select object_type as type, object_id as id
		from mirror_object
		where object_type = any($1) and parents @> array[$2::text]
		order by object_type, object_id`, journal.OwnedTypes(c.Object.Type), parentKey(c.Object))
	if err != nil {
		return nil, err
	}
	owned, err := pgx.CollectRows(rows, pgx.RowToStructByName[journal.Ref])
	if err != nil {
		return nil, err
	}
	var all []journal.Change
	for _, r := range owned {
		gone, err := SaveObject(ctx, tx, journal.Change{Object: r, Operation: journal.Delete})
		if err != nil {
			return nil, err
		}
		all = append(all, gone...)
	}
	if err := deleteAssociations(ctx, tx, c.Object); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, `delete from mirror_object where object_type = $1 and object_id = $2`, c.Object.Type, c.Object.ID); err != nil {
		return nil, err
	}
	c.Operation = journal.Delete
	return append(all, c), nil
}
