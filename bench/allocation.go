package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/google/uuid"

	"berth/internal/inventory"
	"berth/internal/store"
)

// openCommits measures the peer of everything that is a write: one row in one statement, committed to the disk.
func openCommits(ctx context.Context, s *stack) (*subject, error) {
	_, err := s.rows.Exec(ctx, `
		create table if not exists bench_commit (
			id    bigint generated always as identity primary key,
			value text not null)`)
	return &subject{op: func(ctx context.Context, client int) (int, error) {
		_, err := s.rows.Exec(ctx, `insert into bench_commit (value) values ($1)`, strconv.Itoa(client))
		return 1, err
	}}, err
}

// hosts are the providers over which allocations are spread, as a scheduler spreads them.
const hosts = 256

// openAllocations measures what a compute service writes for a new server: three resources of one provider, for
// a consumer that must not exist yet.
func openAllocations(ctx context.Context, s *stack) (*subject, error) {
	rows, err := store.Open(ctx, s.postgres.URL)
	if err != nil {
		return nil, err
	}
	providers := make([]string, hosts)
	for i := range providers {
		id := uuid.NewString()
		if _, err := rows.CreateProvider(ctx, inventory.NewProvider{UUID: id, Name: "bench-" + id}); err != nil {
			return nil, err
		}
		stock := map[string]inventory.Inventory{}
		for _, class := range []string{"VCPU", "MEMORY_MB", "DISK_GB"} {
			stock[class] = inventory.Of(inventory.MaxInt)
		}
		if _, err := rows.ReplaceStock(ctx, id, 0, stock); err != nil {
			return nil, fmt.Errorf("inventory of a provider: %w", err)
		}
		providers[i] = id
	}
	var next atomic.Int64
	return &subject{
		op: func(ctx context.Context, _ int) (int, error) {
			provider := providers[next.Add(1)%hosts]
			return 1, rows.PutAllocations(ctx, inventory.ConsumerWrite{Consumer: uuid.NewString(), Project: "bench", User: "bench",
				Expect: inventory.Absent(), Allocations: inventory.Allocations{provider: {"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 20}}})
		},
		close: func(context.Context) ([]detail, error) {
			rows.Close()
			return nil, nil
		},
	}, nil
}
