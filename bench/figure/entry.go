package figure

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/bench/harness"
	"berth/internal/contract"
)

// queryUnmirrored lists the objects with journal entries that are not finished.
const queryUnmirrored = `
	select object_id
	from journal_entry
	where object_type = any('{network,subnet,port}') and object_id = any($1) and finished_at is null`

// createFunc is a function that creates a network, subnet or port and returns the ID of the new object.
type createFunc func(ctx context.Context, kind string, with harness.Attributes) (id string, err error)

// openEntries measures journal entries, from the POST request that creates an object until the object's
// journal entry is completed. The function `createObjects` creates the objects of one operation; the
// parameter `delay` is the time that the OpenDaylight stub waits before each answer.
func openEntries(
	createObjects func(context.Context, createFunc) ([]string, error),
	delay time.Duration,
) func(context.Context, *harness.Stack) (*Subject, error) {
	return func(ctx context.Context, s *harness.Stack) (*Subject, error) {
		mirrored := harness.NewRowWatcher(ctx, s.Rows, harness.PollInterval, queryUnmirrored, s.Fail)
		var created harness.Recent[string]
		op := func(ctx context.Context, _ int) (int, error) {
			ids, err := createObjects(ctx, s.API.Create)
			if err != nil {
				return 0, err
			}
			for _, id := range ids {
				created.Add(id)
			}
			return len(ids), mirrored.Await(ctx, ids...)
		}
		return &Subject{
			setUp: func(ctx context.Context) error {
				return errors.Join(s.DeferNotes(ctx, contract.Port), harness.DelayAnswers(ctx, s.Stubs.ODL, delay))
			},
			op: op,
			tearDown: func(ctx context.Context) error {
				if err := errors.Join(harness.ClearFaults(ctx, s.Stubs.ODL), s.AwaitMirrored(ctx)); err != nil {
					return err
				}
				return s.DeleteDeferredNotes(ctx, contract.Port)
			},
			Details: func(ctx context.Context) ([]harness.Detail, error) { return entryDetails(ctx, s, &created, op) },
		}, nil
	}
}

// entryDetails returns what the journal entries of the newest objects cost in Temporal (workflow tasks and
// history events). entryDetails also returns the number of SQL statements of an operation: it runs one
// further operation for each client and counts the statements.
func entryDetails(
	ctx context.Context,
	s *harness.Stack,
	created *harness.Recent[string],
	op harness.Operation,
) ([]harness.Detail, error) {
	entries, err := entryWorkflows(ctx, s, created.Last)
	if err != nil {
		return nil, err
	}
	details, err := harness.HistoryDetails(ctx, s.Temporal, "each entry", entries)
	if err != nil {
		return nil, err
	}
	if err := s.DeferNotes(ctx, contract.Port); err != nil {
		return nil, err
	}
	statements, err := s.CountStatements(ctx, "each entry",
		func(ctx context.Context) (int, error) { return s.RunEachClient(ctx, op) })
	if err != nil {
		return nil, err
	}
	return append(details, statements...), s.DeleteDeferredNotes(ctx, contract.Port)
}

// createNetwork creates a network. The journal entry of the new network depends on no other journal entry.
func createNetwork(ctx context.Context, create createFunc) ([]string, error) {
	network, err := create(ctx, "network", harness.Attributes{"name": "bench"})
	return []string{network}, err
}

// portsPerNetwork is the number of ports that createNetworkWithPorts creates.
const portsPerNetwork = 2

// createNetworkWithPorts creates a network, a subnet and ports, without a pause between the requests. The
// journal entry of the subnet depends on the entry of the network; the journal entry of a port depends on the
// entries of the network and the subnet.
func createNetworkWithPorts(ctx context.Context, create createFunc) ([]string, error) {
	network, err := create(ctx, "network", harness.Attributes{"name": "bench"})
	if err != nil {
		return nil, err
	}
	subnet, err := create(ctx, "subnet", harness.Attributes{
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
		port, err := create(ctx, "port", harness.Attributes{"network_id": network})
		if err != nil {
			return nil, err
		}
		ids = append(ids, port)
	}
	return ids, nil
}

// entryWorkflows returns the IDs of the workflows that process the journal entries of the given objects.
func entryWorkflows(ctx context.Context, s *harness.Stack, objects []string) ([]string, error) {
	rows, err := s.Rows.Query(ctx,
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
