package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/store/db"
)

// Refuse records that Temporal has refused a note for a reason that concerns only this note, increments the
// note's number of refusals, and postpones the note. If setAside is true, the note is set aside: it no longer
// counts in Backlog until it is delivered. If a nudge was merged into the note during the delivery, Refuse
// postpones the note for at most one second, because Temporal may accept the changed note.
func (s *Store) Refuse(
	ctx context.Context,
	n contract.Note,
	setAside bool,
	after time.Duration,
	reason string,
) error {
	const soon = time.Second
	_, err := s.db.Exec(ctx, `
		update note
		set refusals = refusals + 1, last_error = $5, due_at = now() + case when version = $2 then $4::interval else least($4::interval, $6::interval) end,
			set_aside_at = case when $3 then coalesce(set_aside_at, now()) else set_aside_at end
		where workflow_id = $1`, n.ID, n.Version, setAside, after, reason, soon)
	if err != nil {
		return fmt.Errorf("count the refusal of a note: %w", err)
	}
	return nil
}

// NoteState describes a note that is not delivered yet.
type NoteState struct {
	WorkflowID string
	Workflow   string // workflow type
	Attempts   int
	LastError  string
	CreatedAt  time.Time
	DueAt      time.Time  // time of the next attempt; a running attempt ends before this time
	SetAsideAt *time.Time // nil: the note is not set aside
}

// Notes lists at most `limit` undelivered notes, oldest first. If setAside points to true, Notes lists only
// the notes that are set aside; if it points to false, only the notes that are not set aside.
func (s *Store) Notes(ctx context.Context, setAside *bool, limit int) ([]NoteState, error) {
	notes, err := db.QueryAll(ctx, s.db, pgx.RowToStructByName[NoteState], `
		select workflow_id, workflow, attempts, last_error, created_at, due_at, set_aside_at
		from note
		where $1::boolean is null or (set_aside_at is not null) = $1
		order by created_at, workflow_id
		limit $2`, setAside, limit)
	if err != nil {
		return nil, fmt.Errorf("list notes: %w", err)
	}
	return notes, nil
}

// CountSetAside returns the number of notes that are set aside.
func (s *Store) CountSetAside(ctx context.Context) (n int64, err error) {
	if err = s.db.QueryRow(ctx, `select count(*) from note where set_aside_at is not null`).Scan(&n); err != nil {
		return 0, fmt.Errorf("count the notes that are set aside: %w", err)
	}
	return n, nil
}

// RetrySetAside makes notes that are set aside due now: those with the workflow IDs in `only`, or all of them
// if `only` is nil. RetrySetAside returns the number of these notes.
func (s *Store) RetrySetAside(ctx context.Context, only []string) (int64, error) {
	tag, err := s.db.ExecInTx(ctx, `
		update note
		set due_at = now()
		where set_aside_at is not null and ($1::text[] is null or workflow_id = any($1))`, only)
	if err != nil {
		return 0, fmt.Errorf("retry the notes that are set aside: %w", err)
	}
	if tag.RowsAffected() > 0 {
		s.db.NotifyRelays()
	}
	return tag.RowsAffected(), nil
}
