package journalstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/store/db"
)

// ObjectsChanging returns the IDs among `ids` of the objects that have an open entry, or an entry that was
// completed at or after `since`.
func (s *Store) ObjectsChanging(
	ctx context.Context,
	typ string,
	ids []string,
	since Timestamp,
) (map[string]bool, error) {
	return ObjectsChanging(ctx, s.db, typ, ids, since)
}

// Timestamp is an instant of the database's clock, in the text format of PostgreSQL.
type Timestamp string

// Now returns the current time of the database.
func (s *Store) Now(ctx context.Context) (Timestamp, error) {
	var m Timestamp
	if err := s.db.QueryRow(ctx, `select clock_timestamp()::text`).Scan(&m); err != nil {
		return "", fmt.Errorf("read the time of the database: %w", err)
	}
	return m, nil
}

// ObjectsChanging does the same as Store.ObjectsChanging in the caller's transaction.
func ObjectsChanging(
	ctx context.Context,
	q db.Querier,
	typ string,
	ids []string,
	since Timestamp,
) (map[string]bool, error) {
	found, err := db.QueryAll(ctx, q, pgx.RowTo[string], `
		select distinct object_id
		from journal_entry
		where object_type = $1 and object_id = any($2) and (finished_at is null or finished_at >= $3::text::timestamptz)`, typ, ids, since)
	if err != nil {
		return nil, fmt.Errorf("read the journal entries of %s objects: %w", typ, err)
	}
	all := make(map[string]bool, len(found))
	for _, id := range found {
		all[id] = true
	}
	return all, nil
}
