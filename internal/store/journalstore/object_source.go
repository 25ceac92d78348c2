package journalstore

import (
	"context"
	"slices"

	"berth/internal/journal"
	"berth/internal/store/db"
)

// Source reads the objects of one type that the controller shall have, each as the change that creates it.
type Source struct {
	From  string // table and condition
	ID    string // column of the ID
	Cast  string // type of the column
	Read  func(ctx context.Context, q db.Querier, clause string, args ...any) ([]journal.Change, error)
	Keyed func(id string) bool // whether the column can hold that ID
}

// ByIDs reads the objects of those IDs that exist.
func (s Source) ByIDs(ctx context.Context, q db.Querier, ids ...string) ([]journal.Change, error) {
	return s.Read(ctx, q, ` and `+s.ID+` = any($1::text[]::`+s.Cast+`[]) order by `+s.ID, s.fit(ids))
}

func (s Source) fit(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !s.Keyed(id) })
}

// Lock takes the locks under which the objects are changed, in a statement of its own, so that a read after it sees
// what it waited for.
func (s Source) Lock(ctx context.Context, tx db.Tx, typ string, ids ...string) error {
	if s.Cast == "uuid" {
		_, err := tx.Exec(ctx, `select from `+s.From+` and id = any($1::text[]::uuid[]) order by id for share`, s.fit(ids))
		return err
	}
	for _, id := range ids {
		if err := lockName(ctx, tx, journal.Ref{Type: typ, ID: id}); err != nil {
			return err
		}
	}
	return nil
}

// After reads up to limit objects in the order of their IDs, after that one.
func (s Source) After(ctx context.Context, q db.Querier, id string, limit int) ([]journal.Change, error) {
	return s.Read(ctx, q, ` and `+s.ID+` > $1::text::`+s.Cast+` order by `+s.ID+` limit $2`, id, limit)
}

// Count counts the objects.
func (s Source) Count(ctx context.Context, d *db.DB) (n int, err error) {
	err = d.QueryRow(ctx, `select count(*) from `+s.From).Scan(&n)
	return n, err
}

// ObjectSource is the source of a type that berth has no API for. An unknown type has no objects.
func ObjectSource(typ string) Source {
	if !journal.IsKnownType(typ) {
		typ = ""
	}
	from := `mirror_object where object_type = '` + typ + `'` // a word of the journal's table of types, not of a client
	return Source{From: from, ID: "object_id", Cast: "text", Keyed: func(string) bool { return true },
		Read: func(ctx context.Context, q db.Querier, clause string, args ...any) ([]journal.Change, error) {
			changes, err := db.QueryAll(ctx, q, scanObject, `select `+objectColumns+` from `+from+clause, args...)
			for i := range changes {
				if err == nil {
					changes[i], err = changes[i].WithReferences(nil)
				}
			}
			return changes, err
		}}
}
