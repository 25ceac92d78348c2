package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
	"berth/internal/network"
)

// source is where what the controller shall have of one type is read, each object as the change that makes it.
type source struct {
	from  string // table and condition
	id    string // column
	cast  string // of the column
	read  func(ctx context.Context, q querier, clause string, args ...any) ([]journal.Change, error)
	keyed func(id string) bool // whether the column can hold that ID
}

// sourceOf finds the source of a type: a table of its own where berth has an API for it.
func sourceOf(typ string) source {
	switch typ {
	case "network":
		return ownSource("network", networkSelect, scanNetwork, mirrorNetwork)
	case "subnet":
		return ownSource("subnet", subnetSelect, scanSubnet, mirrorSubnet)
	case "port":
		return ownSource("port", portSelect+portFrom, scanPort, mirrorPort)
	}
	if !journal.Known(typ) {
		typ = ""
	}
	from := `mirror_object where object_type = '` + typ + `'` // a word of the journal's table
	return source{from: from, id: "object_id", cast: "text", keyed: func(string) bool { return true },
		read: func(ctx context.Context, q querier, clause string, args ...any) ([]journal.Change, error) {
			changes, err := rowsOf(ctx, q, scanObject, `select `+objectColumns+` from `+from+clause, args...)
			for i := range changes {
				if err == nil {
					changes[i], err = changes[i].Referring(nil)
				}
			}
			return changes, err
		}}
}

func ownSource[T network.Network | network.Subnet | network.Port](table, sql string, scan pgx.RowToFunc[T], mirror func(T, journal.Operation) journal.Change) source {
	return source{from: table + ` where true`, id: "id", cast: "uuid",
		keyed: func(id string) bool { _, err := uuid.Parse(id); return err == nil && len(id) == 36 },
		read: func(ctx context.Context, q querier, clause string, args ...any) ([]journal.Change, error) {
			objects, err := rowsOf(ctx, q, scan, sql+` where true`+clause, args...)
			changes := make([]journal.Change, len(objects))
			for i, o := range objects {
				changes[i] = mirror(o, journal.Create)
			}
			return changes, err
		}}
}

func rowsOf[T any](ctx context.Context, q querier, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// these reads the objects of those IDs that exist.
func (s source) these(ctx context.Context, q querier, ids ...string) ([]journal.Change, error) {
	return s.read(ctx, q, ` and `+s.id+` = any($1::text[]::`+s.cast+`[]) order by `+s.id, s.fit(ids))
}

func (s source) fit(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !s.keyed(id) })
}

// lock takes the locks under which the objects are changed, in a statement of its own, so that a read after it sees
// what it waited for.
func (s source) lock(ctx context.Context, tx pgx.Tx, typ string, ids ...string) error {
	if s.cast == "uuid" {
		_, err := tx.Exec(ctx, `select from `+s.from+` and id = any($1::text[]::uuid[]) order by id for share`, s.fit(ids))
		return err
	}
	for _, id := range ids {
		if err := lockName(ctx, tx, journal.Ref{Type: typ, ID: id}); err != nil {
			return err
		}
	}
	return nil
}

// These reads those of the objects of a type that exist.
func (s *Store) These(ctx context.Context, typ string, ids ...string) ([]journal.Change, error) {
	changes, err := sourceOf(typ).these(ctx, s.pool, ids...)
	if err != nil {
		return nil, fmt.Errorf("read %d of every %s for the controller: %w", len(ids), typ, err)
	}
	return changes, nil
}

// Shall lists up to limit objects of a type as the controller shall have them, in the order of their IDs after that
// one; after uuid.Nil for the first.
func (s *Store) Shall(ctx context.Context, typ, after string, limit int) ([]journal.Change, error) {
	src := sourceOf(typ)
	changes, err := src.read(ctx, s.pool, ` and `+src.id+` > $1::text::`+src.cast+` order by `+src.id+` limit $2`, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list every %s for the controller: %w", typ, err)
	}
	return changes, nil
}

// Count is how many objects of a type the controller shall have.
func (s *Store) Count(ctx context.Context, typ string) (int, error) {
	var n int
	if err := s.pool.QueryRow(ctx, `select count(*) from `+sourceOf(typ).from).Scan(&n); err != nil {
		return 0, fmt.Errorf("count every %s for the controller: %w", typ, err)
	}
	return n, nil
}

// Moving tells which of these objects of a type the journal changes at this moment, or has changed
// since that mark.
func (s *Store) Moving(ctx context.Context, typ string, ids []string, since Mark) (map[string]bool, error) {
	return moving(ctx, s.pool, typ, ids, since)
}

// Mark is a moment in the life of the journal.
type Mark string

// Now is the database's time, for Moving.
func (s *Store) Now(ctx context.Context) (Mark, error) {
	var m Mark
	if err := s.pool.QueryRow(ctx, `select clock_timestamp()::text`).Scan(&m); err != nil {
		return "", fmt.Errorf("ask for the time: %w", err)
	}
	return m, nil
}

func moving(ctx context.Context, q querier, typ string, ids []string, since Mark) (map[string]bool, error) {
	found, err := rowsOf(ctx, q, pgx.RowTo[string], `
		select distinct object_id
		from journal_entry
		where object_type = $1 and object_id = any($2) and (finished_at is null or finished_at >= $3::text::timestamptz)`, typ, ids, since)
	if err != nil {
		return nil, fmt.Errorf("look for entries of every %s: %w", typ, err)
	}
	all := make(map[string]bool, len(found))
	for _, id := range found {
		all[id] = true
	}
	return all, nil
}
