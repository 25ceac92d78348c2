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

// waitForTurn is SQL that a transaction runs before it locks the entry $1. If the object is a network or a
// subnet, waitForTurn waits for the advisory lock that orders the transactions about a network (see
// QueueNetworkLock of networkstore). Each transaction that creates or changes a port of the network holds
// this lock, and then locks the entry of the network `for share`. Without the turn, such requests without a
// pause, also of other projects, could keep the entry waiting for ever.
const waitForTurn = `select pg_advisory_xact_lock(` + turnKey + `)` + turnsOfEntry

// hasTurn is the SQL condition that the transaction gets the turn of waitForTurn without waiting.
const hasTurn = `not exists (select` + turnsOfEntry + ` and not pg_try_advisory_xact_lock(` + turnKey + `))`

const (
	turnsOfEntry = `
	from journal_entry e
	cross join unnest(e.parents || (e.object_type || '/' || e.object_id)) as p
	where e.seq = $1 and e.object_type in ('network', 'subnet') and p like 'network/%'`
	turnKey = `hashtextextended('network ' || substr(p, length('network/') + 1), 0)`
)

// A transaction that sends an entry waits for each lock for a tenth of the age of the entry, within these
// limits. Therefore a network that stays locked keeps connections to the database only for a small part of
// the time, but an entry that has waited for long also gets its turn among long transactions.
const (
	minLockWait = 900 * time.Millisecond
	maxLockWait = 10 * time.Second
)

// limitLockWait is SQL that limits the waits of the transaction for locks to the wait of the entry $1; $2 and
// $3 are minLockWait and maxLockWait.
const limitLockWait = `
	select set_config('lock_timeout', ceil(1000 * extract(epoch from
		least($3::interval, greatest($2::interval, (clock_timestamp() - created_at) / 10))))::text, true)
	from journal_entry
	where seq = $1`

// queueTurn queues the wait for the turn of an entry.
func queueTurn(batch *pgx.Batch, seq int64) {
	batch.Queue(limitLockWait, seq, minLockWait, maxLockWait)
	batch.Queue(waitForTurn, seq)
}

// maxClaimAttempts limits how often ClaimEntry retries when an entry becomes free between its two queries.
const maxClaimAttempts = 5

// ClaimEntry claims an entry for an attempt to send it. ClaimEntry does not claim a blocked entry, but
// returns the entry with its blockers. An entry that has failed still blocks the entries that wait for it.
// ClaimEntry does not claim an entry that is completed or has failed, that must wait before its next attempt,
// or that ClaimBacklog has claimed for another workflow. While the journal is paused, ClaimEntry claims no
// entry; if the entry is neither completed nor failed, ClaimEntry returns it with the pause.
//
// ClaimEntry waits for no lock to find out that the entry cannot be claimed. For the locks of an entry that
// can be claimed, ClaimEntry waits as a transaction of the entry's project, as limitLockWait says, and then
// returns an error for which db.WasLocked reports true; the caller must try again later. The same applies to
// the error that ClaimEntry returns if the entry becomes free between its two queries maxClaimAttempts times.
func (s *Store) ClaimEntry(ctx context.Context, seq int64) (journal.ClaimResult, error) {
	for attempt := 1; ; attempt++ {
		t, claimed, err := s.claimEntry(ctx, seq, attempt > 1)
		if err == nil && !claimed {
			t, err = s.unclaimedEntry(ctx, seq)
			ctx = db.WithProject(ctx, t.Entry.Project)
		}
		if err != nil {
			return journal.ClaimResult{}, fmt.Errorf("claim journal entry: %w", err)
		}
		if claimed || len(t.Blockers) > 0 || t.Wait > 0 || t.Pause != nil || !isSendable(t.Entry) {
			return t, nil
		} // otherwise the entry was locked, or became free between the two queries
		if attempt == maxClaimAttempts {
			return journal.ClaimResult{}, fmt.Errorf(
				"claim journal entry %d: it became free during each of %d attempts", seq, attempt)
		}
	}
}

// claimEntry claims an entry that can be claimed. With `wait`, claimEntry waits for the locks of the entry;
// without it, claimEntry does not claim an entry that is locked.
func (s *Store) claimEntry(
	ctx context.Context,
	seq int64,
	wait bool,
) (t journal.ClaimResult, claimed bool, err error) {
	lock, turn := `for no key update skip locked`, hasTurn
	if wait {
		lock, turn = `for no key update`, `true`
	}
	err = s.db.InBatch(ctx, func(batch *pgx.Batch) {
		t, claimed = journal.ClaimResult{}, false
		if wait {
			queueTurn(batch, seq)
		}
		batch.Queue(`
			update journal_entry
			set state = 'processing', attempt = attempt + 1, taken_at = clock_timestamp(), looked_at = clock_timestamp(), retry_at = null,
				sent_by = null
			from (
				select seq as n, state as was, looked_at as looked
				from journal_entry
				where seq = $1
				`+lock+`) as before
			where seq = before.n and state in ('pending', 'processing') and `+turn+`
				and (retry_at is null or retry_at <= clock_timestamp())
				and not exists (select from journal_dep d where d.entry = seq)
				and `+isNotPaused+`
			returning before.was = 'processing' or maybe_applied as must_read, clock_timestamp() - before.looked as since_last, `+EntryColumns, seq,
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

// scanClaim reads a row that consists of the columns must_read, since_last and EntryColumns.
func scanClaim(row pgx.CollectableRow) (journal.ClaimResult, error) {
	r, err := pgx.RowToStructByName[struct {
		entryRow
		MustRead  bool // before the next write, because the controller may have applied an earlier one
		SinceLast time.Duration
	}](row)
	return journal.ClaimResult{Entry: r.entry(), MaybeApplied: r.MustRead, SinceLast: r.SinceLast}, err
}

// unclaimedEntry returns an entry with the reason why it cannot be claimed. If the entry is completed,
// unclaimedEntry deletes the note of the entry's own workflow. This workflow calls unclaimedEntry and has
// nothing left to do, because another workflow has completed the entry.
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
		queuePause(batch, &t.Pause)
		delivered := outbox.DeleteDelivered("journal_entry e", "$2", "true")
		batch.Queue(delivered+` and e.seq = $1 and e.finished_at is not null`, seq, entryID(seq))
	})
	switch {
	case !isSendable(t.Entry):
		t.Blockers, t.Pause = nil, nil
	case len(t.Blockers) > 0 || t.Pause != nil:
		t.Wait = 0
	}
	return t, err
}

// isSendable reports whether the state of an entry allows an attempt to send it.
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

// SaveOutcome writes the outcome of an attempt that the entry's own workflow made. SaveOutcome returns
// db.ErrConflict if a newer attempt exists. A second call for the same attempt with the same outcome succeeds
// and changes nothing. SaveOutcome deletes the note of the workflow, because the workflow is running. If the
// entry completes, SaveOutcome wakes the workflows of the entries that waited only for this entry.
// SaveOutcome waits for locks as limitLockWait says, and then returns an error for which db.WasLocked reports
// true.
func (s *Store) SaveOutcome(
	ctx context.Context,
	seq int64,
	attempt int,
	o journal.Outcome,
) (journal.Entry, error) {
	e, _, err := s.SaveOutcomeAndClaimNotes(ctx, seq, attempt, o, 0)
	return e, err
}

// SaveOutcomeAndClaimNotes does the same as SaveOutcome, but also claims, for outbox.ClaimDuration, the notes
// of at most `limit` of the entries that this outcome unblocks. The caller must deliver the claimed notes.
func (s *Store) SaveOutcomeAndClaimNotes(
	ctx context.Context,
	seq int64,
	attempt int,
	o journal.Outcome,
	limit int,
) (e journal.Entry, claimed []contract.Note, err error) {
	return s.saveOutcome(ctx, seq, attempt, o, deleteNote, wake{claim: limit})
}

// SaveSharedOutcome writes the outcome of an attempt that the workflow of another entry made after that
// workflow had claimed this entry with ClaimBacklog. SaveSharedOutcome keeps the note of the entry, so that
// the entry's own workflow still runs and also records the outcome. The workflows of the entries that this
// outcome unblocks wake up only after ClaimDuration, because the caller usually claims these entries with
// ClaimBacklog within this time.
func (s *Store) SaveSharedOutcome(
	ctx context.Context,
	seq int64,
	attempt int,
	o journal.Outcome,
) (journal.Entry, error) {
	e, _, err := s.saveOutcome(ctx, seq, attempt, o, keepNote, wake{delay: s.claimDuration})
	return e, err
}

// wake says how the workflows of the entries that an outcome unblocks wake up.
type wake struct {
	claim int           // maximum number of notes that the caller claims and delivers
	delay time.Duration // time until the notes that the caller does not claim become due
}

// noteChange is the change of an entry's note in the statement that writes the entry's outcome.
type noteChange struct {
	sql string // a common table expression; e is the updated entry, $8 the ID of the entry's workflow
	due string // SQL condition that the note has become due
}

var (
	// deleteNote deletes the note of the entry's own workflow, because this workflow made the attempt and
	// thus is running.
	deleteNote = noteChange{
		sql: `delivered as (` + outbox.DeleteDelivered("e", "$8", "e.state = 'completed'") + `)`,
		due: "false",
	}
	// keepNote keeps the note, because another workflow made the attempt. Unless the entry completes, the
	// note becomes due now.
	keepNote = noteChange{
		sql: `due as (` + outbox.MakeDueNow("e", "$8", "e.state <> 'completed'") + ` returning 1)`,
		due: "exists (select from due)",
	}
)

func (s *Store) saveOutcome(
	ctx context.Context,
	seq int64,
	attempt int,
	o journal.Outcome,
	n noteChange,
	w wake,
) (e journal.Entry, claimed []contract.Note, err error) {
	var written, due bool
	var woken int64
	err = s.db.InBatch(ctx, func(batch *pgx.Batch) {
		queueTurn(batch, seq)
		queueOutcome(batch, seq, attempt, o, n, &e, &written, &due)
		if o.State() == journal.Completed {
			queueUnblock(batch, seq, w, &claimed, &woken)
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
	if due || woken > 0 && w.delay == 0 {
		s.db.NotifyRelays()
	}
	return e, claimed, nil
}

// maxKeptData is the maximum size of the data that a completed entry keeps, in bytes of PostgreSQL's storage.
// The data of a port can have 200 kB, and each change of the port, however small the request is, makes an
// entry with all of it: a project could otherwise fill the disk long before the retention deletes the
// entries.
const maxKeptData = 4 << 10

// queueOutcome queues one statement that writes an outcome to an entry and changes the note of the entry as n
// says.
func queueOutcome(
	batch *pgx.Batch,
	seq int64,
	attempt int,
	o journal.Outcome,
	n noteChange,
	e *journal.Entry,
	written, due *bool,
) {
	failures := 0
	if o.CountsAsFailure() {
		failures = 1
	}
	batch.Queue(`
		with e as (
			update journal_entry
			set state = $3, failures = failures + $4, maybe_applied = $5, last_error = $6, error_code = $10, away = $9, looked_at = clock_timestamp(),
				data = case when $3 = 'completed' and pg_column_size(data) > $11 then 'null' else data end,
				finished_at = case when $3 = 'completed' then clock_timestamp() end,
				retry_at = case when $3 = 'pending' then clock_timestamp() + $7::interval end
			where seq = $1 and attempt = $2 and state = 'processing'
			returning `+EntryColumns+`),
		`+n.sql+`
		select `+n.due+` as due, `+EntryColumns+`
		from e`, seq, attempt, o.State(), failures, o.MaybeApplied, o.Reason, o.RetryAfter, entryID(seq), o.ControllerDown, o.Code, maxKeptData,
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

// savedBefore returns the entry if a previous call has saved the state `to` for the same attempt, and
// db.ErrConflict otherwise.
func (s *Store) savedBefore(
	ctx context.Context,
	seq int64,
	attempt int,
	to journal.State,
) (journal.Entry, error) {
	e, _, _, err := s.JournalEntry(ctx, seq)
	if err != nil {
		return e, err
	}
	if e.Attempt != attempt || e.State != to {
		return e, fmt.Errorf("%w: journal entry %d is %s at attempt %d, not attempt %d",
			db.ErrConflict, seq, e.State, e.Attempt, attempt)
	}
	return e, nil
}

// isCompleted is the SQL condition that the entry $1 is completed.
const isCompleted = `exists (select from journal_entry b where b.seq = $1 and b.finished_at is not null)`

// unblockedEntries is SQL that lists the entries that wait only for the entry $1. The list is empty if the
// entry $1 is not completed.
const unblockedEntries = `
	select d.entry
	from journal_dep d
	where d.waits_for = $1 and ` + isCompleted + `
		and not exists (select from journal_dep o where o.entry = d.entry and o.waits_for <> $1)`

// queueUnblock queues statements that delete the dependencies on a completed entry and enqueue notes for the
// entries that no longer have a blocker. queueUnblock locks the dependent entries first: if two blockers of
// the same entry complete at the same time, the second transaction must see that the first transaction has
// deleted one dependency.
func queueUnblock(batch *pgx.Batch, seq int64, w wake, claimed *[]contract.Note, woken *int64) {
	batch.Queue(`
		select 1
		from journal_entry
		where seq in (select entry from journal_dep where waits_for = $1)
		order by seq
		for no key update`, seq)
	const unblocked = openEntriesSelect + ` and state <> 'processing' and seq in (` + unblockedEntries + `) order by seq`
	if w.claim > 0 {
		batch.Queue(outbox.SelectEnqueueClaimed(unblocked+` limit $3`, "$2", "$4::interval"), seq, contract.JournalEntry, w.claim, outbox.ClaimDuration).
			Query(func(rows pgx.Rows) (err error) {
				*claimed, err = pgx.CollectRows(rows, outbox.ScanNote)
				return err
			})
	}
	batch.Queue(outbox.SelectEnqueue(unblocked+` offset $4`, "$2", "$3::interval"), seq, contract.JournalEntry, w.delay, w.claim).
		Exec(func(tag pgconn.CommandTag) error {
			*woken = tag.RowsAffected()
			return nil
		})
	batch.Queue(`
		delete from journal_dep
		where waits_for = $1 and `+isCompleted, seq)
}

// queueWakeDependents queues a statement that enqueues notes for the entries that wait for the entry `seq`.
// The state of the entry `seq` has changed, and the workflows of the waiting entries show this state to
// operators.
func queueWakeDependents(batch *pgx.Batch, seq int64, woken *int64) {
	batch.Queue(outbox.SelectEnqueue(openEntriesSelect+` and seq in (select entry from journal_dep where waits_for = $1) order by seq`, "$2", "interval '0'"),
		seq, contract.JournalEntry,
	).Exec(func(tag pgconn.CommandTag) error {
		*woken = tag.RowsAffected()
		return nil
	})
}

// unblockDependents runs queueUnblock for an entry that an operator or a recovery completed in this
// transaction.
func unblockDependents(ctx context.Context, tx db.Tx, seq int64) error {
	return wakeDependents(ctx, tx, seq,
		func(batch *pgx.Batch, woken *int64) { queueUnblock(batch, seq, wake{}, nil, woken) })
}

// wakeDependents runs queued statements in the caller's transaction and notifies the relays if they enqueued
// notes.
func wakeDependents(
	ctx context.Context,
	tx db.Tx,
	seq int64,
	queue func(batch *pgx.Batch, woken *int64),
) error {
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
