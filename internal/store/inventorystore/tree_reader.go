package inventorystore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// treeReader reads provider trees. treeReader reads only the data that the search for allocation candidates
// needs.
type treeReader struct {
	tx     db.Tx
	counts classCounts
	// each group's InTree is the UUID of the root of the tree that the request names
	query        inventory.CandidateQuery
	classes      nameIndex
	traits       nameIndex // traits in the query
	aggregates   nameIndex // aggregates in the query; the index contains their counts but no IDs
	traitIDs     []int32   // traits that are read for each provider; without those that no provider has
	classIDs     []int32   // classes that are read for each provider; nil: all
	inTreeRoots  []int64   // root IDs of the trees of in_tree
	inTreeAbsent bool      // the request names in in_tree a provider that does not exist
	sharingTrees []*inventory.Tree
	everyTree    bool                   // also read the trees that cannot serve the request
	versions     map[int64]traitVersion // of the traits of each provider that was read, by its ID
}

// maxRareCount is the limit below which a resource class, trait or aggregate is rare: it is rare if fewer
// than maxRareCount providers have it. If a request requires a rare class, trait or aggregate, treeReader
// reads only the trees of the providers that have it.
const maxRareCount = 512

// prepare reads the IDs of the resource classes and traits in the request, the root providers of the trees
// that the request names in in_tree, and the trees with sharing providers.
func (r *treeReader) prepare(ctx context.Context) error {
	r.classes, r.traits, r.aggregates = newNameIndex(), newNameIndex(), newNameIndex()
	r.versions = map[int64]traitVersion{}
	classes, traits := r.query.ClassNames(), append(r.query.TraitNames(), inventory.TraitSharesViaAggregate)
	now := time.Now()
	known, unknown := r.counts.split(classes, now)
	batch := &pgx.Batch{}
	batch.Queue(`
		select id, name, case when name = any($4) then
			(select count(*) from (select from inventory where class_id = c.id limit $2) few) else 0 end
		from resource_class c
		where name = any($1) or $3`, classes, maxRareCount, r.query.AllClasses, unknown).Query(r.classes.read)
	batch.Queue(`
		select id, name, (select count(*) from (select from provider_trait where trait_id = t.id limit $2) few)
		from trait t
		where name = any($1)`, traits, maxRareCount).Query(r.traits.read)
	if aggregates := r.query.AggregateNames(); len(aggregates) > 0 {
		batch.Queue(`
			select 0, name, (select count(*) from (select from provider_aggregate where aggregate = name limit $2) few)
			from unnest($1::text[]) as name`, aggregates, maxRareCount).Query(r.aggregates.read)
	}
	r.queueInTree(batch)
	if err := r.tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	r.counts.addTo(r.classes, known, unknown, now)
	if err := r.classes.check(classes, inventory.UnknownClass, unknownClassMessage); err != nil {
		return err
	}
	if err := r.traits.check(traits, inventory.Invalid, unknownTraitMessage); err != nil {
		return err
	}
	return r.readSharingTrees(ctx)
}

// readSharingTrees reads the trees with sharing providers. If there are no sharing providers, as in most
// deployments, readSharingTrees runs no SQL query.
func (r *treeReader) readSharingTrees(ctx context.Context) error {
	isRead := append(r.query.TraitNames(), inventory.TraitSharesViaAggregate)
	isRead = slices.DeleteFunc(isRead, func(trait string) bool { return r.traits.counts[trait] == 0 })
	r.traitIDs = r.traits.idsOf(isRead)
	r.classIDs = r.classes.idsOf(r.query.ClassNames())
	if r.query.AllClasses {
		r.classIDs = nil
	}
	if r.traits.counts[inventory.TraitSharesViaAggregate] == 0 {
		return nil
	}
	// The ID of the trait MISC_SHARES_VIA_AGGREGATE is part of the SQL text and not an argument, because the
	// best query plan depends on the number of providers with this trait.
	b := r.read(ctx, fmt.Sprintf(`
		select distinct p.root_id as id, p.root_id as key
		from provider_trait pt
		join provider p on p.id = pt.provider_id
		where pt.trait_id = %d`, r.traits.ids[inventory.TraitSharesViaAggregate]), nil, nil)
	r.sharingTrees = b.trees()
	return b.err
}

// queueInTree queues the query for the root providers of the trees that the request groups name in in_tree.
func (r *treeReader) queueInTree(batch *pgx.Batch) {
	var inTree []string
	for _, group := range r.query.Groups {
		if group.InTree != "" {
			inTree = append(inTree, group.InTree)
		}
	}
	if len(inTree) == 0 {
		return
	}
	batch.Queue(`
		select p.uuid, r.uuid, r.id
		from provider p
		join provider r on r.id = p.root_id
		where p.uuid = any($1)`, inTree).Query(func(rows pgx.Rows) error {
		roots := map[string]string{}
		var provider, root string
		var id int64
		_, err := pgx.ForEachRow(rows, []any{&provider, &root, &id}, func() error {
			roots[provider] = root
			r.inTreeRoots = append(r.inTreeRoots, id)
			return nil
		})
		r.query.Groups = slices.Clone(r.query.Groups)
		for i := range r.query.Groups {
			if group := &r.query.Groups[i]; group.InTree != "" {
				group.InTree = roots[group.InTree]
				r.inTreeAbsent = r.inTreeAbsent || group.InTree == ""
			}
		}
		return err
	})
}

// hasSharingTree reports whether one of the trees with the given root IDs contains a sharing provider.
func (r *treeReader) hasSharingTree(roots []int64) bool {
	return slices.ContainsFunc(r.sharingTrees,
		func(t *inventory.Tree) bool { return slices.Contains(roots, t.Root.ID) })
}
