package journalstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// ClaimDuration is the time for which SaveOutcomeAndClaim and ClaimBacklog reserve an entry for their caller. ClaimDuration is
// longer than the timeout of an attempt.
const ClaimDuration = 5 * time.Second

// maxClaimAttempts limits how often ClaimEntry retries when an entry becomes free between its two queries.
const maxClaimAttempts = 5

// ClaimEntry claims an entry for an attempt. A blocked entry is not claimed and is returned with its blockers; a failed
// blocker blocks, too. An entry that is completed or failed, that backs off, or that another attempt has claimed is not claimed
// either.
func (s *Store) ClaimEntry(ctx context.Context, seq int64) (journal.ClaimResult, error) {
	for attempt := 1; ; attempt++ {
		t, claimed, err := s.claimEntry(ctx, seq)
		if err == nil && !claimed {
			t, err = s.unclaimedEntry(ctx, seq)
		}
		if err != nil {
			return journal.ClaimResult{}, fmt.Errorf("claim journal entry: %w", err)
		}
		if claimed || len(t.Blockers) > 0 || t.Wait > 0 || !isSendable(t.Entry) || attempt == maxClaimAttempts {
			return t, nil
		} // otherwise the entry became free between the two queries
	}
}

func (s *Store) claimEntry(ctx context.Context, seq int64) (t journal.ClaimResult, claimed bool, err error) {
	err = s.db.InBatch(ctx, func(batch *pgx.Batch) {
		batch.Queue(`
			update journal_entry
			set state = 'processing', attempt = attempt + 1, taken_at = clock_timestamp(), looked_at = clock_timestamp(), retry_at = null,
				carrier = null
			from (
				select seq as n, state as was
				from journal_entry
				where seq = $1
				for no key update) as before
			where seq = before.n and state in ('pending', 'processing')
				and (retry_at is null or retry_at <= clock_timestamp())
				and not exists (select from journal_dep d where d.entry = seq)
			returning before.was = 'processing' or unsure as maybe_applied, `+EntryColumns, seq,
		).Query(func(rows pgx.Rows) error {
			results, err := pgx.CollectRows(rows, scanClaim)
			if claimed = len(results) == 1; claimed {
				t = results[0]
			}
			return err
		})
	})
	return t, claimed, err
}

// scanClaim reads a row of maybe_applied and EntryColumns.
func scanClaim(row pgx.CollectableRow) (journal.ClaimResult, error) {
	r, err := pgx.RowToStructByName[struct {
		entryRow
		MaybeApplied bool
	}](row)
	return journal.ClaimResult{Entry: r.entry(), MaybeApplied: r.MaybeApplied}, err
}

// unclaimedEntry returns an entry with the reason why it cannot be claimed.
func (s *Store) unclaimedEntry(ctx context.Context, seq int64) (t journal.ClaimResult, err error) {
	err = s.db.InBatch(ctx, func(batch *pgx.Batch) {
		t = journal.ClaimResult{}
		batch.Queue(`
			select greatest(retry_at - clock_timestamp(), interval '0') as wait, `+EntryColumns+`
			from journal_entry
			where seq = $1`, seq).Query(func(rows pgx.Rows) error {
			r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[struct {
				entryRow
				Wait *time.Duration
			}])
			t.Entry = r.entry()
			if r.Wait != nil && isSendable(t.Entry) {
				t.Wait = *r.Wait
			}
			return db.NotFoundOr(err, "journal entry %d", seq)
		})
		batch.Queue(blockersSelect, seq).Query(func(rows pgx.Rows) (err error) {
			t.Blockers, err = pgx.CollectRows(rows, scanBlocker)
			return err
		})
	})
	switch {
	case !isSendable(t.Entry):
		t.Blockers = nil
	case len(t.Blockers) > 0:
		t.Wait = 0
	}
	return t, err
}

// isSendable reports whether an attempt may send the entry.
func isSendable(e journal.Entry) bool {
	return e.State == journal.Pending || e.State == journal.Processing
}

// blockersSelect is SQL that lists the entries that the entry $1 waits for.
const blockersSelect = `
	select e.seq, e.object_type, e.object_id, e.operation, e.state, e.created_at
	from journal_dep d
	join journal_entry e on e.seq = d.waits_for
	where d.entry = $1
	order by e.seq`

func scanBlocker(row pgx.CollectableRow) (journal.Blocker, error) {
	var b journal.Blocker
	err := row.Scan(&b.Seq, &b.Object.Type, &b.Object.ID, &b.Operation, &b.State, &b.Since)
	return b, err
}

func queryBlockers(ctx context.Context, tx db.Tx, seq int64) ([]journal.Blocker, error) {
	rows, err := tx.Query(ctx, blockersSelect, seq)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanBlocker)
}

// SaveOutcome writes the outcome of an attempt. SaveOutcome returns db.ErrConflict if a newer attempt exists; repeating the same
// outcome succeeds. If the entry completes, the entries that waited only for it wake up.
func (s *Store) SaveOutcome(ctx context.Context, seq int64, attempt int, o journal.Outcome) (journal.Entry, error) {
	e, _, err := s.SaveOutcomeAndClaim(ctx, seq, attempt, o, 0)
	return e, err
}

// SaveOutcomeAndClaim does the same as SaveOutcome, except that it claims up to `limit` of the unblocked entries for the caller,
// for ClaimDuration, and does not wake them. SaveOutcomeAndClaim claims only entries whose workflow has not started yet. If the
// caller does not save the outcomes of the claimed entries in time, the workflows of these entries start.
func (s *Store) SaveOutcomeAndClaim(ctx context.Context, seq int64, attempt int, o journal.Outcome, limit int) (e journal.Entry, claimed []journal.Entry, err error) {
	return s.saveOutcome(ctx, seq, attempt, o, limit, 0)
}

// SaveOutcomeInBatch does the same as SaveOutcome, but it is for a caller that claims the unblocked entries with ClaimBacklog.
// The workflows of the unblocked entries wake up after ClaimDuration.
func (s *Store) SaveOutcomeInBatch(ctx context.Context, seq int64, attempt int, o journal.Outcome) (journal.Entry, error) {
	e, _, err := s.saveOutcome(ctx, seq, attempt, o, 0, ClaimDuration)
	return e, err
}

func (s *Store) saveOutcome(ctx context.Context, seq int64, attempt int, o journal.Outcome, limit int, wakeIn time.Duration) (e journal.Entry, claimed []journal.Entry, err error) {
	var written, due bool
	var woken int64
	err = s.db.InBatch(ctx, func(batch *pgx.Batch) {
		queueOutcome(batch, seq, attempt, o, &e, &written, &due)
		if o.State() == journal.Completed {
			queueUnblock(batch, seq, limit, wakeIn, &claimed, &woken)
		}
		if o.State() == journal.Failed {
			queueWakeDependents(batch, seq, &woken)
		}
	})
	if err == nil && !written {
		e, err = s.savedBefore(ctx, seq, attempt, o.State())
	}
	if err != nil {
		return journal.Entry{}, nil, fmt.Errorf("save the outcome of a journal entry: %w", err)
	}
	if due || woken > 0 && wakeIn == 0 {
		s.db.NotifyRelays()
	}
	return e, claimed, nil
}

// queueOutcome queues the update of an entry with an outcome. If the entry completes and no relay has claimed the note of its
// workflow yet, the note is deleted: the workflow has nothing to do. After any other outcome the note of the entry's workflow
// becomes due immediately.
func queueOutcome(batch *pgx.Batch, seq int64, attempt int, o journal.Outcome, e *journal.Entry, written, due *bool) {
	failures := 0
	if o.CountsAsFailure() {
		failures = 1
	}
	batch.Queue(`
		with e as (
			update journal_entry
			set state = $3, failures = failures + $4, unsure = $5, last_error = $6, away = $9, looked_at = clock_timestamp(),
				finished_at = case when $3 = 'completed' then clock_timestamp() end,
				retry_at = case when $3 = 'pending' then clock_timestamp() + $7::interval end
			where seq = $1 and attempt = $2 and state = 'processing'
			returning `+EntryColumns+`),
		needless as (`+outbox.DeleteNeverClaimed("e", "$8", "e.state = 'completed'")+`),
		due as (`+outbox.MakeDueNow("e", "$8", "e.state <> 'completed'")+`
			returning 1)
		select exists (select from due) as due, `+EntryColumns+`
		from e`, seq, attempt, o.State(), failures, o.MaybeApplied, o.Reason, o.RetryAfter, entryID(seq), o.ControllerDown,
	).Query(func(rows pgx.Rows) error {
		results, err := pgx.CollectRows(rows, pgx.RowToStructByName[struct {
			entryRow
			Due bool
		}])
		*written, *due = len(results) == 1, false
		if *written {
			*e, *due = results[0].entry(), results[0].Due
		}
		return err
	})
}

// savedBefore returns the entry if the same attempt has saved the same state before, and db.ErrConflict otherwise.
func (s *Store) savedBefore(ctx context.Context, seq int64, attempt int, to journal.State) (journal.Entry, error) {
	e, _, _, err := s.JournalEntry(ctx, seq)
	if err != nil {
		return e, err
	}
	if e.Attempt != attempt || e.State != to {
		return e, fmt.Errorf("%w: journal entry %d is %s at attempt %d, not attempt %d", db.ErrConflict, seq, e.State, e.Attempt, attempt)
	}
	return e, nil
}

// isCompleted is the SQL condition that the entry $1 is completed.
const isCompleted = `exists (select from journal_entry b where b.seq = $1 and b.finished_at is not null)`

// unblockedEntries is SQL that lists the entries that wait only for the entry $1, if this entry is completed.
const unblockedEntries = `
	select d.entry
	from journal_dep d
	where d.waits_for = $1 and ` + isCompleted + `
		and not exists (select from journal_dep o where o.entry = d.entry and o.waits_for <> $1)`

// queueUnblock queues the removal of the dependencies on a completed entry. queueUnblock claims up to `limit` of the unblocked
// entries and makes the notes of the others due after `wakeIn`. queueUnblock locks the dependent entries first: when two blockers
// complete at the same time, the second transaction must see that the first dependency is gone.
func queueUnblock(batch *pgx.Batch, seq int64, limit int, wakeIn time.Duration, claimed *[]journal.Entry, woken *int64) {
	batch.Queue(`
		select 1
		from journal_entry
		where seq in (select entry from journal_dep where waits_for = $1)
		order by seq
		for no key update`, seq)
	if limit > 0 {
		batch.Queue(`
			with unblocked as (
				select seq
				from journal_entry
				where seq in (`+unblockedEntries+`) and state = 'pending' and attempt = 0
				order by seq
				limit $2),
			postponed as (`+outbox.PostponeNeverClaimed("unblocked", "$4 || unblocked.seq", "clock_timestamp() + $3::interval")+`
				returning unblocked.seq as n)
			update journal_entry
			set state = 'processing', attempt = attempt + 1, taken_at = clock_timestamp(), looked_at = clock_timestamp(),
				retry_at = clock_timestamp() + $3::interval,
				carrier = coalesce((select c.carrier from journal_entry c where c.seq = $1), $1)
			from postponed
			where seq = postponed.n
			returning `+EntryColumns, seq, limit, ClaimDuration, contract.JournalID(""),
		).Query(func(rows pgx.Rows) (err error) {
			*claimed, err = pgx.CollectRows(rows, ScanEntry)
			return err
		})
	}
	batch.Queue(outbox.SelectEnqueue(openEntriesSelect+` and state <> 'processing' and seq in (`+unblockedEntries+`) order by seq`, "$2", "$3::interval"),
		seq, contract.JournalEntry, wakeIn,
	).Exec(func(tag pgconn.CommandTag) error {
		*woken = tag.RowsAffected()
		return nil
	})
	batch.Queue(`
		delete from journal_dep
		where waits_for = $1 and `+isCompleted, seq)
}

// queueWakeDependents queues notes for the entries that wait for the entry `seq`, because the state of that entry has changed and
// the workflows of the waiting entries report it.
func queueWakeDependents(batch *pgx.Batch, seq int64, woken *int64) {
	batch.Queue(outbox.SelectEnqueue(openEntriesSelect+` and seq in (select entry from journal_dep where waits_for = $1) order by seq`, "$2", "interval '0'"),
		seq, contract.JournalEntry,
	).Exec(func(tag pgconn.CommandTag) error {
		*woken = tag.RowsAffected()
		return nil
	})
}

// unblockDependents runs queueUnblock for an entry that an operator or a recovery completed in this transaction.
func unblockDependents(ctx context.Context, tx db.Tx, seq int64) error {
	return wakeDependents(ctx, tx, seq, func(batch *pgx.Batch, woken *int64) { queueUnblock(batch, seq, 0, 0, nil, woken) })
}

// wakeDependents runs queued statements in the caller's transaction and notifies the relays if they enqueued notes.
func wakeDependents(ctx context.Context, tx db.Tx, seq int64, queue func(batch *pgx.Batch, woken *int64)) error {
	batch := &pgx.Batch{}
	var woken int64
	queue(batch, &woken)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("wake the entries that wait for journal entry %d: %w", seq, err)
	}
	if woken > 0 {
		tx.NotifyRelays()
	}
	return nil
}
