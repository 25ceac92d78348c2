package inventorystore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// providerSelect reads whole providers.
const providerSelect = `
	select p.uuid, p.name, p.generation, coalesce(parent.uuid, ''), root.uuid, coalesce(p.updated_at, p.created_at)
	from provider p
	left join provider parent on parent.id = p.parent_id
	join provider root on root.id = p.root_id
	`

// Provider is the provider with that UUID.
func (s *Store) Provider(ctx context.Context, uuid string) (inventory.Provider, error) {
	return provider(ctx, s.db, uuid)
}

func provider(ctx context.Context, q db.Querier, uuid string) (inventory.Provider, error) {
	rows, err := q.Query(ctx, providerSelect+`where p.uuid = $1`, uuid)
	if err != nil {
		return inventory.Provider{}, fmt.Errorf("provider %s: %w", uuid, err)
	}
	p, err := pgx.CollectExactlyOneRow(rows, scanProvider)
	return p, db.NotFoundOr(err, "no provider %s", uuid)
}

func scanProvider(row pgx.CollectableRow) (inventory.Provider, error) {
	var p inventory.Provider
	err := row.Scan(&p.UUID, &p.Name, &p.Generation, &p.Parent, &p.Root, &p.ChangedAt)
	return p, err
}

// Providers lists the providers that pass the filter, oldest first. Unknown classes and traits are an
// UnknownClass and an Invalid problem.
func (s *Store) Providers(ctx context.Context, f inventory.ProviderFilter) ([]inventory.Provider, error) {
	var providers []inventory.Provider
	err := s.db.InSnapshot(ctx, func(tx db.Tx) error {
		classes, traits, err := filterNames(ctx, tx, f)
		if err != nil {
			return err
		}
		where, args := providerConditions(f, classes, traits)
		rows, err := tx.Query(ctx, providerSelect+where+` order by p.id`, args...)
		if err != nil {
			return err
		}
		providers, err = pgx.CollectRows(rows, scanProvider)
		if err != nil || len(f.Resources) == 0 {
			return err
		}
		offered, err := offers(ctx, tx, f.Resources, where, args)
		providers = slices.DeleteFunc(providers, func(p inventory.Provider) bool { return offered[p.UUID] < len(f.Resources) })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("providers: %w", err)
	}
	return providers, nil
}

// providerConditions are a filter in SQL, with what it asks of the provider p, but for how much of its resources there
// is.
func providerConditions(f inventory.ProviderFilter, classes, traits names) (where string, args []any) {
	var conditions []string
	and := func(condition string, value any) {
		args = append(args, value)
		conditions = append(conditions, fmt.Sprintf(condition, len(args)))
	}
	is := func(condition string, value *string) {
		if value != nil {
			and(condition, *value)
		}
	}
	is(`p.name = $%d`, f.Name)
	is(`p.uuid = $%d`, f.UUID)
	is(`p.root_id = (select root_id from provider where uuid = $%d)`, f.InTree)
	has := func(r inventory.Rule, exists string, id func([]string) any) {
		for _, alternatives := range r.Required {
			and(exists, id(alternatives))
		}
		if len(r.Forbidden) > 0 {
			and(`not `+exists, id(r.Forbidden))
		}
	}
	has(f.Aggregates, `exists (select from provider_aggregate a where a.provider_id = p.id and a.aggregate = any($%d))`,
		func(names []string) any { return names })
	has(f.Traits, `exists (select from provider_trait pt where pt.provider_id = p.id and pt.trait_id = any($%d))`,
		func(names []string) any { return traits.ids(names) })
	for class := range f.Resources {
		and(`exists (select from inventory i where i.provider_id = p.id and i.class_id = $%d)`, classes.id[class])
	}
	if len(conditions) > 0 {
		where = `where ` + strings.Join(conditions, ` and `)
	}
	return where, args
}

// filterNames are the classes and traits of a filter. Those that do not exist are refused.
func filterNames(ctx context.Context, tx db.Tx, f inventory.ProviderFilter) (classes, traits names, err error) {
	classes, traits = newNames(), newNames()
	wanted := slices.Sorted(maps.Keys(f.Resources))
	if len(wanted) == 0 && f.Traits.IsEmpty() {
		return classes, traits, nil
	}
	batch := &pgx.Batch{}
	batch.Queue(`select id, name, 0 from resource_class where name = any($1)`, wanted).Query(classes.read)
	batch.Queue(`select id, name, 0 from trait where name = any($1)`, f.Traits.Names()).Query(traits.read)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return classes, traits, err
	}
	if err := classes.check(wanted, inventory.UnknownClass, noSuchClass); err != nil {
		return classes, traits, err
	}
	return classes, traits, traits.check(f.Traits.Names(), inventory.Invalid, noSuchTrait)
}

// offers counts, by provider, of how many classes there is room for as much as is asked for.
func offers(ctx context.Context, tx db.Tx, resources map[string]int64, where string, args []any) (map[string]int, error) {
	rows, err := tx.Query(ctx, fmt.Sprintf(`
		select p.uuid, c.name, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.allocation_ratio,
			coalesce((
				select sum(a.amount)
				from allocation a
				where a.provider_id = i.provider_id and a.class_id = i.class_id), 0)::bigint
		from provider p
		join inventory i on i.provider_id = p.id
		join (select id, name from resource_class where name = any($%d)) c on c.id = i.class_id
		`+where, len(args)+1), append(slices.Clone(args), slices.Collect(maps.Keys(resources)))...)
	if err != nil {
		return nil, err
	}
	offered := map[string]int{}
	var provider string
	var r inventory.NodeInventory
	i := &r.Inventory
	_, err = pgx.ForEachRow(rows, []any{&provider, &r.Class, &i.Total, &i.Reserved, &i.MinUnit, &i.MaxUnit, &i.StepSize,
		&i.AllocationRatio, &r.Used}, func() error {
		if r.CanAllocate(resources[r.Class]) {
			offered[provider]++
		}
		return nil
	})
	return offered, err
}
