package mirrorstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
)

// RepairFindings records journal entries that repair findings of an audit, and returns one outcome per
// finding: the number of the recorded entry, or the reason why no entry is recorded. All findings of one call
// must have the same object type. If the object of a finding has journal entries after `since`, or no longer
// matches the finding, RepairFindings skips the object, because the finding is out of date. If the parameter
// `exactly` is true, RepairFindings also skips an object whose rows have changed since the audit recorded the
// finding.
//
// The outcome of an object that another transaction has locked is journal.FindingLocked. RepairFindings waits
// shortly for the lock of a single object, but not for the locks of several objects, because it would hold
// those of the others meanwhile. The caller should repair each locked object again with a call of its own.
func (s *Store) RepairFindings(
	ctx context.Context,
	run int64,
	findings []journal.Finding,
	since journalstore.Timestamp,
	exactly bool,
) ([]string, error) {
	if len(findings) == 0 {
		return nil, nil
	}
	r := repair{
		run:      run,
		typ:      findings[0].Object.Type,
		findings: findings,
		since:    since,
		exactly:  exactly,
	}
	var outcomes []string
	err := s.db.InTx(ctx, func(tx db.Tx) (err error) {
		if err := db.LimitLockWait(ctx, tx, s.lockWait); err != nil {
			return err
		}
		outcomes, err = r.record(ctx, tx)
		return err
	})
	if db.WasLocked(err) {
		outcomes = slices.Repeat([]string{journal.FindingLocked}, len(findings))
		err = s.db.InTx(ctx, func(tx db.Tx) error { return r.saveOutcomes(ctx, tx, nil, outcomes) })
	}
	if err != nil {
		return nil, fmt.Errorf("repair findings of type %s: %w", r.typ, err)
	}
	return outcomes, nil
}

// repair is the repair of findings about objects of one type. RepairFindings describes the fields.
type repair struct {
	run      int64
	typ      string
	findings []journal.Finding
	since    journalstore.Timestamp
	exactly  bool
}

// record records the journal entries of a repair and returns the outcomes.
func (r repair) record(ctx context.Context, tx db.Tx) ([]string, error) {
	ids := make([]string, len(r.findings))
	for i, f := range r.findings {
		ids[i] = f.Object.ID
	}
	src := sourceOf(r.typ)
	locked, err := r.lock(ctx, tx, src, ids)
	if err != nil {
		return nil, err
	}
	changing, err := journalstore.ObjectsChanging(ctx, tx, r.typ, ids, r.since)
	if err != nil {
		return nil, err
	}
	expected, err := expectedObjects(ctx, tx, src, ids)
	if err != nil {
		return nil, err
	}
	outcomes := make([]string, len(r.findings))
	var changes []journal.Change
	var whose []int
	for i, f := range r.findings {
		if locked[f.Object.ID] {
			outcomes[i] = journal.FindingLocked
			continue
		}
		c, exists := expected[f.Object.ID]
		c, why := repairChange(f, c, exists, changing[f.Object.ID], r.exactly)
		if outcomes[i] = why; why == "" {
			changes, whose = append(changes, c), append(whose, i)
		}
	}
	seqs, err := journalstore.Append(ctx, tx, changes)
	if err != nil {
		return nil, err
	}
	for i, seq := range seqs {
		outcomes[whose[i]] = fmt.Sprintf("%s is recorded as entry %d", changes[i].Operation, seq)
	}
	return outcomes, r.saveOutcomes(ctx, tx, seqs, outcomes)
}

// lock locks the objects of a repair and returns the IDs of those that other transactions have locked.
func (r repair) lock(
	ctx context.Context,
	tx db.Tx,
	src journalstore.Source,
	ids []string,
) (locked map[string]bool, err error) {
	if len(ids) == 1 {
		return nil, src.Lock(ctx, tx, r.typ, ids[0])
	}
	return src.TryLock(ctx, tx, r.typ, ids...)
}

// expectedObjects returns the expected state of the objects by ID. The result also contains the check network
// (journal.Canary). The check network has no row in the database: berth creates it at the controller, and if
// it is missing there, the controller has lost its data.
func expectedObjects(
	ctx context.Context,
	tx db.Tx,
	src journalstore.Source,
	ids []string,
) (map[string]journal.Change, error) {
	all := map[string]journal.Change{journal.Canary().Object.ID: journal.Canary()}
	kept, err := src.ByIDs(ctx, tx, ids...)
	for _, c := range kept {
		all[c.Object.ID] = c
	}
	return all, err
}

// repairChange returns the change that repairs a finding, or the reason why no change is recorded.
func repairChange(
	f journal.Finding,
	c journal.Change,
	exists, changing, exactly bool,
) (journal.Change, string) {
	switch {
	case changing:
		return c, "the journal changes it anyway"
	case f.Kind == journal.Extra && exists:
		return c, "it exists again"
	case f.Kind != journal.Extra && !exists:
		return c, "it was deleted meanwhile"
	case f.Kind != journal.Extra && exactly && !db.EqualJSON(f.Data, c.Data):
		return c, "it has changed since the plan was made"
	case f.Kind == journal.Extra:
		c = journal.Change{Object: f.Object, Operation: journal.Delete, Data: f.Data}
		if with, err := c.WithReferences(nil); err == nil {
			c = with
		}
		return c, ""
	}
	c.Operation = f.RepairOperation()
	return c, ""
}

// saveOutcomes links the journal entries to the repair that recorded them, and saves each outcome in the row
// of its finding.
func (r repair) saveOutcomes(ctx context.Context, tx db.Tx, seqs []int64, outcomes []string) error {
	types, ids := make([]string, len(r.findings)), make([]string, len(r.findings))
	for i, f := range r.findings {
		types[i], ids[i] = f.Object.Type, f.Object.ID
	}
	batch := &pgx.Batch{}
	batch.Queue(`insert into mirror_run_entry (run, seq) select $1, unnest($2::bigint[])`, r.run, seqs)
	batch.Queue(`
		update mirror_finding f
		set outcome = o.outcome
		from unnest($2::text[], $3::text[], $4::text[]) as o (object_type, object_id, outcome), mirror_run r
		where r.id = $1 and f.run = r.plan and f.object_type = o.object_type and f.object_id = o.object_id`, r.run, types, ids, outcomes)
	return tx.SendBatch(ctx, batch).Close()
}

// IsRecoveryDue reports whether a recovery must start. If an entry needs a recovery and no recovery has
// handled the entry yet, a recovery is due when the last recovery began longer ago than `soon`. If a recovery
// has already handled the entry, the next recovery is due when the last recovery began longer ago than
// `otherwise`.
func (s *Store) IsRecoveryDue(ctx context.Context, soon, otherwise time.Duration) (bool, error) {
	var due bool
	err := s.db.QueryRow(ctx, `
		select exists (
			select from journal_entry e
			where e.finished_at is null and (e.state = 'failed' or e.state = 'pending' and e.attempt >= 3 and e.error_code = $3)
				and not exists (
					select from mirror_run r
					where r.kind = 'recovery' and r.created_at > clock_timestamp() - case
						when exists (select from mirror_run_entry m where m.seq = e.seq) then $2::interval else $1::interval end))`,
		soon, otherwise, journal.MissingParent).Scan(&due)
	if err != nil {
		return false, fmt.Errorf("check whether a recovery is due: %w", err)
	}
	return due, nil
}

// UnrecoveredEntries lists up to `limit` journal entries with numbers above `after` that need a recovery and
// that the run has not recovered yet. An entry needs a recovery if it has failed, or if the controller has
// rejected the entry at least three times because a parent is missing.
func (s *Store) UnrecoveredEntries(
	ctx context.Context,
	run, after int64,
	limit int,
) ([]journal.Entry, error) {
	entries, err := db.QueryAll(ctx, s.db, journalstore.ScanEntry, `
		select `+journalstore.EntryColumns+`
		from journal_entry
		where finished_at is null and seq > $1 and (state = 'failed' or state = 'pending' and attempt >= 3 and error_code = $3)
			and not exists (select from mirror_run_entry m where m.run = $4 and m.seq = journal_entry.seq)
		order by seq
		limit $2`, after, limit, journal.MissingParent, run)
	if err != nil {
		return nil, fmt.Errorf("list journal entries to recover: %w", err)
	}
	return entries, nil
}

// RecoverEntry decides how to recover a failed entry. The parameter `has` is the object at the controller, or
// nil if the controller does not have the object. The result `ok` is false if the entry has changed since the
// caller read it. RecoverEntry records the decision with the entry. RecoverEntry waits only shortly for each
// lock, as a transaction of the entry's project, and then returns an error for which db.WasLocked reports
// true.
func (s *Store) RecoverEntry(
	ctx context.Context,
	run int64,
	e journal.Entry,
	has []byte,
) (r journal.RecoveryAction, ok bool, err error) {
	ctx = db.WithProject(ctx, e.Project)
	err = s.db.InTx(ctx, func(tx db.Tx) error {
		src := sourceOf(e.Object.Type)
		now, err := s.lockEntry(ctx, tx, src, e)
		ok = err == nil && now.State == journal.Failed && now.Attempt == e.Attempt
		if errors.Is(err, pgx.ErrNoRows) || err == nil && !ok {
			return nil
		}
		if err != nil {
			return err
		}
		o := journal.RecoveryInput{Actual: has}
		expected, err := expectedObjects(ctx, tx, src, []string{e.Object.ID})
		if err != nil {
			return err
		}
		if kept, ok := expected[e.Object.ID]; ok && kept.Object == e.Object {
			o.Desired = kept.Data
		}
		if o.HasLaterEntry, err = journalstore.HasLaterEntry(ctx, tx, e); err != nil {
			return err
		}
		r = journal.DecideRecovery(now, o)
		return applyRecovery(ctx, tx, run, now, r)
	})
	if err != nil {
		return r, false, fmt.Errorf("recover journal entry %d: %w", e.Seq, err)
	}
	return r, ok, nil
}

// lockEntry locks the object of an entry and then the entry, and reads the entry.
func (s *Store) lockEntry(
	ctx context.Context,
	tx db.Tx,
	src journalstore.Source,
	e journal.Entry,
) (journal.Entry, error) {
	if err := db.LimitLockWait(ctx, tx, s.lockWait); err != nil {
		return e, err
	}
	if err := journalstore.WaitForTurn(ctx, tx, e.Seq); err != nil {
		return e, err
	}
	if err := src.Lock(ctx, tx, e.Object.Type, e.Object.ID); err != nil {
		return e, err
	}
	return journalstore.LockEntry(ctx, tx, e.Seq)
}

func applyRecovery(
	ctx context.Context,
	tx db.Tx,
	run int64,
	e journal.Entry,
	r journal.RecoveryAction,
) error {
	if err := journalstore.RecordDecision(ctx, tx, e.Seq, "recover", fmt.Sprintf("recovery %d", run), r.Reason); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `insert into mirror_run_entry (run, seq) values ($1, $2) on conflict do nothing`, run, e.Seq); err != nil {
		return err
	}
	if r.Finish {
		return journalstore.CompleteEntry(ctx, tx, e.Seq, "recovered: "+r.Reason)
	}
	return journalstore.ReopenEntry(ctx, tx, e.Seq, r.Operation, r.Data)
}
