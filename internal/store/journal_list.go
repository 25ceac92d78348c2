package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
)

// EntryFilter narrows a list of journal entries. Zero values do not narrow.
type EntryFilter struct {
	State  journal.State
	Type   string // of the object
	Object string // its ID
	After  int64  // the entry at which the list before this one ended
	Newest bool   // newest first
	Limit  int    // at most so many
}

// JournalEntries lists entries in the order of their numbers.
func (s *Store) JournalEntries(ctx context.Context, f EntryFilter) ([]journal.Entry, error) {
	sql, args := `select `+entryColumns+` from journal_entry where true`, []any{}
	narrow := func(condition string, value any) {
		args = append(args, value)
		sql += fmt.Sprintf(" and "+condition, len(args))
	}
	if f.State != "" {
		narrow("state = $%d", f.State)
	}
	if f.State != "" && f.State != journal.Completed {
		sql += " and finished_at is null"
	}
	if f.Type != "" {
		narrow("object_type = $%d", f.Type)
	}
	if f.Object != "" {
		narrow("object_id = $%d", f.Object)
	}
	order, beyond := "seq", "seq > $%d"
	if f.Newest {
		order, beyond = "seq desc", "seq < $%d"
	}
	if f.After > 0 {
		narrow(beyond, f.After)
	}
	args = append(args, f.Limit)
	rows, err := s.pool.Query(ctx, fmt.Sprintf("%s order by %s limit $%d", sql, order, len(args)), args...)
	if err != nil {
		return nil, fmt.Errorf("list journal entries: %w", err)
	}
	entries, err := pgx.CollectRows(rows, scanEntry)
	if err != nil {
		return nil, fmt.Errorf("list journal entries: %w", err)
	}
	return entries, nil
}

// JournalEntry is one entry and the live ones that it waits for.
func (s *Store) JournalEntry(ctx context.Context, seq int64) (journal.Entry, []journal.Blocker, error) {
	var e journal.Entry
	var b []journal.Blocker
	err := s.inTx(ctx, func(tx pgx.Tx) (err error) {
		e, err = oneEntry(ctx, tx, `select `+entryColumns+` from journal_entry where seq = $1`, seq)
		if err != nil {
			return found(err, "journal entry %d", seq)
		}
		b, err = blockers(ctx, tx, seq)
		return err
	})
	if err != nil {
		return e, nil, fmt.Errorf("journal entry: %w", err)
	}
	return e, b, nil
}
