package journalstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

const pauseSelect = `select at, actor, reason from journal_pause`

// isNotPaused is the SQL condition that the journal is not paused.
const isNotPaused = `not exists (select from journal_pause)`

// Pause pauses the journal: from then on no process claims entries. Attempts that have already begun are not
// interrupted. Pause records the actor and the reason. Pause returns db.ErrConflict if the journal is paused.
func (s *Store) Pause(ctx context.Context, actor, reason string) error {
	err := s.db.InTx(ctx, func(tx db.Tx) error {
		tag, err := tx.Exec(ctx, `
			with paused as (
				insert into journal_pause (actor, reason)
				values ($1, $2)
				on conflict do nothing
				returning 1)
			insert into journal_pause_audit (action, actor, reason)
			select 'pause', $1, $2
			from paused`, actor, reason)
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("%w: the journal is already paused", db.ErrConflict)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("pause the journal: %w", err)
	}
	return nil
}

// Resume ends the pause of the journal and wakes the workflows of all entries that can be sent, oldest first.
// Resume records the actor and the reason. Resume returns db.ErrConflict if the journal is not paused.
func (s *Store) Resume(ctx context.Context, actor, reason string) error {
	err := s.db.InTx(ctx, func(tx db.Tx) error {
		tag, err := tx.Exec(ctx, `
			with resumed as (
				delete from journal_pause
				returning 1)
			insert into journal_pause_audit (action, actor, reason)
			select 'resume', $1, $2
			from resumed`, actor, reason)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fmt.Errorf("%w: the journal is not paused", db.ErrConflict)
		}
		_, err = tx.Exec(ctx, outbox.SelectEnqueue(openEntriesSelect+` and state in ('pending', 'processing')
			and not exists (select from journal_dep d where d.entry = seq) order by seq`, "$1", "interval '0'"), contract.JournalEntry)
		tx.NotifyRelays()
		return err
	})
	if err != nil {
		return fmt.Errorf("resume the journal: %w", err)
	}
	return nil
}

// Paused returns the pause of the journal; nil if the journal is not paused.
func (s *Store) Paused(ctx context.Context) (*journal.Pause, error) {
	found, err := db.QueryAll(ctx, s.db, pgx.RowToStructByName[journal.Pause], pauseSelect)
	if err != nil {
		return nil, fmt.Errorf("read the pause of the journal: %w", err)
	}
	return firstPause(found), nil
}

// PauseDecisions lists the newest pauses and resumptions of the journal, newest first, at most `limit` of
// them.
func (s *Store) PauseDecisions(ctx context.Context, limit int) ([]journal.OperatorDecision, error) {
	found, err := db.QueryAll(ctx, s.db, pgx.RowToStructByName[journal.OperatorDecision], `
		select at, actor, action, reason
		from journal_pause_audit
		order by id desc
		limit $1`, limit)
	if err != nil {
		return nil, fmt.Errorf("list the pauses of the journal: %w", err)
	}
	return found, nil
}

// queuePause queues a query that reads the pause.
func queuePause(batch *pgx.Batch, into **journal.Pause) {
	batch.Queue(pauseSelect).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, pgx.RowToStructByName[journal.Pause])
		*into = firstPause(found)
		return err
	})
}

func firstPause(found []journal.Pause) *journal.Pause {
	if len(found) == 0 {
		return nil
	}
	return &found[0]
}
