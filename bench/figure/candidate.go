package figure

import (
	"context"

	"berth/bench/dataset"
	"berth/bench/harness"
)

// Two queries for allocation candidates. The query `server` requests a server of a usual size. The query
// `nestedServer` requests a server with disk from the root provider, and with processors, memory and a VGPU
// from the same NUMA node.
const (
	server       = "resources=VCPU:2,MEMORY_MB:4096,DISK_GB:20"
	nestedServer = "resources=DISK_GB:20&resources_N=VCPU:2,MEMORY_MB:4096&resources_C=VGPU:1&group_policy=none&same_subtree=_N,_C"
)

// openCandidates measures the query that a Nova scheduler sends: at most 100 candidates out of 1,000 hosts.
func openCandidates(ctx context.Context, s *harness.Stack) (*Subject, error) {
	return measureCandidates(ctx, s, dataset.FlatProviders(s.ScaleRows(1000)), server+"&limit=100", 1)
}

// openNestedCandidates measures a query for all candidates of nested providers: each host has two NUMA nodes
// with two VGPUs each.
func openNestedCandidates(ctx context.Context, s *harness.Stack) (*Subject, error) {
	return measureCandidates(ctx, s, dataset.NestedProviders(s.ScaleRows(1000)), nestedServer, 1)
}

// openAllCandidates measures a query for all allocation candidates of n hosts, and reports the rate in
// providers per second. If the time of the query grows linearly with the number of hosts, the rate in
// providers per second does not depend on n.
func openAllCandidates(n int) func(context.Context, *harness.Stack) (*Subject, error) {
	return func(ctx context.Context, s *harness.Stack) (*Subject, error) {
		return measureCandidates(ctx, s, dataset.FlatProviders(s.ScaleRows(n)), server, n)
	}
}

// measureCandidates measures a query for allocation candidates over a dataset. Each query counts as `count`
// operations.
func measureCandidates(
	ctx context.Context,
	s *harness.Stack,
	d harness.Dataset,
	query string,
	count int,
) (*Subject, error) {
	a, err := s.LoadDataset(ctx, d)
	if err != nil {
		return nil, err
	}
	get := func(ctx context.Context) error { return a.Get(ctx, "/placement/allocation_candidates?"+query) }
	return &Subject{
		setUp: get, // so that the query plans are cached
		op:    func(ctx context.Context, _ int) (int, error) { return count, get(ctx) },
	}, nil
}
