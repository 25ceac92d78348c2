package journalstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/store/db"
)

// ObjectsChanging tells which of these objects of a type the journal changes at this moment, or has changed
// since that mark.
func (s *Store) ObjectsChanging(ctx context.Context, typ string, ids []string, since Timestamp) (map[string]bool, error) {
	return ObjectsChanging(ctx, s.db, typ, ids, since)
}

// Timestamp is a moment in the life of the journal.
type Timestamp string

// Now is the database's time, for Moving.
func (s *Store) Now(ctx context.Context) (Timestamp, error) {
	var m Timestamp
	if err := s.db.QueryRow(ctx, `select clock_timestamp()::text`).Scan(&m); err != nil {
		return "", fmt.Errorf("ask for the time: %w", err)
	}
	return m, nil
}

func ObjectsChanging(ctx context.Context, q db.Querier, typ string, ids []string, since Timestamp) (map[string]bool, error) {
	found, err := db.QueryAll(ctx, q, pgx.RowTo[string], `
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
