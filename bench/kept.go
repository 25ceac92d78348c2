package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store"
)

// kept are completed entries that were not deleted yet, in a database of their own.
func kept(n int) string {
	return fmt.Sprintf(`
		insert into journal_entry (object_type, object_id, operation, data, parents, state, attempt, project, name, taken_at, finished_at)
		select 'port', gen_random_uuid()::text, 'create', jsonb_build_object('name', 'port-' || n, 'description', repeat('kept ', 50)),
			array['network/' || gen_random_uuid()], 'completed', 1, 'bench', 'port-' || n, now(), now()
		from generate_series(1, %d) as n`, n)
}

// openKept measures what an entry costs the database alone: the change that is recorded with it, its taking and its
// settling, beside so many completed entries.
func openKept(n int) func(context.Context, *stack) (*subject, error) {
	return func(ctx context.Context, s *stack) (*subject, error) {
		database, err := s.database(ctx, fmt.Sprint("kept_", n))
		if err != nil {
			return nil, err
		}
		c, err := pgx.Connect(ctx, database)
		if err != nil {
			return nil, err
		}
		for _, sql := range []string{kept(s.hosts(n)), `vacuum analyze`} {
			if _, err := c.Exec(ctx, sql); err != nil {
				return nil, fmt.Errorf("completed entries: %w", err)
			}
		}
		rows, err := store.Open(ctx, database)
		if err != nil {
			return nil, err
		}
		before, err := scans(ctx, c)
		return &subject{
			op: func(ctx context.Context, _ int) (int, error) { return 1, mirror(ctx, rows) },
			close: func(ctx context.Context) ([]detail, error) {
				rows.Close() // which makes its connections tell what they did
				after, err := scans(ctx, c)
				return []detail{{"times that the journal was read whole", float64(after - before)}}, errors.Join(err, c.Close(ctx))
			},
		}, err
	}
}

// scans is how often the journal was read from its beginning to its end.
func scans(ctx context.Context, c *pgx.Conn) (n int, err error) {
	err = c.QueryRow(ctx, `select sum(seq_scan) from pg_stat_user_tables where relname in ('journal_entry', 'journal_dep')`).Scan(&n)
	return n, err
}

// mirror makes a network and plays the workflow of its entry.
func mirror(ctx context.Context, rows *store.Store) error {
	project, name := "bench", "bench"
	made, err := rows.CreateNetworks(ctx, []network.NetworkChange{{Project: &project, Name: &name}})
	if err != nil {
		return err
	}
	entries, err := rows.JournalEntries(ctx, store.EntryFilter{Object: made[0].ID.String(), Limit: 1})
	if err != nil {
		return err
	}
	t, err := rows.TakeEntry(ctx, entries[0].Seq)
	if err != nil {
		return err
	}
	e, err := rows.SettleEntry(ctx, t.Entry.Seq, t.Entry.Attempt, journal.Outcome{Kind: journal.Done})
	if err == nil && e.State != journal.Completed {
		err = fmt.Errorf("entry %d is %s", e.Seq, e.State)
	}
	return err
}
