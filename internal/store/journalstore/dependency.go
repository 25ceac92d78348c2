package journalstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
	"berth/internal/store/db"
)

// OpenEntry is an entry that is not completed, with the numbers of the open entries for which it waits.
type OpenEntry struct {
	journal.Entry
	WaitsFor []int64
}

// maxWaitsFor is the maximum number of blockers that an OpenEntry names.
const maxWaitsFor = 10

// OpenEntries lists at most `limit` open entries with numbers above `after`, in the order of their numbers.
// Their Data is empty.
func (s *Store) OpenEntries(ctx context.Context, after int64, limit int) ([]OpenEntry, error) {
	entries, err := db.QueryAll(ctx, s.db, func(row pgx.CollectableRow) (e OpenEntry, err error) {
		err = row.Scan(
			&e.Seq,
			&e.Object.Type,
			&e.Object.ID,
			&e.Operation,
			&e.State,
			&e.Attempt,
			&e.Failures,
			&e.Project,
			&e.Name,
			&e.LastError,
			&e.CreatedAt,
			&e.TakenAt,
			&e.RetryAt,
			&e.SentBy,
			&e.WaitsFor,
		)
		return e, err
	}, `
		select seq, object_type, object_id, operation, state, attempt, failures, project, name, last_error, created_at, taken_at, retry_at, sent_by,
			array(select d.waits_for from journal_dep d where d.entry = e.seq order by d.waits_for limit $3)
		from journal_entry e
		where finished_at is null and seq > $1
		order by seq
		limit $2`, after, limit, maxWaitsFor)
	if err != nil {
		return nil, fmt.Errorf("list open journal entries: %w", err)
	}
	return entries, nil
}

// Delay is the time from the recording of an entry until its completion.
type Delay struct {
	Seq       int64
	CreatedAt time.Time
	Seconds   float64
	Open      bool // the entry is not completed, and Seconds is its age
}

// Delays returns the delays of the newest entries, at most `last` of them, in the order of their numbers.
func (s *Store) Delays(ctx context.Context, last int) ([]Delay, error) {
	delays, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[Delay], `
		select seq, created_at, extract(epoch from coalesce(finished_at, now()) - created_at)::float8, finished_at is null
		from (select seq, created_at, finished_at from journal_entry order by seq desc limit $1) as e
		order by seq`, last)
	if err != nil {
		return nil, fmt.Errorf("read the delays of journal entries: %w", err)
	}
	return delays, nil
}
