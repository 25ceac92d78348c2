package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/journal"
)

// RetryEntry gives a failed entry another full set of attempts. The actor is kept.
func (s *Store) RetryEntry(ctx context.Context, seq int64, actor string) (journal.Entry, error) {
	var e journal.Entry
	err := s.inTx(ctx, func(tx pgx.Tx) (err error) {
		e, err = moveFailed(ctx, tx, `
			update journal_entry
			set state = 'pending', failures = 0, looked_at = clock_timestamp()
			where seq = $1 and state = 'failed'
			returning `+entryColumns, seq)
		if err != nil {
			return err
		}
		if err := audit(ctx, tx, seq, "retry", actor, ""); err != nil {
			return err
		}
		return wakeEntries(ctx, tx, e)
	})
	if err != nil {
		return journal.Entry{}, fmt.Errorf("retry journal entry: %w", err)
	}
	return e, nil
}

// SkipEntry gives a failed entry up: it counts as completed, and those that wait for it go on. Actor and
// reason are kept.
func (s *Store) SkipEntry(ctx context.Context, seq int64, actor, reason string) (journal.Entry, error) {
	var e journal.Entry
	err := s.inTx(ctx, func(tx pgx.Tx) (err error) {
		e, err = moveFailed(ctx, tx, `
			update journal_entry
			set state = 'completed', finished_at = clock_timestamp(), last_error = $2
			where seq = $1 and state = 'failed'
			returning `+entryColumns, seq, "skipped by "+actor+": "+reason)
		if err != nil {
			return err
		}
		if err := audit(ctx, tx, seq, "skip", actor, reason); err != nil {
			return err
		}
		if err := release(ctx, tx, seq); err != nil {
			return err
		}
		return wakeEntries(ctx, tx, e)
	})
	if err != nil {
		return journal.Entry{}, fmt.Errorf("skip journal entry: %w", err)
	}
	return e, nil
}

// moveFailed runs an update that touches the entry only if it is failed.
func moveFailed(ctx context.Context, tx pgx.Tx, sql string, seq int64, args ...any) (journal.Entry, error) {
	e, err := oneEntry(ctx, tx, sql, append([]any{seq}, args...)...)
	if !errors.Is(err, pgx.ErrNoRows) {
		return e, err
	}
	var state journal.State
	if err := tx.QueryRow(ctx, `select state from journal_entry where seq = $1`, seq).Scan(&state); err != nil {
		return e, found(err, "journal entry %d", seq)
	}
	return e, fmt.Errorf("%w: journal entry %d is %s, not failed", ErrConflict, seq, state)
}

func audit(ctx context.Context, tx pgx.Tx, seq int64, action, actor, reason string) error {
	_, err := tx.Exec(ctx, `
		insert into journal_audit (seq, action, actor, reason)
		values ($1, $2, $3, $4)`, seq, action, actor, reason)
	return err
}

// SweepEntries nudges up to limit entries which could go on but were not looked at for that long and have no
// note: their workflow may be missing. It returns their numbers. Those that wait for others are left to the
// completion that wakes them.
func (s *Store) SweepEntries(ctx context.Context, olderThan time.Duration, limit int) ([]int64, error) {
	var swept []journal.Entry
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			update journal_entry
			set looked_at = clock_timestamp()
			where seq in (
				select e.seq
				from journal_entry e
				where e.finished_at is null and e.state in ('pending', 'processing')
					and e.looked_at <= clock_timestamp() - $1::interval
					and not exists (select from journal_dep d where d.entry = e.seq)
					and not exists (select from note n where n.workflow_id = $3 || e.seq)
				order by e.looked_at
				limit $2
				for no key update skip locked)
			returning `+entryColumns, olderThan, limit, contract.JournalID(""))
		if err != nil {
			return err
		}
		if swept, err = pgx.CollectRows(rows, scanEntry); err != nil {
			return err
		}
		return wakeEntries(ctx, tx, swept...)
	})
	if err != nil {
		return nil, fmt.Errorf("sweep the journal: %w", err)
	}
	seqs := make([]int64, len(swept))
	for i, e := range swept {
		seqs[i] = e.Seq
	}
	return seqs, nil
}
