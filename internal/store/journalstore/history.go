package journalstore

import (
	"context"
	"fmt"
	"time"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// Analysis describes the durations of completed entries, from recording to completion, in seconds.
type Analysis struct {
	Entries  int // number of analyzed entries
	Average  float64
	P50, P90 float64
	P99      float64
	P999     float64
	Attempts float64 // average number of attempts per entry
	Slowest  []journal.Entry
}

// Analyze reads the newest entries, at most `last` of them, and analyzes the completed ones. The result lists
// the slowest entries, at most `slowest` of them.
func (s *Store) Analyze(ctx context.Context, last, slowest int) (Analysis, error) {
	const newest = `
		with newest as (
			select *
			from (select * from journal_entry order by seq desc limit $1) as n
			where n.finished_at is not null)`
	var a Analysis
	var at []float64
	err := s.db.QueryRow(ctx, newest+`,
		took as (
			select extract(epoch from finished_at - created_at)::float8 as seconds, attempt
			from newest)
		select count(*), coalesce(avg(seconds), 0),
			coalesce(percentile_cont(array[0.5, 0.9, 0.99, 0.999]) within group (order by seconds), array[0, 0, 0, 0]), coalesce(avg(attempt), 0)::float8
		from took`, last).Scan(&a.Entries, &a.Average, &at, &a.Attempts)
	if err != nil {
		return a, fmt.Errorf("analyze the journal: %w", err)
	}
	a.P50, a.P90, a.P99, a.P999 = at[0], at[1], at[2], at[3]
	a.Slowest, err = db.QueryAll(ctx, s.db, ScanEntry, newest+`
		select `+EntryColumns+`
		from newest
		order by finished_at - created_at desc, seq
		limit $2`, last, slowest)
	if err != nil {
		return a, fmt.Errorf("analyze the journal: %w", err)
	}
	return a, nil
}

// TrimJournal deletes completed entries older than age, and the decisions about these entries. TrimJournal
// examines at most `limit` entries with numbers above `after`. It returns the number after which the next
// call must continue (0 if no entry that is old enough is left to examine), and how many entries it has
// deleted. TrimJournal keeps an entry whose workflow has a note, because that workflow must still read the
// entry. TrimJournal reads entries in the order of their numbers, because an index on the age would slow down
// every insert.
func (s *Store) TrimJournal(
	ctx context.Context,
	age time.Duration,
	after int64,
	limit int,
) (next, deleted int64, err error) {
	err = s.db.QueryRow(ctx, `
		with batch as (
			select seq, finished_at, created_at
			from journal_entry
			where seq > $2
			order by seq
			limit $3),
		gone as (
			delete from journal_entry
			where seq in (select seq from batch where finished_at < clock_timestamp() - $1::interval)
				and not `+outbox.Exists("$4 || seq")+`
			returning 1)
		select coalesce((select max(seq) from batch having min(created_at) < clock_timestamp() - $1::interval), 0),
			(select count(*) from gone)`, age, after, limit, contract.JournalID("")).Scan(&next, &deleted)
	if err != nil {
		return 0, 0, fmt.Errorf("trim the journal: %w", err)
	}
	return next, deleted, nil
}

// JournalState is the number and age of the open entries.
type JournalState struct {
	Open   map[journal.State]int64 // pending, processing and failed entries
	Oldest time.Duration           // age of the oldest open entry that has not failed
}

// JournalState counts the open entries.
func (s *Store) JournalState(ctx context.Context) (JournalState, error) {
	j := JournalState{
		Open: map[journal.State]int64{journal.Pending: 0, journal.Processing: 0, journal.Failed: 0},
	}
	rows, err := s.db.Query(ctx, `
		select state, count(*), clock_timestamp() - min(created_at)
		from journal_entry
		where finished_at is null
		group by state`)
	if err != nil {
		return j, fmt.Errorf("count journal entries: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var state journal.State
		var n int64
		var age time.Duration
		if err := rows.Scan(&state, &n, &age); err != nil {
			return j, err
		}
		if j.Open[state] = n; state != journal.Failed {
			j.Oldest = max(j.Oldest, age)
		}
	}
	return j, rows.Err()
}
