package mirrorstore

import (
	"context"
	"fmt"

	"berth/internal/journal"
	"berth/internal/store/journalstore"
	"berth/internal/store/portstore"
)

// sourceOf returns the source of the objects of a type that the controller should have: a table of
// networkstore or portstore if berth has an API for the type, otherwise a table of journalstore.
func sourceOf(typ string) journalstore.Source {
	if s, ok := portstore.MirrorSource(typ); ok {
		return s
	}
	return journalstore.ObjectSource(typ)
}

// Objects reads the expected state of the objects with the given IDs. Objects skips the IDs of objects that
// do not exist.
func (s *Store) Objects(ctx context.Context, typ string, ids ...string) ([]journal.Change, error) {
	changes, err := sourceOf(typ).ByIDs(ctx, s.db, ids...)
	if err != nil {
		return nil, fmt.Errorf("read the expected state of %d %s objects: %w", len(ids), typ, err)
	}
	return changes, nil
}

// ObjectsAfter lists the expected state of up to `limit` objects of a type whose ID is greater than `after`,
// sorted by ID. To begin at the first object, call ObjectsAfter with uuid.Nil.
func (s *Store) ObjectsAfter(ctx context.Context, typ, after string, limit int) ([]journal.Change, error) {
	changes, err := sourceOf(typ).After(ctx, s.db, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list the expected state of %s objects: %w", typ, err)
	}
	return changes, nil
}

// CountObjects returns the expected number of objects of a type.
func (s *Store) CountObjects(ctx context.Context, typ string) (int, error) {
	n, err := sourceOf(typ).Count(ctx, s.db)
	if err != nil {
		return 0, fmt.Errorf("count the expected %s objects: %w", typ, err)
	}
	return n, nil
}
