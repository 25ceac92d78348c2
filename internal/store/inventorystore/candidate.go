package inventorystore

import (
	"context"
	"fmt"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// Limits for the number of provider trees that the search reads in one batch. If the request has a small
// limit, the first batch of trees is small; each later batch is larger than the batch before it.
const (
	minTreeBatch   = 32
	firstTreeBatch = 4096
	maxTreeBatch   = 32768
)

// Candidates searches allocation candidates. Candidates returns a fault of kind UnknownClass for an unknown
// resource class, and a fault of kind Invalid for an unknown trait. If the request names an unknown tree or
// aggregate, the result has no candidates. Candidates reads the provider trees in batches from one snapshot
// of the database until the search is finished.
func (s *Store) Candidates(ctx context.Context, q inventory.CandidateQuery) (*inventory.SearchResult, error) {
	var result *inventory.SearchResult
	err := s.db.InSnapshot(ctx, func(tx db.Tx) error {
		r := &treeReader{tx: tx, counts: s.classCounts, query: q}
		if err := r.prepare(ctx); err != nil {
			return err
		}
		search := inventory.NewSearch(r.query)
		search.AddSharingTrees(r.sharingTrees)
		if err := r.searchTrees(ctx, search); err != nil {
			return err
		}
		for !search.Finished() && search.Continue() {
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		result = search.Result()
		if !q.WithTraits {
			return nil
		}
		return s.traits.readAllTraits(ctx, tx, result.SummarizedProviders(), r.versions)
	})
	if err != nil {
		return nil, fmt.Errorf("search allocation candidates: %w", err)
	}
	return result, nil
}

// searchTrees reads and searches the provider trees that may serve the request, until the search is finished
// or all these trees have been read.
func (r *treeReader) searchTrees(ctx context.Context, search *inventory.Search) error {
	if r.inTreeAbsent {
		return nil
	}
	size := firstTreeBatch
	if limit := r.query.Limits.Candidates; limit > 0 && limit+minTreeBatch < firstTreeBatch {
		size = limit + minTreeBatch
	}
	trees := r.sharingTrees
	for roots := r.newRootQuery(size); ; roots.size = min(2*roots.size, maxTreeBatch) {
		for _, t := range trees {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if search.SearchTree(t); search.Finished() {
				return nil
			}
		}
		if roots.done {
			return nil
		}
		var err error
		if trees, err = r.next(ctx, roots); err != nil {
			return err
		}
	}
}
