package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
)

// queryUnmirrored lists the objects with journal entries that are not finished.
const queryUnmirrored = `
	select object_id
	from journal_entry
	where object_type = any('{network,subnet,port}') and object_id = any($1) and finished_at is null`

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
			details: func(ctx context.Context) ([]detail, error) { return entryDetails(ctx, s, &created, op) },
		}, nil
	}
}

// entryDetails returns what the journal entries of the newest objects cost in Temporal (workflow tasks and
// history events). entryDetails also returns the number of SQL statements of an operation: it runs one
// further operation for each client and counts the statements.
func entryDetails(ctx context.Context, s *stack, created *recent[string], op operation) ([]detail, error) {
	entries, err := entryWorkflows(ctx, s, created.last)
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
func entryWorkflows(ctx context.Context, s *stack, objects []string) ([]string, error) {
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
