package mirrorstore

import (
	"context"
	"fmt"

	"berth/internal/journal"
	"berth/internal/store/journalstore"
	"berth/internal/store/networkstore"
)

// sourceOf is where the objects of a type are read: a table of its own where berth has an API for it.
func sourceOf(typ string) journalstore.Source {
	if s, ok := networkstore.MirrorSource(typ); ok {
		return s
	}
	return journalstore.ObjectSource(typ)
}

// Objects reads those of the objects of a type that exist.
func (s *Store) Objects(ctx context.Context, typ string, ids ...string) ([]journal.Change, error) {
	changes, err := sourceOf(typ).ByIDs(ctx, s.db, ids...)
	if err != nil {
		return nil, fmt.Errorf("read %d of every %s for the controller: %w", len(ids), typ, err)
	}
	return changes, nil
}

// ObjectsAfter lists up to limit objects of a type as the controller shall have them, in the order of their IDs after that
// one; after uuid.Nil for the first.
func (s *Store) ObjectsAfter(ctx context.Context, typ, after string, limit int) ([]journal.Change, error) {
	changes, err := sourceOf(typ).After(ctx, s.db, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list every %s for the controller: %w", typ, err)
	}
	return changes, nil
}

// CountObjects is how many objects of a type the controller shall have.
func (s *Store) CountObjects(ctx context.Context, typ string) (int, error) {
	n, err := sourceOf(typ).Count(ctx, s.db)
	if err != nil {
		return 0, fmt.Errorf("count every %s for the controller: %w", typ, err)
	}
	return n, nil
}
