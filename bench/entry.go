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
	"berth/internal/odl/odltest"
)

// queryUnmirrored lists the objects with journal entries that are not finished.
const queryUnmirrored = `
	select object_id
	from journal_entry
	where object_type = any('{network,subnet,port}') and object_id = any($1) and finished_at is null`

// deferNotes delays every new note (outbox row) for a workflow type by a day, so that workflows of this type
// do not run while bench measures workflows of another type.
func (s *stack) deferNotes(ctx context.Context, workflow string) error {
	_, err := s.rows.Exec(ctx, `
		create or replace function bench_defer() returns trigger language plpgsql
			as 'begin new.due_at := new.due_at + interval ''1 day''; return new; end';
		create trigger bench_defer before insert on note
			for each row when (new.workflow = '`+workflow+`') execute function bench_defer()`)
	return err
}

// releaseNotes ends the effect of deferNotes and makes the deferred notes due now.
func (s *stack) releaseNotes(ctx context.Context, workflow string) error {
	_, err := s.rows.Exec(ctx, `
		drop trigger bench_defer on note;
		update note set due_at = now() where due_at > now() + interval '1 hour' and workflow = '`+workflow+`'`)
	return err
}

// deleteDeferredNotes ends the effect of deferNotes and deletes the deferred notes.
func (s *stack) deleteDeferredNotes(ctx context.Context, workflow string) error {
	_, err := s.rows.Exec(ctx, `
		drop trigger bench_defer on note;
		delete from note where workflow = '`+workflow+`'`)
	return err
}

// createFunc is a function that creates a network, subnet or port and returns the ID of the new object.
type createFunc func(ctx context.Context, kind string, with attributes) (id string, err error)

// openEntries measures journal entries, from the POST request that creates an object until the object's
// journal entry is completed. The function `createObjects` creates the objects of one operation; the
// parameter `delay` is the time that the OpenDaylight stub waits before each answer.
func openEntries(
	createObjects func(context.Context, createFunc) ([]string, error),
	delay time.Duration,
) func(context.Context, *stack) (*subject, error) {
	return func(ctx context.Context, s *stack) (*subject, error) {
		mirrored := newRowWatcher(ctx, s.rows, pollInterval, queryUnmirrored, s.fail)
		var created recent[string]
		op := func(ctx context.Context, _ int) (int, error) {
			ids, err := createObjects(ctx, s.api.create)
			if err != nil {
				return 0, err
			}
			for _, id := range ids {
				created.add(id)
			}
			return len(ids), mirrored.await(ctx, ids...)
		}
		return &subject{
			setUp: func(ctx context.Context) error {
				return errors.Join(s.deferNotes(ctx, contract.Port), delayAnswers(ctx, s.stubs.ODL, delay))
			},
			op: op,
			tearDown: func(ctx context.Context) error {
				if err := errors.Join(clearFaults(ctx, s.stubs.ODL), s.awaitMirrored(ctx)); err != nil {
					return err
				}
				return s.deleteDeferredNotes(ctx, contract.Port)
			},
			details: func(ctx context.Context) ([]detail, error) { return s.entryDetails(ctx, &created, op) },
		}, nil
	}
}

// entryDetails returns what the journal entries of the newest objects cost in Temporal (workflow tasks and
// history events). entryDetails also returns the number of SQL statements of an operation: it runs one
// further operation for each client and counts the statements.
func (s *stack) entryDetails(ctx context.Context, created *recent[string], op operation) ([]detail, error) {
	entries, err := s.entryWorkflows(ctx, created.last)
	if err != nil {
		return nil, err
	}
	details, err := historyDetails(ctx, s.temporal, "each entry", entries)
	if err != nil {
		return nil, err
	}
	if err := s.deferNotes(ctx, contract.Port); err != nil {
		return nil, err
	}
	statements, err := s.countStatements(ctx, "each entry",
		func(ctx context.Context) (int, error) { return s.runEachClient(ctx, op) })
	if err != nil {
		return nil, err
	}
	return append(details, statements...), s.deleteDeferredNotes(ctx, contract.Port)
}

// runEachClient runs an operation once for each client, concurrently, and returns the sum of the counts.
func (s *stack) runEachClient(ctx context.Context, op operation) (int, error) {
	var group errgroup.Group
	var total atomic.Int64
	for client := range s.clients {
		group.Go(func() error {
			n, err := op(ctx, client)
			total.Add(int64(n))
			return err
		})
	}
	err := group.Wait()
	return int(total.Load()), err
}

// createNetwork creates a network. The journal entry of the new network depends on no other journal entry.
func createNetwork(ctx context.Context, create createFunc) ([]string, error) {
	network, err := create(ctx, "network", attributes{"name": "bench"})
	return []string{network}, err
}

// portsPerNetwork is the number of ports that createNetworkWithPorts creates.
const portsPerNetwork = 2

// createNetworkWithPorts creates a network, a subnet and ports, without a pause between the requests. The
// journal entry of the subnet depends on the entry of the network; the journal entry of a port depends on the
// entries of the network and the subnet.
func createNetworkWithPorts(ctx context.Context, create createFunc) ([]string, error) {
	network, err := create(ctx, "network", attributes{"name": "bench"})
	if err != nil {
		return nil, err
	}
	subnet, err := create(ctx, "subnet", attributes{
		"network_id":  network,
		"ip_version":  4,
		"cidr":        "10.0.0.0/24",
		"enable_dhcp": false,
	})
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

// entryWorkflows returns the IDs of the workflows that process the journal entries of the given objects.
func (s *stack) entryWorkflows(ctx context.Context, objects []string) ([]string, error) {
	rows, err := s.rows.Query(ctx,
		`select seq::text from journal_entry where object_id = any($1) order by seq`, objects)
	if err != nil {
		return nil, err
	}
	workflows, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for i := range workflows {
		workflows[i] = contract.JournalID(workflows[i])
	}
	return workflows, err
}

// awaitMirrored waits until all journal entries are finished and then checks the controller's objects.
func (s *stack) awaitMirrored(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTimeout, errTimeout)
	defer cancel()
	for {
		var left int
		var example *string
		err := s.rows.QueryRow(ctx, `
			select count(*), min(concat('entry ', seq, ' is ', state, ': ', last_error))
			from journal_entry
			where finished_at is null`).Scan(&left, &example)
		if err != nil {
			return fmt.Errorf("count unfinished journal entries: %w", err)
		}
		if left == 0 {
			return s.checkMirror(ctx)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%d journal entries are unfinished: %s", left, *example)
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// checkMirror compares the number of objects at the controller with the number of journal entries that create
// an object.
func (s *stack) checkMirror(ctx context.Context) error {
	objects, err := s.controllerObjects(ctx)
	if err != nil {
		return err
	}
	var created int
	if err := s.rows.QueryRow(ctx, `
		select count(*)
		from journal_entry e
		where e.operation = 'create' and not exists (
			select from journal_entry d where d.object_id = e.object_id and d.object_type = e.object_type and d.operation = 'delete')`).Scan(&created); err != nil {
		return err
	}
	return objects.check(created)
}

// controllerObjects holds the objects of the OpenDaylight stub, and the requests that the stub received in a
// wrong order.
type controllerObjects struct {
	Objects    []odltest.Record `json:"objects"`
	Violations []string         `json:"violations"`
}

// check returns an error if the OpenDaylight stub does not have exactly `created` objects. check also returns
// an error if the stub did not receive exactly one create request for each object, or if it received the
// create request of an object before the create requests of the object's parents.
func (c controllerObjects) check(created int) error {
	if len(c.Violations) > 0 {
		return fmt.Errorf("the controller received requests out of order: %s",
			strings.Join(c.Violations, "; "))
	}
	present := 0
	for _, o := range c.Objects {
		if o.Object != nil {
			present++
		}
		if o.Creates != 1 {
			return fmt.Errorf("the controller created %s %s %d times, want once", o.Type, o.ID, o.Creates)
		}
	}
	if created != present {
		return fmt.Errorf("the database has %d objects, the controller has %d", created, present)
	}
	return nil
}
