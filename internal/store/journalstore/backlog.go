package journalstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/store/outbox"
)

// ClaimBacklog takes up to limit entries for sending that have gathered while the controller was away, for as long as
// Hold, the oldest first: those that wait for nobody, and whose last attempt met no controller or which waited until
// then for one before them. None that an attempt was made at since that moment is taken, and none that was recorded just
// now, whose workflow is about to look. They go along with the carrier's workflow; their own look again when Hold is over.
func (s *Store) ClaimBacklog(ctx context.Context, since Timestamp, limit int, carrier int64) (takes []journal.ClaimResult, err error) {
	err = s.db.InBatch(ctx, func(batch *pgx.Batch) {
		batch.Queue(`
			with free as (
				select seq as n
				from journal_entry e
				where finished_at is null and state = 'pending' and (away or retry_at is null)
					and looked_at < $1::text::timestamptz and created_at < clock_timestamp() - $4::interval
					and not exists (select from journal_dep d where d.entry = e.seq)
				order by seq
				limit $2
				for no key update skip locked),
			postponed as (`+outbox.SelectPostpone(openEntriesSelect+` and seq in (select n from free) order by seq`, "$6", "$3::interval")+`)
			update journal_entry
			set state = 'processing', attempt = attempt + 1, taken_at = clock_timestamp(), looked_at = clock_timestamp(),
				retry_at = clock_timestamp() + $3::interval, carrier = $5
			from free
			where seq = free.n
			returning unsure, `+EntryColumns, since, limit, ClaimDuration, wakeDelay, carrier, contract.JournalEntry,
		).Query(func(rows pgx.Rows) (err error) {
			takes, err = pgx.CollectRows(rows, scanClaim)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("take waiting journal entries: %w", err)
	}
	slices.SortFunc(takes, func(a, b journal.ClaimResult) int { return cmp.Compare(a.Entry.Seq, b.Entry.Seq) })
	return takes, nil
}
