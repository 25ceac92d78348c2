package journalstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// RetryEntry makes a failed entry pending and gives it the full number of attempts again. If the entry is
// pending and waits for its next attempt, RetryEntry ends this wait. RetryEntry records the actor. RetryEntry
// returns db.ErrConflict if the entry is blocked, completed or being sent.
func (s *Store) RetryEntry(ctx context.Context, seq int64, actor string) (journal.Entry, error) {
	e, err := s.decideEntry(ctx, seq, func(tx db.Tx, e journal.Entry) (journal.Entry, error) {
		held, err := queryBlockers(ctx, tx, seq)
		if err == nil && len(held) > 0 {
			err = fmt.Errorf("%w: journal entry %d waits for entry %d", db.ErrConflict, seq, held[0].Seq)
		}
		if err != nil {
			return e, err
		}
		if err := RecordDecision(ctx, tx, seq, "retry", actor, ""); err != nil {
			return e, err
		}
		failed := e.State == journal.Failed
		if e, err = queryEntry(ctx, tx, `
			update journal_entry
			set state = 'pending', failures = 0, retry_at = null, looked_at = clock_timestamp()
			where seq = $1
			returning `+EntryColumns, seq); err != nil || !failed {
			return e, err
		}
		return e, wakeDependents(ctx, tx, seq,
			func(batch *pgx.Batch, woken *int64) { queueWakeDependents(batch, seq, woken) })
	})
	if err != nil {
		return journal.Entry{}, fmt.Errorf("retry journal entry: %w", err)
	}
	return e, nil
}

// SkipEntry completes an entry that failed or is stuck, without sending it. From then on, the entries that
// waited for the skipped entry wait for the blockers of the skipped entry. SkipEntry records the actor and
// the reason.
func (s *Store) SkipEntry(ctx context.Context, seq int64, actor, reason string) (journal.Entry, error) {
	e, err := s.decideEntry(ctx, seq, func(tx db.Tx, e journal.Entry) (journal.Entry, error) {
		if err := RecordDecision(ctx, tx, seq, "skip", actor, reason); err != nil {
			return e, err
		}
		if err := relinkDependents(ctx, tx, seq); err != nil {
			return e, err
		}
		e, err := queryEntry(ctx, tx, `
			update journal_entry
			set state = 'completed', finished_at = clock_timestamp(), retry_at = null, last_error = $2, error_code = ''
			where seq = $1
			returning `+EntryColumns, seq, "skipped by "+actor+": "+reason)
		if err != nil {
			return e, err
		}
		return e, unblockDependents(ctx, tx, seq)
	})
	if err != nil {
		return journal.Entry{}, fmt.Errorf("skip journal entry: %w", err)
	}
	return e, nil
}

// maxAttemptDuration is longer than every attempt: an attempt that began longer ago than this has ended or
// failed.
const maxAttemptDuration = 20 * time.Second

// decideEntry locks an entry, applies an operator's decision to it with `act`, and wakes its workflow.
// decideEntry returns db.ErrConflict if the entry is completed or being sent.
func (s *Store) decideEntry(
	ctx context.Context,
	seq int64,
	act func(db.Tx, journal.Entry) (journal.Entry, error),
) (journal.Entry, error) {
	var e journal.Entry
	err := s.db.InTx(ctx, func(tx db.Tx) error {
		err := WaitForTurn(ctx, tx, seq)
		if err != nil {
			return err
		}
		if e, err = LockEntry(ctx, tx, seq); err != nil {
			return db.NotFoundOr(err, "journal entry %d", seq)
		}
		if e.State == journal.Completed {
			return fmt.Errorf("%w: journal entry %d is completed", db.ErrConflict, seq)
		}
		var sending bool
		if err := tx.QueryRow(ctx, `select state = 'processing' and taken_at > clock_timestamp() - $2::interval from journal_entry where seq = $1`,
			seq, maxAttemptDuration).Scan(&sending); err != nil {
			return err
		}
		if sending {
			return fmt.Errorf("%w: journal entry %d is being sent", db.ErrConflict, seq)
		}
		if e, err = act(tx, e); err != nil {
			return err
		}
		return wakeEntries(ctx, tx, e)
	})
	return e, err
}

// relinkDependents makes the entries that wait for an entry also wait for the blockers of this entry.
// relinkDependents locks the blockers as queueEntry does.
func relinkDependents(ctx context.Context, tx db.Tx, seq int64) error {
	_, err := tx.Exec(ctx, `
		with blocker as (
			select e.seq
			from journal_entry e
			where e.finished_at is null and e.seq in (select waits_for from journal_dep where entry = $1)
			order by e.seq
			for share of e)
		insert into journal_dep (entry, waits_for)
		select d.entry, blocker.seq
		from journal_dep d cross join blocker
		where d.waits_for = $1
		on conflict do nothing`, seq)
	return err
}

// WaitForTurn waits until the transactions about the network of an entry that began earlier have ended, if
// the object of the entry is a network or a subnet. The transaction must call WaitForTurn before it locks the
// object or the entry.
func WaitForTurn(ctx context.Context, tx db.Tx, seq int64) error {
	_, err := tx.Exec(ctx, waitForTurn, seq)
	return err
}

// LockEntry reads an entry and locks it until the transaction ends. LockEntry returns pgx.ErrNoRows if the
// entry does not exist.
func LockEntry(ctx context.Context, tx db.Tx, seq int64) (journal.Entry, error) {
	return queryEntry(ctx, tx,
		`select `+EntryColumns+` from journal_entry where seq = $1 for no key update`, seq)
}

// HasLaterEntry reports whether a later entry of the same object is open.
func HasLaterEntry(ctx context.Context, tx db.Tx, e journal.Entry) (later bool, err error) {
	err = tx.QueryRow(ctx, `
		select exists (select from journal_entry where object_type = $1 and object_id = $2 and finished_at is null and seq > $3)`,
		e.Object.Type, e.Object.ID, e.Seq).Scan(&later)
	return later, err
}

// CompleteEntry completes a locked entry without another attempt, stores the reason in the column last_error,
// and wakes the workflows of the entries that waited only for this entry.
func CompleteEntry(ctx context.Context, tx db.Tx, seq int64, reason string) error {
	e, err := queryEntry(ctx, tx, `
		update journal_entry
		set state = 'completed', finished_at = clock_timestamp(), last_error = $2, error_code = ''
		where seq = $1
		returning `+EntryColumns, seq, reason)
	if err != nil {
		return err
	}
	if err := unblockDependents(ctx, tx, seq); err != nil {
		return err
	}
	return wakeEntries(ctx, tx, e)
}

// ReopenEntry makes a locked, failed entry pending again, with the given operation and data. ReopenEntry
// wakes the workflow of the entry and the workflows of the entries that wait for this entry.
func ReopenEntry(ctx context.Context, tx db.Tx, seq int64, op journal.Operation, data json.RawMessage) error {
	e, err := queryEntry(ctx, tx, `
		update journal_entry
		set state = 'pending', failures = 0, retry_at = null, looked_at = clock_timestamp(), operation = $2, data = $3
		where seq = $1
		returning `+EntryColumns, seq, op, data)
	if err != nil {
		return err
	}
	if err := wakeEntries(ctx, tx, e); err != nil {
		return err
	}
	return wakeDependents(ctx, tx, seq,
		func(batch *pgx.Batch, woken *int64) { queueWakeDependents(batch, seq, woken) })
}

// RecordDecision records the decision of an operator or a recovery about an entry.
func RecordDecision(ctx context.Context, tx db.Tx, seq int64, action, actor, reason string) error {
	_, err := tx.Exec(ctx, `
		insert into journal_audit (seq, action, actor, reason)
		values ($1, $2, $3, $4)`, seq, action, actor, reason)
	return err
}

// SweepEntries enqueues notes for up to `limit` entries whose workflow may be missing, and returns their
// numbers. The workflow of an entry may be missing if the entry is open and unblocked, has no note, and no
// workflow has examined it for the duration `olderThan`. Blocked entries wake up when their blockers
// complete.
func (s *Store) SweepEntries(ctx context.Context, olderThan time.Duration, limit int) ([]int64, error) {
	var swept []journal.Entry
	err := s.db.InTx(ctx, func(tx db.Tx) error {
		rows, err := tx.Query(ctx, `
			update journal_entry
			set looked_at = clock_timestamp()
			where seq in (
				select e.seq
				from journal_entry e
				where e.finished_at is null and e.state in ('pending', 'processing')
					and e.looked_at <= clock_timestamp() - $1::interval
					and not exists (select from journal_dep d where d.entry = e.seq)
					and not `+outbox.Exists("$3 || e.seq")+`
				order by e.looked_at
				limit $2
				for no key update skip locked)
			returning `+EntryColumns, olderThan, limit, contract.JournalID(""))
		if err != nil {
			return err
		}
		if swept, err = pgx.CollectRows(rows, ScanEntry); err != nil {
			return err
		}
		return enqueueNudges(ctx, tx, true, swept...)
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
