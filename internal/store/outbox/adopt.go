package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/store/db"
)

// Adopt binds the database to the Temporal namespace with the given ID. If the database was bound to another
// namespace, Adopt enqueues a note for every row that must have a workflow, because a new or restored
// Temporal server lacks workflow executions. Adopt returns the number of notes that it has enqueued. If
// several processes call Adopt at the same time, only one of the processes enqueues the notes.
func (s *Store) Adopt(ctx context.Context, namespace string) (int64, error) {
	var notes int64
	err := s.db.InTx(ctx, func(tx db.Tx) error {
		notes = 0
		var known string
		err := tx.QueryRow(ctx, `select id from temporal_namespace where single for update`).Scan(&known)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if known == namespace {
			return nil
		}
		if _, err := tx.Exec(ctx, `
			insert into temporal_namespace (id)
			values ($1)
			on conflict (single) do update
			set id = excluded.id, adopted_at = now()`, namespace); err != nil {
			return err
		}
		notes, err = s.nudgeRows(ctx, tx, nil)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("adopt Temporal namespace %s: %w", namespace, err)
	}
	if notes > 0 {
		s.db.NotifyRelays()
	}
	return notes, nil
}

// unlessBoundElsewhere is the SQL condition that the database is bound to the Temporal namespace with the ID
// $3 or to none.
const unlessBoundElsewhere = `not exists (select from temporal_namespace where id <> $3)`

// Namespace is the Temporal namespace to which the database is bound.
type Namespace struct {
	ID      string // empty: the database is bound to none
	Name    string // empty: not stored yet
	BoundAt time.Time
}

// BoundNamespace returns the Temporal namespace to which the database is bound.
func (s *Store) BoundNamespace(ctx context.Context) (Namespace, error) {
	n, err := db.QueryOne(ctx, s.db, pgx.RowToStructByPos[Namespace], nil,
		`select id, name, adopted_at from temporal_namespace`)
	if err != nil {
		return Namespace{}, fmt.Errorf("read the Temporal namespace that the database is bound to: %w", err)
	}
	return n, nil
}

// IsBoundTo reports whether the database is bound to the Temporal namespace with the given ID.
func (s *Store) IsBoundTo(ctx context.Context, namespace string) (bool, error) {
	n, err := s.BoundNamespace(ctx)
	return err == nil && n.ID == namespace, err
}

// RestartWorkflows enqueues a note, which starts the workflow if it does not run, for each of the workflow
// IDs that belongs to a row, and returns the number of enqueued notes. RestartWorkflows ignores other
// workflow IDs.
func (s *Store) RestartWorkflows(ctx context.Context, workflowIDs []string) (int64, error) {
	var notes int64
	err := s.db.InTx(ctx, func(tx db.Tx) (err error) {
		notes, err = s.nudgeRows(ctx, tx, workflowIDs)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("restart workflows: %w", err)
	}
	if notes > 0 {
		s.db.NotifyRelays()
	}
	return notes, nil
}

// nudgeRows enqueues notes for the rows with the workflow IDs in `only`, or for every row if `only` is nil.
func (s *Store) nudgeRows(ctx context.Context, tx db.Tx, only []string) (int64, error) {
	batch := &pgx.Batch{}
	var notes int64
	count := func(tag pgconn.CommandTag) error {
		notes += tag.RowsAffected()
		return nil
	}
	for _, of := range s.sources {
		batch.Queue(`
			insert into note (workflow_id, workflow, fresh, summary, attributes, due_at, restart, priority)
			select r.id, $1, false, r.summary, r.attributes, now(), true, $3
			from (`+of.Rows+`) as r (id, summary, attributes)
			where $2::text[] is null or r.id = any($2)
			order by r.id
			on conflict (workflow_id) do update
			set version = note.version + 1, fresh = false, due_at = least(note.due_at, excluded.due_at), restart = true`, of.Workflow, only, restartPriority(of.Workflow)).Exec(count)
	}
	return notes, tx.SendBatch(ctx, batch).Close()
}

// NameNamespace stores the name of the bound Temporal namespace with the given ID.
func (s *Store) NameNamespace(ctx context.Context, namespace, name string) error {
	if _, err := s.db.Exec(ctx, `update temporal_namespace set name = $2 where id = $1 and name <> $2`, namespace, name); err != nil {
		return fmt.Errorf("store the name of Temporal namespace %s: %w", namespace, err)
	}
	return nil
}

// WasBoundToName reports whether the namespace to which the database was bound last has the given name.
func (s *Store) WasBoundToName(ctx context.Context, name string) (bool, error) {
	var known bool
	err := s.db.QueryRow(ctx, `select exists (select from temporal_namespace where name = $1)`, name).
		Scan(&known)
	if err != nil {
		return false, fmt.Errorf(
			"read the name of the Temporal namespace that the database is bound to: %w",
			err,
		)
	}
	return known, nil
}
