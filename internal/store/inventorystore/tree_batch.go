package inventorystore

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
)

// nodeQuery returns a SQL query for the providers of the trees whose root providers the query `roots`
// selects, with the arguments of the query: those of `roots`, and others. For each provider, the query reads
// those of the traits with the given IDs, and those of the given aggregates, that the provider has; nil
// instead of the aggregates means all aggregates. Without traits or aggregates to read, the query runs no
// subquery for each provider, because the subqueries cost more than all the rest of the query.
func nodeQuery(roots string, args []any, traits []int32, aggregates []string) (string, []any) {
	args = slices.Clone(args)
	traitsOf, aggregatesOf := `'{}'::integer[]`, `'{}'::text[]`
	if len(traits) > 0 {
		args = append(args, traits)
		traitsOf = fmt.Sprintf(`array(
			select pt.trait_id
			from provider_trait pt
			where pt.provider_id = p.id and pt.trait_id = any($%d))`, len(args))
	}
	switch {
	case aggregates == nil:
		aggregatesOf = `array(select pa.aggregate from provider_aggregate pa where pa.provider_id = p.id)`
	case len(aggregates) > 0:
		args = append(args, aggregates)
		aggregatesOf = fmt.Sprintf(`array(
			select pa.aggregate
			from provider_aggregate pa
			where pa.provider_id = p.id and pa.aggregate = any($%d))`, len(args))
	}
	return fmt.Sprintf(`
		with roots as materialized (%s)
		select p.id, p.uuid, p.parent_id, p.root_id, roots.key, p.generation, coalesce(p.updated_at, p.created_at), %s, %s
		from roots
		join provider p on p.root_id = roots.id
		order by roots.key, p.id`, roots, traitsOf, aggregatesOf), args
}

// inventoryQuery returns a SQL query for the inventories, with their usage, of the trees whose root providers
// the query `roots` selects. The arguments of the returned query are the arguments of `roots`, then the IDs
// of the resource classes to read; null instead of the IDs means all classes.
func inventoryQuery(roots string, args int) string {
	return fmt.Sprintf(`
		with roots as materialized (%s)
		select i.provider_id, i.class_id, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.allocation_ratio, i.used
		from roots
		join provider p on p.root_id = roots.id
		join inventory i on i.provider_id = p.id
		where $%d::integer[] is null or i.class_id = any($%[2]d)`,
		roots, args+1)
}

// treeBatch contains provider trees that are read together.
type treeBatch struct {
	reader  *treeReader
	nodes   map[int64]*inventory.Node
	byTree  [][]*inventory.Node
	lastKey int64 // key of the last root
	err     error
}

// read reads the trees whose root providers the query `roots` selects. For each provider, `read` reads only
// those aggregates that the parameter `aggregates` lists, or all aggregates if this parameter is nil.
func (r *treeReader) read(ctx context.Context, roots string, args []any, aggregates []string) *treeBatch {
	b := &treeBatch{reader: r, nodes: map[int64]*inventory.Node{}}
	batch := &pgx.Batch{}
	nodes, nodeArgs := nodeQuery(roots, args, r.traitIDs, aggregates)
	batch.Queue(nodes, nodeArgs...).Query(b.readNodes)
	batch.Queue(inventoryQuery(roots, len(args)), append(slices.Clone(args), r.classIDs)...).
		Query(b.readInventories)
	b.err = r.tx.SendBatch(ctx, batch).Close()
	return b
}

func (b *treeBatch) readNodes(rows pgx.Rows) error {
	parents := map[*inventory.Node]int64{}
	var id, root, key, lastRoot int64
	var parent *int64
	var uuid string
	var version traitVersion
	var traits []int32
	var aggregates []string
	_, err := pgx.ForEachRow(
		rows,
		[]any{&id, &uuid, &parent, &root, &key, &version.generation, &version.changedAt, &traits, &aggregates},
		func() error {
			n := &inventory.Node{
				ID:         id,
				UUID:       uuid,
				Traits:     b.reader.traits.namesOf(traits),
				Aggregates: aggregates,
			}
			if parent != nil {
				parents[n] = *parent
			}
			if root != lastRoot {
				b.byTree = append(b.byTree, nil)
			}
			last := len(b.byTree) - 1
			b.byTree[last] = append(b.byTree[last], n)
			b.nodes[id] = n
			if b.reader.query.WithTraits {
				b.reader.versions[id] = version
			}
			b.lastKey, lastRoot, aggregates = key, root, nil
			return nil
		},
	)
	for n, parent := range parents {
		n.Parent = b.nodes[parent]
	}
	return err
}

func (b *treeBatch) readInventories(rows pgx.Rows) error {
	var provider int64
	var class int32
	var i inventory.Inventory
	var used int64
	_, err := pgx.ForEachRow(
		rows,
		[]any{&provider, &class, &i.Total, &i.Reserved, &i.MinUnit, &i.MaxUnit, &i.StepSize,
			&i.AllocationRatio, &used},
		func() error {
			n := b.nodes[provider]
			n.Inventories = append(
				n.Inventories,
				&inventory.NodeInventory{Class: b.reader.classes.names[class], Inventory: i, Used: used},
			)
			return nil
		},
	)
	return err
}

func (b *treeBatch) trees() []*inventory.Tree {
	trees := make([]*inventory.Tree, len(b.byTree))
	for i, nodes := range b.byTree {
		trees[i] = inventory.NewTree(nodes)
	}
	return trees
}

// next reads the next batch of provider trees.
func (r *treeReader) next(ctx context.Context, roots *rootQuery) ([]*inventory.Tree, error) {
	b := r.read(ctx, roots.sql, append([]any{roots.after, roots.size}, roots.args...), roots.aggregates)
	roots.after, roots.done = b.lastKey, len(b.byTree) < roots.size
	return b.trees(), b.err
}
