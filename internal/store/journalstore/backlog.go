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

// ClaimBacklog claims, for ClaimDuration, up to `limit` of the entries that were recorded while the
// controller was unreachable, oldest first. An entry belongs to this backlog if it has no blockers, and if no
// attempt has sent it yet or its last attempt did not reach the controller. An entry that ClaimBacklog
// claimed earlier belongs to the backlog again when this claim has expired. ClaimBacklog skips entries that a
// workflow has examined at or after `since`, and entries that were recorded less than wakeDelay ago. While
// the journal is paused, ClaimBacklog claims nothing. The parameter sender is the number of the entry whose
// workflow sends the claimed entries. The claimed entries' own workflows wake up after ClaimDuration.
func (s *Store) ClaimBacklog(
	ctx context.Context,
	since Timestamp,
	limit int,
	sender int64,
) (claimed []journal.ClaimResult, err error) {
	err = s.db.InBatch(ctx, func(batch *pgx.Batch) {
		batch.Queue(`
			with free as (
				select seq as n, looked_at as looked, state as was
				from journal_entry e
				where finished_at is null
					and (state = 'pending' and (away or retry_at is null) or state = 'processing' and retry_at <= clock_timestamp())
					and looked_at < $1::text::timestamptz and created_at < clock_timestamp() - $4::interval
					and not exists (select from journal_dep d where d.entry = e.seq)
					and `+isNotPaused+`
				order by seq
				limit $2
				for no key update skip locked),
			postponed as (`+outbox.SelectPostpone(openEntriesSelect+` and seq in (select n from free) order by seq`, "$6", "$3::interval")+`)
			update journal_entry
			set state = 'processing', attempt = attempt + 1, taken_at = clock_timestamp(), looked_at = clock_timestamp(),
				retry_at = clock_timestamp() + $3::interval, sent_by = $5
			from free
			where seq = free.n
			returning free.was = 'processing' or maybe_applied as must_read, clock_timestamp() - free.looked as since_last, `+EntryColumns, since, limit, s.claimDuration, wakeDelay, sender, contract.JournalEntry,
		).Query(func(rows pgx.Rows) (err error) {
			claimed, err = pgx.CollectRows(rows, scanClaim)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("claim the backlog of journal entries: %w", err)
	}
	bySeq := func(a, b journal.ClaimResult) int { return cmp.Compare(a.Entry.Seq, b.Entry.Seq) }
	slices.SortFunc(claimed, bySeq)
	return claimed, nil
}

// HasClaimedBacklog reports whether an entry is claimed by ClaimBacklog and has no outcome yet. If the
// process that claimed it has died, or could not save the outcome, ClaimBacklog claims the entry again after
// ClaimDuration.
func (s *Store) HasClaimedBacklog(ctx context.Context) (claimed bool, err error) {
	err = s.db.QueryRow(ctx, `
		select exists (
			select from journal_entry
			where finished_at is null and state = 'processing' and retry_at is not null)`).Scan(&claimed)
	if err != nil {
		return false, fmt.Errorf("look for claimed entries of the journal backlog: %w", err)
	}
	return claimed, nil
}
