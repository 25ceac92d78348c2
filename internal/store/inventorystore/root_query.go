package inventorystore

import (
	"fmt"
	"math"
	"slices"

	"berth/internal/inventory"
)

// rootQuery is a query that reads the root providers of the trees in batches, ordered by a key.
type rootQuery struct {
	sql        string   // selects the roots whose key is greater than $1, at most $2
	args       []any    // arguments from $3 on
	aggregates []string // aggregates that are read for each provider
	after      int64    // key of the last root that was read
	size       int      // number of trees in the next batch
	done       bool     // true if all trees have been read
}

// newRootQuery returns the query for the provider trees that may serve the request. If the request names
// trees in in_tree, the query selects these trees; otherwise it selects the trees with a provider that meets
// the rarest requirement of the request, or all trees if no requirement is rare. The query does not select
// trees with sharing providers, because readSharingTrees has already read them.
func (r *treeReader) newRootQuery(size int) *rootQuery {
	q := &rootQuery{
		after:      math.MinInt64,
		size:       size,
		aggregates: append([]string{}, r.query.AggregateNames()...),
	}
	known := []int64{}
	for _, t := range r.sharingTrees {
		known = append(known, t.Root.ID)
		for _, n := range t.Nodes {
			q.aggregates = append(q.aggregates, n.Aggregates...)
		}
	}
	key, where := `r.id`, ``
	and := func(condition string, value any) {
		q.args = append(q.args, value)
		where += fmt.Sprintf(" and "+condition, 2+len(q.args))
	}
	and(`r.id <> all($%d)`, known)
	if seed := r.query.Limits.Seed; seed != 0 {
		q.args = append(q.args, int64(seed))
		key = fmt.Sprintf(`hashint8extended(r.id, $%d)`, 2+len(q.args))
	}
	if rarest := r.rarestRequirement(); r.everyTree {
		// the query reads all trees
	} else if len(r.inTreeRoots) > 0 && !r.hasSharingTree(r.inTreeRoots) {
		and(`r.id = any($%d)`, r.inTreeRoots)
	} else if rarest != nil {
		and(`r.id in (select q.root_id from `+rarest.providers+` any($%d))`, rarest.values)
	}
	q.sql = `
		select r.id, ` + key + ` as key
		from provider r
		where r.parent_id is null and ` + key + ` > $1` + where + `
		order by key
		limit $2`
	return q
}

// requirement is a list of traits, aggregates or resource classes. A provider tree can serve the request only
// if a provider of the tree, or a provider that shares its resources with the tree, has one of the traits,
// aggregates or classes in the list.
type requirement struct {
	providers string // SQL for the providers q that have one of the values
	values    any    // IDs, or names of aggregates
	// number of providers that have one of the values, counted up to maxRareCount for each value
	count int
}

const (
	providersWithTrait     = `provider_trait x join provider q on q.id = x.provider_id where x.trait_id =`
	providersWithAggregate = `provider_aggregate x join provider q on q.id = x.provider_id where x.aggregate =`
	providersWithClass     = `inventory x join provider q on q.id = x.provider_id where x.class_id =`
)

// rarestRequirement returns the requirement of the request that the fewest providers meet. rarestRequirement
// ignores each requirement that at least maxRareCount providers meet, and each requirement that a provider in
// a tree with sharing providers meets. If rarestRequirement ignores all requirements of the request, the
// result is nil.
func (r *treeReader) rarestRequirement() *requirement {
	var rarest *requirement
	consider := func(providers string, names []string, values any, counts map[string]int, has func(*inventory.Node, string) bool) {
		q := &requirement{providers: providers, values: values}
		for _, name := range names {
			q.count += counts[name]
		}
		if q.count < maxRareCount && (rarest == nil || q.count < rarest.count) &&
			!r.sharingTreeHas(names, has) {
			rarest = q
		}
	}
	considerTraits := func(rule inventory.Rule) {
		for _, names := range rule.Required {
			consider(providersWithTrait, names, r.traits.idsOf(names), r.traits.counts,
				func(n *inventory.Node, name string) bool { return slices.Contains(n.Traits, name) })
		}
	}
	considerTraits(r.query.RootTraits)
	for _, group := range r.query.Groups {
		considerTraits(group.Traits)
		for _, names := range group.Aggregates.Required {
			consider(providersWithAggregate, names, names, r.aggregates.counts,
				func(n *inventory.Node, name string) bool { return slices.Contains(n.Aggregates, name) })
		}
		for class := range group.Resources {
			consider(providersWithClass, []string{class}, r.classes.idsOf([]string{class}), r.classes.counts,
				func(n *inventory.Node, name string) bool { return n.InventoryOf(name) != nil })
		}
	}
	return rarest
}

// sharingTreeHas reports whether a provider in a tree with sharing providers has one of the named traits,
// aggregates or resource classes.
func (r *treeReader) sharingTreeHas(names []string, has func(*inventory.Node, string) bool) bool {
	for _, t := range r.sharingTrees {
		for _, n := range t.Nodes {
			if slices.ContainsFunc(names, func(name string) bool { return has(n, name) }) {
				return true
			}
		}
	}
	return false
}
