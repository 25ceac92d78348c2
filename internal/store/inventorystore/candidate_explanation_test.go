package inventorystore_test

import (
	"context"
	"errors"
	"testing"

	"berth/internal/inventory"
	"berth/internal/store/storetest"
)

// An explanation examines a limited number of provider trees, and says whether there are more trees.
func TestExplainCandidates_ExaminesABoundedNumberOfTrees(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	const limit = 10_000
	addProviders := func(from, to int) {
		t.Helper()
		storetest.Exec(t, url, `
			with p as (
				insert into provider (id, uuid, name, root_id)
				select id, gen_random_uuid(), 'p' || n, id
				from (select nextval('provider_id') as id, n from generate_series($1::int, $2::int) as n) as new
				returning id)
			insert into inventory (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
			select id, 0, 8, 0, 1, 8, 1, 1
			from p`, from, to)
	}
	query := inventory.CandidateQuery{Groups: []inventory.Group{{Resources: map[string]int64{"VCPU": 4}}}}
	addProviders(1, limit)
	e, names, err := s.Inventory.ExplainCandidates(t.Context(), query)
	if err != nil || e.Trees != limit || e.Cut || e.CandidateTrees != limit || len(names) != 0 {
		t.Errorf(
			"explain a query for %d trees: got %d trees, %d with candidates, cut %t, names %v, error %v; want all of them",
			limit, e.Trees, e.CandidateTrees, e.Cut, names, err,
		)
	}
	addProviders(limit+1, limit+1)
	query.Groups[0].Resources["VCPU"] = 9
	e, names, err = s.Inventory.ExplainCandidates(t.Context(), query)
	if err != nil || e.Trees != limit || !e.Cut || e.CandidateTrees != 0 ||
		e.Slots[0].Removals[2].Trees != limit ||
		len(names) != 3 {
		t.Errorf(
			"explain a query for one tree more: got %+v, names %v, error %v; want %d trees, and that there are more",
			e, names, err, limit,
		)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Inventory.ExplainCandidates(ended, query); !errors.Is(err, context.Canceled) {
		t.Errorf("explain a query of a client that has gone: got error %v, want context.Canceled", err)
	}
}
