package inventorystore

import (
	"context"
	"fmt"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// Limits of the number of provider trees that one explanation reads, and of one batch of these trees.
const (
	maxExplainedTrees  = 10_000
	explainedTreeBatch = 1_000
)

// ExplainCandidates explains which filter of a query for allocation candidates removes which providers and
// provider trees. ExplainCandidates examines all provider trees with sharing providers, and at most
// maxExplainedTrees other trees. The result `names` contains the names of the providers in the examples by
// UUID. ExplainCandidates returns the same faults as Candidates.
func (s *Store) ExplainCandidates(
	ctx context.Context,
	q inventory.CandidateQuery,
) (e inventory.Explanation, names map[string]string, err error) {
	q.AllClasses, q.WithTraits, q.Limits = false, false, inventory.SearchLimits{}
	err = s.db.InSnapshot(ctx, func(tx db.Tx) error {
		r := &treeReader{tx: tx, counts: s.classCounts, query: q, everyTree: true}
		if err := r.prepare(ctx); err != nil {
			return err
		}
		for i, g := range q.Groups {
			if g.InTree != "" && r.query.Groups[i].InTree == "" {
				// no tree has this UUID, so the filter in_tree removes every provider
				r.query.Groups[i].InTree = g.InTree
			}
		}
		x := inventory.NewExplainer(r.query, r.sharingTrees)
		if err := r.explainTrees(ctx, x); err != nil {
			return err
		}
		e = x.Explanation
		names, err = readExampleNames(ctx, tx, e)
		return err
	})
	if err != nil {
		return e, nil, fmt.Errorf("explain allocation candidates: %w", err)
	}
	return e, names, nil
}

// explainTrees reads the provider trees and passes them to the Explainer.
func (r *treeReader) explainTrees(ctx context.Context, x *inventory.Explainer) (err error) {
	trees, roots := r.sharingTrees, r.newRootQuery(explainedTreeBatch)
	for {
		for _, t := range trees {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			x.AddTree(t)
		}
		switch {
		case roots.done:
			return nil
		case x.Trees-len(r.sharingTrees) >= maxExplainedTrees:
			roots.size = 1
			trees, err = r.next(ctx, roots)
			x.Cut = len(trees) > 0
			return err
		}
		if trees, err = r.next(ctx, roots); err != nil {
			return err
		}
	}
}

// readExampleNames reads the names of the providers in the examples of an explanation, by UUID.
func readExampleNames(ctx context.Context, tx db.Tx, e inventory.Explanation) (map[string]string, error) {
	var ids []string
	add := func(removals []inventory.Removal) {
		for _, r := range removals {
			for _, example := range r.Examples {
				ids = append(ids, example.UUID)
			}
		}
	}
	add(e.Combination)
	for _, s := range e.Slots {
		add(s.Removals)
	}
	return providerNames(ctx, tx, ids)
}
