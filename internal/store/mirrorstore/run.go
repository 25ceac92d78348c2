package mirrorstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

const runColumns = `id, kind, coalesce(plan, 0), actor, reason, state, position, progress, note, step, created_at, updated_at, finished_at`

func scanRun(row pgx.CollectableRow) (journal.Run, error) {
	var r journal.Run
	err := row.Scan(
		&r.ID,
		&r.Kind,
		&r.Plan,
		&r.Actor,
		&r.Reason,
		&r.State,
		&r.Position,
		&r.Progress,
		&r.Note,
		&r.Step,
		&r.CreatedAt,
		&r.UpdatedAt,
		&r.FinishedAt,
	)
	return r, err
}

// StartRun creates a run, or returns the open run of the same kind if there is one. The plan of a repair is
// the audit whose findings it repairs. For a repair, StartRun returns db.ErrConflict if a repair with another
// plan is open, or if the plan is not a finished audit.
func (s *Store) StartRun(ctx context.Context, want journal.Run) (journal.Run, error) {
	var r journal.Run
	err := s.db.InTx(ctx, func(tx db.Tx) (err error) {
		if want.Kind == contract.KeyRepair {
			var ready bool
			if err := tx.QueryRow(ctx, `select kind = 'audit' and state = 'done' from mirror_run where id = $1`, want.Plan).Scan(&ready); err != nil {
				return db.NotFoundOr(err, "audit %d", want.Plan)
			}
			if !ready {
				return fmt.Errorf("%w: run %d is not a finished audit", db.ErrConflict, want.Plan)
			}
		}
		r, err = db.QueryOne(ctx, tx, scanRun, nil, `
			insert into mirror_run (kind, plan, actor, reason)
			values ($1, nullif($2::bigint, 0), $3, $4)
			on conflict (kind) where finished_at is null do update
			set kind = excluded.kind -- changes nothing, so that a run without progress does not look as if it had some
			returning `+runColumns, want.Kind, want.Plan, want.Actor, want.Reason)
		if err != nil {
			return err
		}
		if r.Plan != want.Plan {
			return fmt.Errorf("%w: repair %d with plan %d is still open", db.ErrConflict, r.ID, r.Plan)
		}
		tx.Changed(db.Change{Type: "run", ID: fmt.Sprint(r.ID)})
		return outbox.Enqueue(ctx, tx, runNudge(r.Kind))
	})
	if err != nil {
		return journal.Run{}, fmt.Errorf("start %s: %w", want.Kind, err)
	}
	return r, nil
}

// runNudge returns the nudge for the workflow of a kind of run.
func runNudge(kind string) contract.Nudge {
	return contract.Nudge{
		Workflow:   contract.RunWorkflows[kind],
		ID:         contract.RunID(kind),
		Summary:    kind + " of the controller",
		Attributes: contract.Attributes{Resource: kind},
	}
}

// OpenRun returns the open run of a kind, or a run with the ID 0 if none is open.
func (s *Store) OpenRun(ctx context.Context, kind string) (journal.Run, error) {
	r, err := db.QueryOne(ctx, s.db, scanRun, nil,
		`select `+runColumns+` from mirror_run where kind = $1 and finished_at is null`, kind)
	if err != nil || r.ID == 0 {
		return r, err
	}
	return r, countEntries(ctx, s.db, &r)
}

// IsRunDue reports whether a run of a kind is due, because none has started within the duration `every`.
func (s *Store) IsRunDue(ctx context.Context, kind string, every time.Duration) (bool, error) {
	var overdue bool
	err := s.db.QueryRow(ctx, `
		select not exists (select from mirror_run where kind = $1 and created_at > clock_timestamp() - $2::interval)`, kind, every).Scan(&overdue)
	if err != nil {
		return false, fmt.Errorf("check whether a run of kind %s is due: %w", kind, err)
	}
	return overdue, nil
}

// LastDone returns the run of a kind that was started last among those that are done, or a run with the ID 0
// if there is none.
func (s *Store) LastDone(ctx context.Context, kind string) (journal.Run, error) {
	r, err := db.QueryOne(ctx, s.db, scanRun, nil, `
		select `+runColumns+`
		from mirror_run
		where kind = $1 and state = 'done'
		order by id desc
		limit 1`, kind)
	if err != nil {
		return r, fmt.Errorf("read the last %s: %w", kind, err)
	}
	return r, nil
}

// Run returns the run with the given number, or db.ErrNotFound if the run does not exist.
func (s *Store) Run(ctx context.Context, id int64) (journal.Run, error) {
	r, err := db.QueryOne(ctx, s.db, scanRun, db.ErrNotFound,
		`select `+runColumns+` from mirror_run where id = $1`, id)
	if err != nil {
		return r, fmt.Errorf("read run %d: %w", id, err)
	}
	return r, countEntries(ctx, s.db, &r)
}

// Runs lists up to `limit` runs, newest first. If `before` is not 0, Runs lists only runs that are older than
// the run with this number.
func (s *Store) Runs(ctx context.Context, before int64, limit int) ([]journal.Run, error) {
	rows, err := s.db.Query(ctx, `
		select `+runColumns+`
		from mirror_run
		where $1::bigint = 0 or id < $1
		order by id desc
		limit $2`, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return pgx.CollectRows(rows, scanRun)
}

// TrimRuns deletes runs that finished longer ago than `age`, with their findings. TrimRuns keeps the run of
// each kind that was started last among those that are done, and an audit that an open repair uses as its
// plan.
func (s *Store) TrimRuns(ctx context.Context, age time.Duration) error {
	_, err := s.db.Exec(ctx, `
		delete from mirror_run r
		where finished_at < clock_timestamp() - $1::interval
			and id not in (select max(id) from mirror_run where state = 'done' group by kind)
			and not exists (select from mirror_run o where o.plan = r.id and o.finished_at is null)`, age)
	if err != nil {
		return fmt.Errorf("trim runs: %w", err)
	}
	return nil
}

// countEntries counts the journal entries that a run has recorded, and those of them that are completed, by
// object type, and stores the counts in the progress of the run.
func countEntries(ctx context.Context, q db.Querier, r *journal.Run) error {
	rows, err := q.Query(ctx, `
		select e.object_type, count(*), count(e.finished_at)
		from mirror_run_entry r
		join journal_entry e on e.seq = r.seq
		where r.run = $1
		group by e.object_type
		order by e.object_type`, r.ID)
	if err != nil {
		return fmt.Errorf("count the entries of run %d: %w", r.ID, err)
	}
	var p journal.TypeProgress
	_, err = pgx.ForEachRow(rows, []any{&p.Type, &p.Recorded, &p.Completed}, func() error {
		for i := range r.Progress {
			if r.Progress[i].Type == p.Type {
				r.Progress[i].Recorded, r.Progress[i].Completed = p.Recorded, p.Completed
				return nil
			}
		}
		r.Progress = append(r.Progress, p)
		return nil
	})
	return err
}

// SaveRun saves the progress of a run and increments the run's step counter. SaveRun returns db.ErrConflict
// if the step counter has changed since the caller read the run.
func (s *Store) SaveRun(ctx context.Context, r journal.Run) (journal.Run, error) {
	saved, err := db.QueryOne(ctx, s.db, scanRun, db.ErrConflict, `
		update mirror_run
		set state = $3, position = $4, progress = $5, note = $6, step = step + 1, updated_at = now(),
			finished_at = case when $3 <> 'running' then now() end
		where id = $1 and step = $2 and finished_at is null
		returning `+runColumns, r.ID, r.Step, r.State, r.Position, db.OrEmpty(r.Progress), r.Note)
	if err != nil {
		return r, fmt.Errorf("save the progress of %s run %d: %w", r.Kind, r.ID, err)
	}
	return saved, countEntries(ctx, s.db, &saved)
}

// CountOpenEntries returns two counts for a run: `open` is the number of the run's journal entries that are
// not completed. `held` is the number of open entries of the run that have failed, or that wait for a failed
// entry directly or through other entries.
func (s *Store) CountOpenEntries(ctx context.Context, run int64) (open, held int, err error) {
	err = s.db.QueryRow(ctx, `
		with recursive held as (
			select seq
			from journal_entry
			where finished_at is null and state = 'failed'
			union
			select d.entry
			from journal_dep d
			join held on held.seq = d.waits_for)
		select count(*), count(held.seq)
		from mirror_run_entry r
		join journal_entry e on e.seq = r.seq
		left join held on held.seq = e.seq
		where r.run = $1 and e.finished_at is null`, run).Scan(&open, &held)
	if err != nil {
		return 0, 0, fmt.Errorf("count the open entries of run %d: %w", run, err)
	}
	return open, held, nil
}

// DeleteFindings deletes the findings of an audit about one type.
func (s *Store) DeleteFindings(ctx context.Context, r journal.Run, typ string) error {
	return s.changeFindings(ctx, r, func(tx db.Tx) error {
		_, err := tx.Exec(ctx, `delete from mirror_finding where run = $1 and object_type = $2`, r.ID, typ)
		return err
	})
}

// SaveFindings saves findings of an audit. A finding replaces an earlier finding of the audit about the same
// object.
func (s *Store) SaveFindings(ctx context.Context, r journal.Run, findings []journal.Finding) error {
	return s.changeFindings(ctx, r, func(tx db.Tx) error {
		batch := &pgx.Batch{}
		for _, f := range findings {
			batch.Queue(`
				insert into mirror_finding (run, object_type, object_id, kind, attributes, data)
				values ($1, $2, $3, $4, $5, $6)
				on conflict (run, object_type, object_id) do update
				set kind = excluded.kind, attributes = excluded.attributes, data = excluded.data`,
				r.ID, f.Object.Type, f.Object.ID, f.Kind, db.OrEmpty(f.Attributes), f.Data)
		}
		return tx.SendBatch(ctx, batch).Close()
	})
}

// changeFindings changes the findings of an audit. changeFindings returns db.ErrConflict if the run's step
// counter has changed since the caller read the run.
func (s *Store) changeFindings(ctx context.Context, r journal.Run, alter func(db.Tx) error) error {
	err := s.db.InTx(ctx, func(tx db.Tx) error {
		tag, err := tx.Exec(
			ctx,
			`select from mirror_run where id = $1 and step = $2 and finished_at is null for update`,
			r.ID,
			r.Step,
		)
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf(
				"%w: the run is no longer at step %d, because another process has changed it",
				db.ErrConflict,
				r.Step,
			)
		}
		if err != nil {
			return err
		}
		return alter(tx)
	})
	if err != nil {
		return fmt.Errorf("change findings of audit %d: %w", r.ID, err)
	}
	return nil
}

// Findings lists up to `limit` findings of an audit that follow the given object in the order of repair.
// Objects that are missing or different at the controller come first (parents before children), then objects
// that only the controller has (children before parents).
func (s *Store) Findings(
	ctx context.Context,
	run int64,
	after journal.Ref,
	limit int,
) ([]journal.Finding, error) {
	return s.findings(ctx, run, after, "", limit)
}

// LockedFindings lists findings as Findings does, but only those with the outcome journal.FindingLocked.
func (s *Store) LockedFindings(
	ctx context.Context,
	run int64,
	after journal.Ref,
	limit int,
) ([]journal.Finding, error) {
	return s.findings(ctx, run, after, journal.FindingLocked, limit)
}

// findings does the same as Findings. If `outcome` is not empty, findings lists only findings with this
// outcome.
func (s *Store) findings(
	ctx context.Context,
	run int64,
	after journal.Ref,
	outcome string,
	limit int,
) ([]journal.Finding, error) {
	findings, err := db.QueryAll(ctx, s.db, func(row pgx.CollectableRow) (journal.Finding, error) {
		var f journal.Finding
		err := row.Scan(&f.Object.Type, &f.Object.ID, &f.Kind, &f.Attributes, &f.Data, &f.Outcome)
		return f, err
	}, `
		with ranked as (
			select f.*, case kind when 'extra' then 1000 - array_position($2::text[], object_type) else array_position($2::text[], object_type) end as rank
			from mirror_finding f
			where run = $1)
		select object_type, object_id, kind, attributes, data, outcome
		from ranked
		where ($3::text = '' or (rank, object_id) > (select rank, object_id from ranked where object_type = $3 and object_id = $4))
			and ($6::text = '' or outcome = $6)
		order by rank, object_id
		limit $5`, run, journal.Types(), after.Type, after.ID, limit, outcome)
	if err != nil {
		return nil, fmt.Errorf("read findings of audit %d: %w", run, err)
	}
	return findings, nil
}
