package inventorystore

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
)

// nodeQuery reads the providers of the trees whose roots a query with so many arguments finds. Its own are the
// IDs of the traits that matter, and the aggregates that do, null for all.
func nodeQuery(roots string, args int) string {
	return fmt.Sprintf(`
		with roots as materialized (%s)
		select p.id, p.uuid, p.parent_id, p.root_id, roots.key,
			array(
				select pt.trait_id
				from provider_trait pt
				where pt.provider_id = p.id and pt.trait_id = any($%d)),
			array(
				select pa.aggregate
				from provider_aggregate pa
				where pa.provider_id = p.id and ($%d::text[] is null or pa.aggregate = any($%[3]d)))
		from roots
		join provider p on p.root_id = roots.id
		order by roots.key, p.id`, roots, args+1, args+2)
}

// roomQuery reads their inventories. Its own argument is the IDs of the classes that matter, null for all.
func roomQuery(roots string, args int) string {
	return fmt.Sprintf(`
		with roots as materialized (%s)
		select i.provider_id, i.class_id, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.allocation_ratio
		from roots
		join provider p on p.root_id = roots.id
		join inventory i on i.provider_id = p.id
		where $%d::integer[] is null or i.class_id = any($%[2]d)`,
		roots, args+1)
}

// useQuery reads how much of them is in use, of all classes of a provider at a time.
func useQuery(roots string) string {
	return fmt.Sprintf(`
		with roots as materialized (%s)
		select p.id, u.class_id, u.used
		from roots
		join provider p on p.root_id = roots.id
		cross join lateral (
			select a.class_id, sum(a.amount)::bigint as used
			from allocation a
			where a.provider_id = p.id
			group by a.class_id) u`, roots)
}

// lot is trees that were read together.
type lot struct {
	g       *grove
	nodes   map[int64]*inventory.Node
	byTree  [][]*inventory.Node
	lastKey int64
	err     error
}

// read reads the trees whose roots a query finds, with the aggregates that matter, nil for all.
func (g *grove) read(ctx context.Context, roots string, args []any, aggregates []string) *lot {
	l := &lot{g: g, nodes: map[int64]*inventory.Node{}}
	batch := &pgx.Batch{}
	batch.Queue(nodeQuery(roots, len(args)), append(slices.Clone(args), g.traitIDs, aggregates)...).Query(l.readNodes)
	batch.Queue(roomQuery(roots, len(args)), append(slices.Clone(args), g.classIDs)...).Query(l.readRooms)
	batch.Queue(useQuery(roots), args...).Query(l.readUse)
	l.err = g.tx.SendBatch(ctx, batch).Close()
	return l
}

func (l *lot) readNodes(rows pgx.Rows) error {
	parents := map[*inventory.Node]int64{}
	var id, root, key, lastRoot int64
	var parent *int64
	var uuid string
	var traits []int32
	var aggregates []string
	_, err := pgx.ForEachRow(rows, []any{&id, &uuid, &parent, &root, &key, &traits, &aggregates}, func() error {
		n := &inventory.Node{ID: id, UUID: uuid, Traits: l.g.traits.of(traits), Aggregates: aggregates}
		if parent != nil {
			parents[n] = *parent
		}
		if root != lastRoot {
			l.byTree = append(l.byTree, nil)
		}
		last := len(l.byTree) - 1
		l.byTree[last] = append(l.byTree[last], n)
		l.nodes[id] = n
		l.lastKey, lastRoot, aggregates = key, root, nil
		return nil
	})
	for n, parent := range parents {
		n.Parent = l.nodes[parent]
	}
	return err
}

func (l *lot) readRooms(rows pgx.Rows) error {
	var provider int64
	var class int32
	var i inventory.Inventory
	_, err := pgx.ForEachRow(rows, []any{&provider, &class, &i.Total, &i.Reserved, &i.MinUnit, &i.MaxUnit, &i.StepSize,
		&i.AllocationRatio}, func() error {
		n := l.nodes[provider]
		n.Inventories = append(n.Inventories, &inventory.NodeInventory{Class: l.g.classes.byID[class], Inventory: i})
		return nil
	})
	return err
}

func (l *lot) readUse(rows pgx.Rows) error {
	var provider, used int64
	var class int32
	_, err := pgx.ForEachRow(rows, []any{&provider, &class, &used}, func() error {
		if r := l.nodes[provider].InventoryOf(l.g.classes.byID[class]); r != nil { // a class that matters
			r.Used = used
		}
		return nil
	})
	return err
}

func (l *lot) trees() []*inventory.Tree {
	trees := make([]*inventory.Tree, len(l.byTree))
	for i, nodes := range l.byTree {
		trees[i] = inventory.NewTree(nodes)
	}
	return trees
}

// next reads the next lot of trees.
func (g *grove) next(ctx context.Context, a *ask) ([]*inventory.Tree, error) {
	l := g.read(ctx, a.from, append([]any{a.after, a.size}, a.args...), a.aggregates)
	a.after, a.last = l.lastKey, len(l.byTree) < a.size
	return l.trees(), l.err
}

// describe reads all traits of providers.
func (g *grove) describe(ctx context.Context, nodes []*inventory.Node) error {
	if len(nodes) == 0 {
		return nil
	}
	ids := make([]int64, len(nodes))
	for i, n := range nodes {
		ids[i] = n.ID
	}
	all := newNames()
	batch := &pgx.Batch{}
	batch.Queue(`select id, name, 0 from trait`).Query(all.read)
	batch.Queue(`
		select array(select trait_id from provider_trait where provider_id = asked.id order by trait_id)
		from unnest($1::bigint[]) with ordinality as asked (id, place)
		order by place`, ids).Query(func(rows pgx.Rows) error {
		var traits []int32
		place := 0
		_, err := pgx.ForEachRow(rows, []any{&traits}, func() error {
			nodes[place].AllTraits = all.of(traits)
			place++
			return nil
		})
		return err
	})
	return g.tx.SendBatch(ctx, batch).Close()
}
