package figure

import (
	"context"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/bench/dataset"
	"berth/bench/harness"
	"berth/internal/api/placement"
	"berth/internal/devstack"
	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/store"
)

// openTransactions measures the baseline of all writes: a transaction that inserts one row and uses only the
// PostgreSQL driver.
func openTransactions(ctx context.Context, s *harness.Stack) (*Subject, error) {
	return &Subject{op: func(ctx context.Context, _ int) (int, error) {
		return 1, pgx.BeginFunc(ctx, s.Rows, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `insert into bench_row (id, value) values ($1, $2)`, uuid.New(), "bench")
			return err
		})
	}}, s.CreateBenchTable(ctx)
}

// allocationProviders is the number of providers that a single client uses in turn, as a scheduler does. Each
// round of the figure (benchmark measurement) `allocations` creates new providers, so that no provider has
// more allocations than a real host.
const allocationProviders = 256

// openAllocations measures the allocation of a new server: three resource classes of one provider, for a new
// consumer. openAllocations runs the Placement API in the process of bench. The reason is that the baseline
// (one transaction of the PostgreSQL driver) also runs in this process, and that requests to another process
// would take as much time as the API itself.
func openAllocations(ctx context.Context, s *harness.Stack) (*Subject, error) {
	rows, err := store.Open(ctx, s.Postgres.URL, store.Config{})
	if err != nil {
		return nil, err
	}
	s.OnClose(rows.Close)
	rules, err := policy.Open(policy.Options{}, placement.Policy...)
	if err != nil {
		return nil, err
	}
	server, err := devstack.Serve(
		0,
		placement.New(placement.Options{Store: rows.Inventory, Identity: identity.Noauth{}, Policy: rules}),
	)
	if err != nil {
		return nil, err
	}
	s.OnClose(server.Stop)
	next := 0
	return measureAllocations(s, harness.NewAPI(server.URL), 1, allocationProviders, func(int) int {
		next++
		return next % allocationProviders
	}), nil
}

// openAllocationsApart measures allocations by concurrent clients, each with its own provider.
// openAllocationsApart creates new providers for each round.
func openAllocationsApart(_ context.Context, s *harness.Stack) (*Subject, error) {
	return measureAllocations(s, s.API, s.Clients, s.Clients, func(client int) int { return client }), nil
}

// openAllocationsTogether measures allocations by concurrent clients that all use one provider.
func openAllocationsTogether(_ context.Context, s *harness.Stack) (*Subject, error) {
	return measureAllocations(s, s.API, s.Clients, 1, func(int) int { return 0 }), nil
}

// measureAllocations measures allocations against n providers; the parameter `provider` returns the index of
// the next provider.
func measureAllocations(
	s *harness.Stack,
	a *harness.API,
	clients, n int,
	provider func(client int) int,
) *Subject {
	connections := harness.NewHTTPConnections(a.Base, clients)
	s.OnClose(connections.Close)
	var providers []string
	return &Subject{
		setUp: func(ctx context.Context) (err error) {
			if providers, err = a.CreateProviders(ctx, n); err != nil {
				return err
			}
			return connections.Open(ctx)
		},
		op: func(_ context.Context, client int) (int, error) {
			return 1, connections.Send(
				client, http.MethodPut, "/placement/allocations/"+uuid.NewString(),
				allocationBody(providers[provider(client)]),
			)
		},
	}
}

// openAllocationsAfter measures allocations from one provider that already has n consumers. If the time of an
// allocation does not depend on what is already allocated, the rate does not depend on n.
func openAllocationsAfter(n int) func(context.Context, *harness.Stack) (*Subject, error) {
	return func(ctx context.Context, s *harness.Stack) (*Subject, error) {
		return measureOneProvider(ctx, s, dataset.OneProvider(s.ScaleRows(n)))
	}
}

// openLoggedAllocations measures allocations by a process that logs each request.
func openLoggedAllocations(ctx context.Context, s *harness.Stack) (*Subject, error) {
	d := dataset.OneProvider(0)
	d.Name, d.Settings = "one_provider_logged", []string{"BERTH_LOG_LEVEL=info"}
	return measureOneProvider(ctx, s, d)
}

// openTracedAllocations measures allocations by a process that sends a trace of each request.
func openTracedAllocations(ctx context.Context, s *harness.Stack) (*Subject, error) {
	d := dataset.OneProvider(0)
	d.Name, d.Settings = "one_provider_traced", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + s.Stubs.Traces}
	return measureOneProvider(ctx, s, d)
}

// measureOneProvider measures allocations by one client from the provider of dataset.OneProvider.
func measureOneProvider(ctx context.Context, s *harness.Stack, d harness.Dataset) (*Subject, error) {
	a, err := s.LoadDataset(ctx, d)
	if err != nil {
		return nil, err
	}
	connections := harness.NewHTTPConnections(a.Base, 1)
	s.OnClose(connections.Close)
	return &Subject{
		setUp: connections.Open,
		op: func(context.Context, int) (int, error) {
			return 1, connections.Send(0, http.MethodPut,
				"/placement/allocations/"+uuid.NewString(), allocationBody(dataset.SoleProvider))
		},
	}, nil
}

// allocationBody returns the request body that allocates resources of a provider to a new consumer.
func allocationBody(provider string) string {
	return `{"allocations":{"` + provider + `":{"resources":{"VCPU":2,"MEMORY_MB":4096,"DISK_GB":20}}},` +
		`"project_id":"bench","user_id":"bench","consumer_type":"INSTANCE","consumer_generation":null}`
}
