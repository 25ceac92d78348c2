package journalstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
	"berth/internal/store/db"
)

// Source reads the state that the objects of one type should have at the controller. Each object is returned
// as the change that would create it.
type Source struct {
	From      string // table and condition
	IDColumn  string // column of the ID
	IDType    string // type of the column
	Query     func(ctx context.Context, q db.Querier, clause string, args ...any) ([]journal.Change, error)
	IsValidID func(id string) bool // whether the type of the column allows this ID
}

// ByIDs reads the objects with these IDs. ByIDs skips IDs that do not exist.
func (s Source) ByIDs(ctx context.Context, q db.Querier, ids ...string) ([]journal.Change, error) {
	return s.Query(ctx, q,
		` and `+s.IDColumn+` = any($1::text[]::`+s.IDType+`[]) order by `+s.IDColumn, s.validIDs(ids))
}

func (s Source) validIDs(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !s.IsValidID(id) })
}

// Lock acquires the lock that every change of an object needs. Lock runs a statement of its own, so that a
// later read in the same transaction sees the changes of the transactions for which Lock waited.
func (s Source) Lock(ctx context.Context, tx db.Tx, typ, id string) error {
	if s.IDType != "uuid" {
		return lockRef(ctx, tx, journal.Ref{Type: typ, ID: id})
	}
	_, err := tx.Exec(ctx, `select from `+s.From+` and id = any($1::text[]::uuid[]) for share`,
		s.validIDs([]string{id}))
	return err
}

// TryLock acquires the locks of several objects, as Lock does for one, but does not wait. TryLock returns the
// IDs of the objects that other transactions have locked.
func (s Source) TryLock(
	ctx context.Context,
	tx db.Tx,
	typ string,
	ids ...string,
) (locked map[string]bool, err error) {
	query, args := `
		select id
		from unnest($1::text[]) as id
		where not pg_try_advisory_xact_lock(hashtextextended('mirror ' || $2::text || '/' || id, 0))`, []any{ids, typ}
	if s.IDType == "uuid" {
		ids = s.validIDs(ids)
		own, err := db.QueryAll(ctx, tx, pgx.RowTo[string],
			`select id::text from `+s.From+` and id = any($1::text[]::uuid[]) order by id for share skip locked`, ids)
		if err != nil {
			return nil, err
		}
		query = `select id::text from ` + s.From + ` and id = any($1::text[]::uuid[]) and id <> all($2::text[]::uuid[])`
		args = []any{ids, own}
	}
	others, err := db.QueryAll(ctx, tx, pgx.RowTo[string], query, args...)
	locked = make(map[string]bool, len(others))
	for _, id := range others {
		locked[id] = true
	}
	return locked, err
}

// After reads up to `limit` objects whose ID is greater than `id`, sorted by ID.
func (s Source) After(ctx context.Context, q db.Querier, id string, limit int) ([]journal.Change, error) {
	return s.Query(ctx, q,
		` and `+s.IDColumn+` > $1::text::`+s.IDType+` order by `+s.IDColumn+` limit $2`, id, limit)
}

// Count counts the objects.
func (s Source) Count(ctx context.Context, d *db.DB) (n int, err error) {
	err = d.QueryRow(ctx, `select count(*) from `+s.From).Scan(&n)
	return n, err
}

// NestedObjects returns the objects in the nested collection of an object,
// for example the members of a pool. Most objects have no nested collection.
func (s *Store) NestedObjects(ctx context.Context, r journal.Ref) ([]journal.Change, error) {
	typ := journal.NestedType(r.Type)
	if typ == "" {
		return nil, nil
	}
	nested, err := db.QueryAll(ctx, s.db, scanObject, `
		select `+objectColumns+`
		from mirror_object
		where object_type = $1 and parents @> array[$2::text] and data ->> $3 = $4
		order by object_id`, typ, parentKey(r), r.Type+"_id", r.ID)
	if err != nil {
		return nil, fmt.Errorf("read the %ss of %s %s: %w", typ, r.Type, r.ID, err)
	}
	return nested, nil
}

// ObjectSource returns the source of a type that berth has no API for. The source of an unknown type has no
// objects.
func ObjectSource(typ string) Source {
	if !journal.IsKnownType(typ) {
		typ = ""
	}
	// the type comes from the journal's table of types, not from a client
	from := `mirror_object where object_type = '` + typ + `'`
	return Source{
		From:      from,
		IDColumn:  "object_id",
		IDType:    "text",
		IsValidID: func(string) bool { return true },
		Query: func(ctx context.Context, q db.Querier, clause string, args ...any) ([]journal.Change, error) {
			changes, err := db.QueryAll(ctx, q, scanObject,
				`select `+objectColumns+` from `+from+clause, args...)
			for i := range changes {
				if err == nil {
					changes[i], err = changes[i].WithReferences(nil)
				}
			}
			return changes, err
		},
	}
}
