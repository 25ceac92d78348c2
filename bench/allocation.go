package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/api/placement"
	"berth/internal/devstack"
	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/store"
)

// openTransactions measures the peer of everything that is a write: a transaction of one row with the driver alone,
// which is begin, the insertion and commit.
func openTransactions(ctx context.Context, s *stack) (*subject, error) {
	_, err := s.rows.Exec(ctx, `
		create table if not exists bench_row (
			id    uuid primary key,
			value text not null)`)
	return &subject{op: func(ctx context.Context, _ int) (int, error) {
		return 1, pgx.BeginFunc(ctx, s.rows, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `insert into bench_row (id, value) values ($1, $2)`, uuid.New(), "bench")
			return err
		})
	}}, err
}

// hosts are the providers over which a single client spreads its allocations, as a scheduler does: so many, and new
// ones each round, that none has more servers than a real one.
const hosts = 256

// openAllocations measures what a compute service writes for a new server: three resources of one provider, for a
// consumer that must not exist yet. The client comes to the providers in turn. The API is served by this process,
// because the driver that it is compared with is in it too: a process more would cost one client as much as the API.
func openAllocations(ctx context.Context, s *stack) (*subject, error) {
	rows, err := store.Open(ctx, s.postgres.URL)
	if err != nil {
		return nil, err
	}
	rules, err := policy.Open(policy.Options{}, placement.Policy...)
	if err != nil {
		return nil, err
	}
	server, err := devstack.Serve(0, placement.New(placement.Options{Store: rows, Identity: identity.Noauth{}, Policy: rules}))
	if err != nil {
		return nil, err
	}
	next := 0
	made := allocationsOn(newAPI(server.URL), 1, hosts, func(int) int { next++; return next % hosts })
	made.close = func(context.Context) ([]detail, error) {
		server.Stop()
		rows.Close()
		return nil, nil
	}
	return made, nil
}

// openAllocationsApart measures the same with a provider for each client, new ones each round.
func openAllocationsApart(_ context.Context, s *stack) (*subject, error) {
	return allocationsOn(s.api, s.clients, s.clients, func(client int) int { return client }), nil
}

// openAllocationsTogether measures the same with one provider for all clients.
func openAllocationsTogether(_ context.Context, s *stack) (*subject, error) {
	return allocationsOn(s.api, s.clients, 1, func(int) int { return 0 }), nil
}

// allocationsOn measures the allocations that clients make of n providers; of which one tells.
func allocationsOn(a *api, clients, n int, of func(client int) int) *subject {
	wires := newWires(a.base, clients)
	var providers []string
	return &subject{
		before: func(ctx context.Context) (err error) {
			if providers, err = a.providers(ctx, n); err != nil {
				return err
			}
			return wires.open(ctx)
		},
		op: func(_ context.Context, client int) (int, error) {
			return 1, wires.send(client, http.MethodPut, "/placement/allocations/"+uuid.NewString(), allocation(providers[of(client)]))
		},
		close: wires.end,
	}
}

// providers makes providers with plenty of everything.
func (a *api) providers(ctx context.Context, n int) ([]string, error) {
	all := make([]string, n)
	for i := range all {
		all[i] = uuid.NewString()
		err := a.post(ctx, "/placement/resource_providers", attributes{"uuid": all[i], "name": "bench-" + all[i]}, nil)
		if err != nil {
			return nil, err
		}
		plenty := attributes{"total": 1<<31 - 1}
		err = a.send(ctx, http.MethodPut, "/placement/resource_providers/"+all[i]+"/inventories", attributes{
			"resource_provider_generation": 0,
			"inventories":                  attributes{"VCPU": plenty, "MEMORY_MB": plenty, "DISK_GB": plenty}}, nil)
		if err != nil {
			return nil, fmt.Errorf("inventory of a provider: %w", err)
		}
	}
	return all, nil
}

// allocation is the body that gives a new consumer something of a provider.
func allocation(provider string) string {
	return `{"allocations":{"` + provider + `":{"resources":{"VCPU":2,"MEMORY_MB":4096,"DISK_GB":20}}},` +
		`"project_id":"bench","user_id":"bench","consumer_type":"INSTANCE","consumer_generation":null}`
}
