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

// providerSelect is the beginning of a SQL query for providers. The SQL query selects the columns that
// scanProvider reads.
const providerSelect = `
	select p.uuid, p.name, p.generation, coalesce(parent.uuid, ''), root.uuid, coalesce(p.updated_at, p.created_at)
	from provider p
	left join provider parent on parent.id = p.parent_id
	join provider root on root.id = p.root_id
	`

// Provider returns the provider with the given UUID.
func (s *Store) Provider(ctx context.Context, uuid string) (inventory.Provider, error) {
	return provider(ctx, s.db, uuid)
}

func provider(ctx context.Context, q db.Querier, uuid string) (inventory.Provider, error) {
	rows, err := q.Query(ctx, providerSelect+`where p.uuid = $1`, uuid)
	if err != nil {
		return inventory.Provider{}, fmt.Errorf("read provider %s: %w", uuid, err)
	}
	p, err := pgx.CollectExactlyOneRow(rows, scanProvider)
	return p, db.NotFoundOr(err, "no provider %s", uuid)
}

// ProviderNames returns the names of the providers with the given UUIDs, by UUID.
func (s *Store) ProviderNames(ctx context.Context, uuids []string) (map[string]string, error) {
	return providerNames(ctx, s.db, uuids)
}

func providerNames(ctx context.Context, q db.Querier, uuids []string) (map[string]string, error) {
	names := map[string]string{}
	var id, name string
	rows, err := q.Query(ctx, `select uuid, name from provider where uuid = any($1)`, uuids)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&id, &name}, func() error {
			names[id] = name
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read the names of providers: %w", err)
	}
	return names, nil
}

func scanProvider(row pgx.CollectableRow) (inventory.Provider, error) {
	var p inventory.Provider
	err := row.Scan(&p.UUID, &p.Name, &p.Generation, &p.Parent, &p.Root, &p.ChangedAt)
	return p, err
}

// Providers returns the providers that match a filter, oldest first. Providers returns a fault of kind
// UnknownClass for an unknown resource class, and a fault of kind Invalid for an unknown trait.
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
		available, err := countAvailableClasses(ctx, tx, f.Resources, where, args)
		providers = slices.DeleteFunc(providers,
			func(p inventory.Provider) bool { return available[p.UUID] < len(f.Resources) })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list providers: %w", err)
	}
	return providers, nil
}

// providerConditions returns the SQL where clause of a filter, for the table `provider` with the alias p, and
// the arguments of the clause. The where clause checks that a provider has inventories of the requested
// resource classes, but not that the requested amounts are available.
func providerConditions(f inventory.ProviderFilter, classes, traits nameIndex) (where string, args []any) {
	var conditions []string
	addCondition := func(condition string, value any) {
		args = append(args, value)
		conditions = append(conditions, fmt.Sprintf(condition, len(args)))
	}
	addEqual := func(condition string, value *string) {
		if value != nil {
			addCondition(condition, *value)
		}
	}
	if f.Name != nil && *f.Name != "" { // Placement filters by no empty name
		addEqual(`p.name = $%d`, f.Name)
	}
	addEqual(`p.uuid = $%d`, f.UUID)
	addEqual(`p.root_id = (select root_id from provider where uuid = $%d)`, f.InTree)
	addRule := func(r inventory.Rule, exists string, id func([]string) any) {
		for _, alternatives := range r.Required {
			addCondition(exists, id(alternatives))
		}
		if len(r.Forbidden) > 0 {
			addCondition(`not `+exists, id(r.Forbidden))
		}
	}
	addRule(f.Aggregates,
		`exists (select from provider_aggregate a where a.provider_id = p.id and a.aggregate = any($%d))`,
		func(names []string) any { return names })
	addRule(f.Traits,
		`exists (select from provider_trait pt where pt.provider_id = p.id and pt.trait_id = any($%d))`,
		func(names []string) any { return traits.idsOf(names) })
	for class := range f.Resources {
		addCondition(
			`exists (select from inventory i where i.provider_id = p.id and i.class_id = $%d)`,
			classes.ids[class],
		)
	}
	if len(conditions) > 0 {
		where = `where ` + strings.Join(conditions, ` and `)
	}
	return where, args
}

// filterNames returns the IDs of the resource classes and traits in a filter, or a fault if one of these
// classes or traits does not exist.
func filterNames(
	ctx context.Context,
	tx db.Tx,
	f inventory.ProviderFilter,
) (classes, traits nameIndex, err error) {
	classes, traits = newNameIndex(), newNameIndex()
	requested := slices.Sorted(maps.Keys(f.Resources))
	if len(requested) == 0 && f.Traits.IsEmpty() {
		return classes, traits, nil
	}
	batch := &pgx.Batch{}
	batch.Queue(`select id, name, 0 from resource_class where name = any($1)`, requested).Query(classes.read)
	batch.Queue(`select id, name, 0 from trait where name = any($1)`, f.Traits.Names()).Query(traits.read)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return classes, traits, err
	}
	if err := classes.check(requested, inventory.UnknownClass, unknownClassMessage); err != nil {
		return classes, traits, err
	}
	return classes, traits, traits.check(f.Traits.Names(), inventory.Invalid, unknownTraitMessage)
}

// availableRow is a result row with an inventory of a listed provider and the usage of the inventory.
type availableRow struct {
	Provider string
	Class    string
	inventory.Inventory
	Used int64
}

// countAvailableClasses returns, for each provider UUID, the number of
// requested resource classes whose requested amount the provider has available.
func countAvailableClasses(
	ctx context.Context,
	tx db.Tx,
	resources map[string]int64,
	where string,
	args []any,
) (map[string]int, error) {
	rows, err := tx.Query(ctx, fmt.Sprintf(`
		select p.uuid as provider, c.name as class, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size, i.allocation_ratio, i.used
		from provider p
		join inventory i on i.provider_id = p.id
		join (select id, name from resource_class where name = any($%d)) c on c.id = i.class_id
		`+where, len(args)+1), append(slices.Clone(args), slices.Collect(maps.Keys(resources)))...)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[availableRow])
	available := map[string]int{}
	for _, r := range all {
		i := inventory.NodeInventory{Class: r.Class, Inventory: r.Inventory, Used: r.Used}
		if i.CanAllocate(resources[r.Class]) {
			available[r.Provider]++
		}
	}
	return available, err
}
