package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
)

// unfinished lists objects with journal entries that are not mirrored yet.
const unfinished = `
	select object_id
	from journal_entry
	where object_type = any('{network,subnet,port}') and object_id = any($1) and finished_at is null`

// hold puts off the notes for workflows of a type while another type is measured by itself.
func (s *stack) hold(ctx context.Context, workflow string) error {
	_, err := s.rows.Exec(ctx, `
		create or replace function bench_hold() returns trigger language plpgsql
			as 'begin new.due_at := new.due_at + interval ''1 day''; return new; end';
		create trigger bench_hold before insert on note
			for each row when (new.workflow = '`+workflow+`') execute function bench_hold()`)
	return err
}

// release lets the notes that were put off come to their workflows.
func (s *stack) release(ctx context.Context, workflow string) error {
	_, err := s.rows.Exec(ctx, `
		drop trigger bench_hold on note;
		update note set due_at = now() where due_at > now() + interval '1 hour' and workflow = '`+workflow+`'`)
	return err
}

// portsPerNetwork gives a client's share of four entries: a network, its subnet and the ports on it, each of
// which waits for those before it.
const portsPerNetwork = 2

func openEntries(ctx context.Context, s *stack) (*subject, error) {
	done := watch(ctx, s.rows, lookEvery, unfinished, s.fail)
	var made recent[string]
	return &subject{
		before: func(ctx context.Context) error { return s.hold(ctx, contract.Port) },
		op: func(ctx context.Context, _ int) (int, error) {
			ids, err := s.plantNetwork(ctx)
			if err != nil {
				return 0, err
			}
			for _, id := range ids {
				made.add(id)
			}
			return len(ids), done.await(ctx, ids...)
		},
		after: func(ctx context.Context) error {
			if err := s.settled(ctx); err != nil {
				return err
			}
			_, err := s.rows.Exec(ctx, `
				drop trigger bench_hold on note;
				delete from note where workflow = 'Port'`) // the ports' own workflows are not missed
			return err
		},
		close: func(ctx context.Context) ([]detail, error) {
			entries, err := s.entriesOf(ctx, made.last)
			if err != nil {
				return nil, err
			}
			return histories(ctx, s.temporal, "each entry", entries)
		},
	}, nil
}

// plantNetwork makes a network, a subnet and ports, and does not wait between them.
func (s *stack) plantNetwork(ctx context.Context) ([]string, error) {
	network, err := s.api.create(ctx, "network", attributes{"name": "bench"})
	if err != nil {
		return nil, err
	}
	subnet, err := s.api.create(ctx, "subnet", attributes{"network_id": network, "ip_version": 4, "cidr": "10.0.0.0/24", "enable_dhcp": false})
	if err != nil {
		return nil, err
	}
	ids := []string{network, subnet}
	for range portsPerNetwork {
		port, err := s.api.create(ctx, "port", attributes{"network_id": network})
		if err != nil {
			return nil, err
		}
		ids = append(ids, port)
	}
	return ids, nil
}

// entriesOf are the workflows of the entries of those objects.
func (s *stack) entriesOf(ctx context.Context, ids []string) ([]string, error) {
	rows, err := s.rows.Query(ctx, `select seq::text from journal_entry where object_id = any($1) order by seq`, ids)
	if err != nil {
		return nil, err
	}
	workflows, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for i := range workflows {
		workflows[i] = contract.JournalID(workflows[i])
	}
	return workflows, err
}

// settled waits until the journal is empty and then asks the controller: everything that was made must be there,
// once, and must have come in order.
func (s *stack) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errLate)
	defer cancel()
	for {
		var left int
		var example *string
		err := s.rows.QueryRow(ctx, `
			select count(*), min(concat('entry ', seq, ' is ', state, ': ', last_error))
			from journal_entry
			where finished_at is null`).Scan(&left, &example)
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		if left == 0 {
			return s.complete(ctx)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%d journal entries are not mirrored: %s", left, *example)
		}
		pause(ctx, 20*time.Millisecond)
	}
}

func (s *stack) complete(ctx context.Context) error {
	m, err := s.mirrored(ctx)
	if err != nil {
		return err
	}
	var made int
	if err := s.rows.QueryRow(ctx, `
		select count(*)
		from journal_entry e
		where e.operation = 'create' and not exists (
			select from journal_entry d where d.object_id = e.object_id and d.object_type = e.object_type and d.operation = 'delete')`).Scan(&made); err != nil {
		return err
	}
	return m.check(made)
}

// check tells whether the controller has that many objects besides deleted ones, each created once and in order.
func (m mirrored) check(made int) error {
	if len(m.Violations) > 0 {
		return fmt.Errorf("the controller saw things out of order: %s", strings.Join(m.Violations, "; "))
	}
	has := 0
	for _, o := range m.Objects {
		if o.Object != nil {
			has++
		}
		if o.Creates != 1 {
			return fmt.Errorf("the controller created %s %s %d times", o.Type, o.ID, o.Creates)
		}
	}
	if made != has {
		return fmt.Errorf("%d objects were created and the controller has %d", made, has)
	}
	return nil
}
