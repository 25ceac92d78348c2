package figure

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"berth/bench/dataset"
	"berth/bench/harness"
	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store"
	"berth/internal/store/journalstore"
)

// openJournalStore measures only the SQL transactions of a journal entry: the creation of the entry together
// with its object, the beginning of the attempt, and the outcome of the attempt. During the measurement the
// database also contains n completed journal entries.
func openJournalStore(n int) func(context.Context, *harness.Stack) (*Subject, error) {
	return func(ctx context.Context, s *harness.Stack) (*Subject, error) {
		database, err := s.CreateDatabase(ctx, fmt.Sprint("journal_", n))
		if err != nil {
			return nil, err
		}
		c, err := pgx.Connect(ctx, database)
		if err != nil {
			return nil, err
		}
		s.OnClose(func() { _ = c.Close(context.WithoutCancel(ctx)) })
		for _, sql := range []string{dataset.CompletedEntries(s.ScaleRows(n)), `vacuum analyze`, `checkpoint`} {
			if _, err := c.Exec(ctx, sql); err != nil {
				return nil, fmt.Errorf("insert completed entries: %w", err)
			}
		}
		rows, err := store.Open(ctx, database, store.Config{})
		if err != nil {
			return nil, err
		}
		closeRows := sync.OnceFunc(rows.Close)
		s.OnClose(closeRows)
		before, err := sequentialScans(ctx, c)
		return &Subject{
			op: func(ctx context.Context, _ int) (int, error) { return 1, completeEntry(ctx, rows) },
			Details: func(ctx context.Context) ([]harness.Detail, error) {
				// PostgreSQL backends (server processes of connections) write their statistics when they end
				closeRows()
				after, err := sequentialScans(ctx, c)
				return []harness.Detail{{Name: "sequential scans of the journal", Value: float64(after - before)}}, err
			},
		}, err
	}
}

// sequentialScans returns the number of sequential scans of the journal's tables.
func sequentialScans(ctx context.Context, c *pgx.Conn) (n int, err error) {
	err = c.QueryRow(ctx, `select sum(seq_scan) from pg_stat_user_tables where relname in ('journal_entry', 'journal_dep')`).
		Scan(&n)
	return n, err
}

// completeEntry creates a network, and makes the same database calls as the workflow of the network's journal
// entry would make.
func completeEntry(ctx context.Context, rows *store.Store) error {
	project, name := "bench", "bench"
	made, err := rows.Network.CreateNetworks(ctx, []network.NetworkChange{{Project: &project, Name: &name}})
	if err != nil {
		return err
	}
	entries, err := rows.Journal.JournalEntries(ctx,
		journalstore.EntryFilter{Object: made[0].ID.String(), Limit: 1})
	if err != nil {
		return err
	}
	t, err := rows.Journal.ClaimEntry(ctx, entries[0].Seq)
	if err != nil {
		return err
	}
	e, err := rows.Journal.SaveOutcome(ctx, t.Entry.Seq, t.Entry.Attempt,
		journal.Outcome{Kind: journal.OutcomeDone})
	if err == nil && e.State != journal.Completed {
		err = fmt.Errorf("entry %d is %s", e.Seq, e.State)
	}
	return err
}
