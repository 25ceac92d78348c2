package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

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

// forget deletes the notes that were put off, whose workflows are not missed.
func (s *stack) forget(ctx context.Context, workflow string) error {
	_, err := s.rows.Exec(ctx, `
		drop trigger bench_hold on note;
		delete from note where workflow = '`+workflow+`'`)
	return err
}

// portsPerNetwork gives a client's share of four entries: a network, its subnet and the ports on it, each of
// which waits for those before it.
const portsPerNetwork = 2

// family makes objects one after the other and returns their IDs.
type family func(ctx context.Context, create func(context.Context, string, attributes) (string, error)) ([]string, error)

// openEntries measures the journal of such families, with a controller that takes so long for each answer.
func openEntries(made family, delay time.Duration) func(context.Context, *stack) (*subject, error) {
	return func(ctx context.Context, s *stack) (*subject, error) {
		done := watch(ctx, s.rows, lookEvery, unfinished, s.fail)
		var last recent[string]
		op := func(ctx context.Context, _ int) (int, error) {
			ids, err := made(ctx, s.api.create)
			if err != nil {
				return 0, err
			}
			for _, id := range ids {
				last.add(id)
			}
			return len(ids), done.await(ctx, ids...)
		}
		return &subject{
			before: func(ctx context.Context) error {
				return errors.Join(s.hold(ctx, contract.Port), slow(ctx, s.standIns.ODL, delay))
			},
			op: op,
			after: func(ctx context.Context) error {
				if err := errors.Join(heal(ctx, s.standIns.ODL), s.settled(ctx)); err != nil {
					return err
				}
				return s.forget(ctx, contract.Port)
			},
			close: func(ctx context.Context) ([]detail, error) { return s.entryCosts(ctx, &last, op) },
		}, nil
	}
}

// entryCosts tells what was done for the entries of objects that were made last, and what more of them ask of the
// databases.
func (s *stack) entryCosts(ctx context.Context, last *recent[string], op operation) ([]detail, error) {
	entries, err := s.entriesOf(ctx, last.last)
	if err != nil {
		return nil, err
	}
	details, err := histories(ctx, s.temporal, "each entry", entries)
	if err != nil {
		return nil, err
	}
	if err := s.hold(ctx, contract.Port); err != nil {
		return nil, err
	}
	asked, err := s.statements(ctx, "each entry", func(ctx context.Context) (int, error) { return s.together(ctx, op) })
	if err != nil {
		return nil, err
	}
	return append(details, asked...), s.forget(ctx, contract.Port)
}

// together lets every client do it once.
func (s *stack) together(ctx context.Context, op operation) (int, error) {
	var group errgroup.Group
	var all atomic.Int64
	for client := range s.clients {
		group.Go(func() error {
			n, err := op(ctx, client)
			all.Add(int64(n))
			return err
		})
	}
	err := group.Wait()
	return int(all.Load()), err
}

// loneNetwork makes a network, whose entry waits for nothing.
func loneNetwork(ctx context.Context, create func(context.Context, string, attributes) (string, error)) ([]string, error) {
	network, err := create(ctx, "network", attributes{"name": "bench"})
	return []string{network}, err
}

// plantNetwork makes a network, a subnet and ports, and does not wait between them.
func plantNetwork(ctx context.Context, create func(context.Context, string, attributes) (string, error)) ([]string, error) {
	network, err := create(ctx, "network", attributes{"name": "bench"})
	if err != nil {
		return nil, err
	}
	subnet, err := create(ctx, "subnet", attributes{"network_id": network, "ip_version": 4, "cidr": "10.0.0.0/24", "enable_dhcp": false})
	if err != nil {
		return nil, err
	}
	ids := []string{network, subnet}
	for range portsPerNetwork {
		port, err := create(ctx, "port", attributes{"network_id": network})
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
