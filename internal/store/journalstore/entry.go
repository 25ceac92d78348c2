package journalstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
	"berth/internal/store/db"
)

// EntryFilter selects journal entries. A zero field of an EntryFilter sets no condition.
type EntryFilter struct {
	State  journal.State
	Type   string // type of the object
	Object string // ID of the object
	After  int64  // number of the last entry of the previous page
	Newest bool   // newest first
	Limit  int    // maximum number of entries
}

// JournalEntries lists the entries that the filter selects, in the order of their numbers.
func (s *Store) JournalEntries(ctx context.Context, f EntryFilter) ([]journal.Entry, error) {
	sql, args := `select `+EntryColumns+` from journal_entry where true`, []any{}
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
	entries, err := db.QueryAll(ctx, s.db, ScanEntry, fmt.Sprintf("%s order by %s limit $%d", sql, order, len(args)), args...)
	if err != nil {
		return nil, fmt.Errorf("list journal entries: %w", err)
	}
	return entries, nil
}

// JournalEntry returns one entry, its open blockers and the decisions of operators about it. JournalEntry
// returns db.ErrNotFound if the entry does not exist.
func (s *Store) JournalEntry(
	ctx context.Context,
	seq int64,
) (e journal.Entry, b []journal.Blocker, d []journal.OperatorDecision, err error) {
	err = s.db.InTx(ctx, func(tx db.Tx) (err error) {
		e, err = queryEntry(ctx, tx, `select `+EntryColumns+` from journal_entry where seq = $1`, seq)
		if err != nil {
			return db.NotFoundOr(err, "journal entry %d", seq)
		}
		if b, err = queryBlockers(ctx, tx, seq); err != nil {
			return err
		}
		rows, err := tx.Query(ctx,
			`select at, actor, action, reason from journal_audit where seq = $1 order by id`, seq)
		if err != nil {
			return err
		}
		d, err = pgx.CollectRows(rows, pgx.RowToStructByName[journal.OperatorDecision])
		return err
	})
	if err != nil {
		return e, nil, nil, fmt.Errorf("read journal entry: %w", err)
	}
	return e, b, d, nil
}
