package inventorystore

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// grove reads trees of providers as a query for candidates needs to see them.
type grove struct {
	tx       db.Tx
	query    inventory.CandidateQuery // its trees are named by their roots
	classes  names
	traits   names // those that the query speaks of
	zones    names // the aggregates that it speaks of, which have no IDs
	traitIDs []int32
	classIDs []int32 // those that providers are described with, nil for all
	only     []int64 // roots of trees to which the query confines a group
	nowhere  bool    // there is no such tree
	sharing  []*inventory.Tree
}

// rare is how many providers are few enough to begin with them.
const rare = 512

// names are what IDs mean, and how many providers have what is meant, counted up to rare.
type names struct {
	byID map[int32]string
	id   map[string]int32
	many map[string]int
}

func newNames() names { return names{map[int32]string{}, map[string]int32{}, map[string]int{}} }

func (n names) read(rows pgx.Rows) error {
	var id int32
	var name string
	var many int
	_, err := pgx.ForEachRow(rows, []any{&id, &name, &many}, func() error {
		n.byID[id], n.id[name], n.many[name] = name, id, many
		return nil
	})
	return err
}

// of are the names of IDs.
func (n names) of(ids []int32) []string {
	if len(ids) == 0 {
		return nil
	}
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = n.byID[id]
	}
	return all
}

// ids are the IDs of names, which are known.
func (n names) ids(of []string) []int32 {
	all := make([]int32, len(of))
	for i, name := range of {
		all[i] = n.id[name]
	}
	return all
}

// check refuses names that mean nothing.
func (n names) check(asked []string, kind inventory.Kind, format string) error {
	unknown := slices.DeleteFunc(slices.Clone(asked), func(name string) bool {
		_, known := n.id[name]
		return known
	})
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return inventory.Faultf(kind, format, strings.Join(slices.Compact(unknown), ", "))
	}
	return nil
}

// The refusals of names that mean nothing.
const (
	noSuchClass = "No such resource class %s."
	noSuchTrait = "No such trait(s): %s."
)

// open reads what the query's names mean, and the trees with providers that share.
func (g *grove) open(ctx context.Context) error {
	g.classes, g.traits, g.zones = newNames(), newNames(), newNames()
	classes, traits := g.query.ClassNames(), append(g.query.TraitNames(), inventory.TraitSharesViaAggregate)
	batch := &pgx.Batch{}
	batch.Queue(`
		select id, name, case when name = any($1) then
			(select count(*) from (select from inventory where class_id = c.id limit $2) few) else 0 end
		from resource_class c
		where name = any($1) or $3`, classes, rare, g.query.AllClasses).Query(g.classes.read)
	batch.Queue(`
		select id, name, (select count(*) from (select from provider_trait where trait_id = t.id limit $2) few)
		from trait t
		where name = any($1)`, traits, rare).Query(g.traits.read)
	if aggregates := g.query.AggregateNames(); len(aggregates) > 0 {
		batch.Queue(`
			select 0, name, (select count(*) from (select from provider_aggregate where aggregate = name limit $2) few)
			from unnest($1::text[]) as name`, aggregates, rare).Query(g.zones.read)
	}
	g.queueTrees(batch)
	if err := g.tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	if err := g.classes.check(classes, inventory.UnknownClass, noSuchClass); err != nil {
		return err
	}
	if err := g.traits.check(traits, inventory.Invalid, noSuchTrait); err != nil {
		return err
	}
	return g.openSharing(ctx)
}

// openSharing reads the trees with providers that share. Most deployments have none, and then nothing is asked.
func (g *grove) openSharing(ctx context.Context) error {
	g.traitIDs, g.classIDs = g.traits.ids(append(g.query.TraitNames(), inventory.TraitSharesViaAggregate)), g.classes.ids(g.query.ClassNames())
	if g.query.AllClasses {
		g.classIDs = nil
	}
	if g.traits.many[inventory.TraitSharesViaAggregate] == 0 {
		return nil
	}
	// Its ID is in the text of the query because plans depend on how many providers have the trait.
	l := g.read(ctx, fmt.Sprintf(`
		select distinct p.root_id as id, p.root_id as key
		from provider_trait pt
		join provider p on p.id = pt.provider_id
		where pt.trait_id = %d`, g.traits.id[inventory.TraitSharesViaAggregate]), nil, nil)
	g.sharing = l.trees()
	return l.err
}

// queueTrees finds the roots of the trees to which groups are confined.
func (g *grove) queueTrees(batch *pgx.Batch) {
	var inTree []string
	for _, group := range g.query.Groups {
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
			g.only = append(g.only, id)
			return nil
		})
		g.query.Groups = slices.Clone(g.query.Groups)
		for i := range g.query.Groups {
			if group := &g.query.Groups[i]; group.InTree != "" {
				group.InTree = roots[group.InTree]
				g.nowhere = g.nowhere || group.InTree == ""
			}
		}
		return err
	})
}

// ask is for the next trees in the order of their roots.
type ask struct {
	from       string   // SQL that finds the roots, behind the key $1, as many as $2
	args       []any    // more arguments of it
	aggregates []string // that matter
	after      int64
	size       int
	last       bool // there are no more
}

// roots begins with the trees that could serve the query, as far as that is easily told: those that it is
// confined to, or those that have the rarest thing that it needs.
func (g *grove) roots(size int) *ask {
	a := &ask{after: math.MinInt64, size: size, aggregates: append([]string{}, g.query.AggregateNames()...)}
	known := []int64{}
	for _, t := range g.sharing {
		known = append(known, t.Root.ID)
		for _, n := range t.Nodes {
			a.aggregates = append(a.aggregates, n.Aggregates...)
		}
	}
	key, where := `r.id`, ``
	add := func(condition string, value any) {
		a.args = append(a.args, value)
		where += fmt.Sprintf(" and "+condition, 2+len(a.args))
	}
	add(`r.id <> all($%d)`, known)
	if seed := g.query.Limits.Seed; seed != 0 {
		a.args = append(a.args, int64(seed))
		key = fmt.Sprintf(`hashint8extended(r.id, $%d)`, 2+len(a.args))
	}
	if need := g.rarest(); len(g.only) > 0 && !g.shares(g.only) {
		add(`r.id = any($%d)`, g.only)
	} else if need != nil {
		add(`r.id in (select q.root_id from `+need.what+` any($%d))`, need.ids)
	}
	a.from = `
		select r.id, ` + key + ` as key
		from provider r
		where r.parent_id is null and ` + key + ` > $1` + where + `
		order by key
		limit $2`
	return a
}

// shares tells whether a tree with one of those roots has a provider that shares.
func (g *grove) shares(roots []int64) bool {
	return slices.ContainsFunc(g.sharing, func(t *inventory.Tree) bool { return slices.Contains(roots, t.Root.ID) })
}

// need is something of which a tree must have at least one.
type need struct {
	what string // SQL that names the providers q that have it
	ids  any    // of it
	many int
}

const (
	ofTrait     = `provider_trait x join provider q on q.id = x.provider_id where x.trait_id =`
	ofAggregate = `provider_aggregate x join provider q on q.id = x.provider_id where x.aggregate =`
	ofClass     = `inventory x join provider q on q.id = x.provider_id where x.class_id =`
)

// rarest is the need that the fewest providers meet, nil if all are met by many, or by a provider that shares.
func (g *grove) rarest() *need {
	var best *need
	consider := func(what string, names []string, ids any, many map[string]int, has func(*inventory.Node, string) bool) {
		n := &need{what: what, ids: ids}
		for _, name := range names {
			n.many += many[name]
		}
		if n.many < rare && (best == nil || n.many < best.many) && !g.visitorHas(names, has) {
			best = n
		}
	}
	traits := func(rule inventory.Rule) {
		for _, names := range rule.Required {
			consider(ofTrait, names, g.traits.ids(names), g.traits.many,
				func(n *inventory.Node, name string) bool { return slices.Contains(n.Traits, name) })
		}
	}
	traits(g.query.RootTraits)
	for _, group := range g.query.Groups {
		traits(group.Traits)
		for _, names := range group.Aggregates.Required {
			consider(ofAggregate, names, names, g.zones.many,
				func(n *inventory.Node, name string) bool { return slices.Contains(n.Aggregates, name) })
		}
		for class := range group.Resources {
			consider(ofClass, []string{class}, g.classes.ids([]string{class}), g.classes.many,
				func(n *inventory.Node, name string) bool { return n.InventoryOf(name) != nil })
		}
	}
	return best
}

// visitorHas tells whether a tree with a provider that shares has one of the things that are asked for.
func (g *grove) visitorHas(names []string, has func(*inventory.Node, string) bool) bool {
	for _, t := range g.sharing {
		for _, n := range t.Nodes {
			if slices.ContainsFunc(names, func(name string) bool { return has(n, name) }) {
				return true
			}
		}
	}
	return false
}
