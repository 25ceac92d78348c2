package inventorystore

import (
	"context"
	"fmt"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// The number of trees that are read at a time: enough for the answer that is asked for, then more and more.
const (
	fewTrees  = 32
	someTrees = 4096
	manyTrees = 32768
)

// Candidates finds who could serve a query. Unknown classes and traits are an UnknownClass and an Invalid
// problem; trees and aggregates that do not exist serve nobody. Everything is read from one snapshot, tree by
// tree, and no more of it than the search wants to see.
func (s *Store) Candidates(ctx context.Context, q inventory.CandidateQuery) (*inventory.SearchResult, error) {
	var found *inventory.SearchResult
	err := s.db.InSnapshot(ctx, func(tx db.Tx) error {
		g := &grove{tx: tx, query: q}
		if err := g.open(ctx); err != nil {
			return err
		}
		search := inventory.NewSearch(g.query)
		search.AddSharingTrees(g.sharing)
		if err := g.visit(ctx, search); err != nil {
			return err
		}
		for !search.Finished() && search.Continue() {
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		found = search.Result()
		if !q.WithTraits {
			return nil
		}
		return g.describe(ctx, found.SummarizedProviders())
	})
	if err != nil {
		return nil, fmt.Errorf("allocation candidates: %w", err)
	}
	return found, nil
}

// visit shows the search every tree that could matter, until it has seen enough.
func (g *grove) visit(ctx context.Context, search *inventory.Search) error {
	if g.nowhere {
		return nil
	}
	size := someTrees
	if limit := g.query.Limits.Candidates; limit > 0 && limit+fewTrees < someTrees {
		size = limit + fewTrees
	}
	trees := g.sharing
	for ask := g.roots(size); ; ask.size = min(2*ask.size, manyTrees) {
		for _, t := range trees {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if search.SearchTree(t); search.Finished() {
				return nil
			}
		}
		if ask.last {
			return nil
		}
		var err error
		if trees, err = g.next(ctx, ask); err != nil {
			return err
		}
	}
}
