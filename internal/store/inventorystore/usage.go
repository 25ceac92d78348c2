package inventorystore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// ProviderUsage returns the allocated amount of each inventory of a provider.
func (s *Store) ProviderUsage(ctx context.Context, provider string) (inventory.ProviderUsage, error) {
	rows, err := s.db.Query(ctx, `
		select p.generation, c.name, coalesce(i.used, 0)
		from provider p
		left join (inventory i join resource_class c on c.id = i.class_id) on i.provider_id = p.id
		where p.uuid = $1`, provider)
	if err != nil {
		return inventory.ProviderUsage{}, fmt.Errorf("read usage of provider %s: %w", provider, err)
	}
	u := inventory.ProviderUsage{Used: map[string]int64{}}
	var class *string
	var used int64
	tag, err := pgx.ForEachRow(rows, []any{&u.Generation, &class, &used}, func() error {
		if class != nil {
			u.Used[*class] = used
		}
		return nil
	})
	if err != nil {
		return inventory.ProviderUsage{}, fmt.Errorf("read usage of provider %s: %w", provider, err)
	}
	if tag.RowsAffected() == 0 {
		return inventory.ProviderUsage{}, fmt.Errorf("%w: no provider %s", db.ErrNotFound, provider)
	}
	return u, nil
}

// ProviderAllocations returns the allocations from a provider, by consumer UUID.
func (s *Store) ProviderAllocations(
	ctx context.Context,
	provider string,
) (inventory.ProviderAllocations, error) {
	rows, err := s.db.Query(ctx, `
		select p.generation, k.uuid, k.generation, c.name, a.amount, a.created_at
		from provider p
		left join (allocation a
			join consumer k on k.id = a.consumer_id
			join resource_class c on c.id = a.class_id) on a.provider_id = p.id
		where p.uuid = $1`, provider)
	if err != nil {
		return inventory.ProviderAllocations{}, fmt.Errorf("read allocations of provider %s: %w",
			provider, err)
	}
	h := inventory.ProviderAllocations{Consumers: map[string]inventory.ConsumerResources{}}
	var consumer, class *string
	var generation, amount *int64
	var at *time.Time
	tag, err := pgx.ForEachRow(
		rows,
		[]any{&h.Generation, &consumer, &generation, &class, &amount, &at},
		func() error {
			if consumer == nil {
				return nil
			}
			share, ok := h.Consumers[*consumer]
			if !ok {
				share = inventory.ConsumerResources{Generation: *generation, Resources: map[string]int64{}}
				h.Consumers[*consumer] = share
			}
			share.Resources[*class] = *amount
			h.ChangedAt = latest(h.ChangedAt, *at)
			return nil
		},
	)
	if err != nil {
		return inventory.ProviderAllocations{}, fmt.Errorf("read allocations of provider %s: %w",
			provider, err)
	}
	if tag.RowsAffected() == 0 {
		return inventory.ProviderAllocations{}, fmt.Errorf("%w: no provider %s", db.ErrNotFound, provider)
	}
	return h, nil
}

// Usages returns the total amounts that the consumers of a project have allocated, by consumer type.
func (s *Store) Usages(ctx context.Context, f inventory.UsageFilter) ([]inventory.Usage, error) {
	var usages []inventory.Usage
	var kind, class *string
	var amount, consumers int64
	rows, err := s.db.Query(ctx, `
		select k.type, c.name, sum(a.amount)::bigint, count(distinct k.id)
		from consumer k
		join allocation a on a.consumer_id = k.id
		join resource_class c on c.id = a.class_id
		where (k.project = $1 or $5 and k.project is null)
			and ($2::text is null or k.user_id = $2 or k.user_id is null)
			and ($3::text is null or k.type = $3)
			and (not $4 or k.type is null)
		group by grouping sets ((k.type, c.name), (k.type))
		order by k.type nulls first, c.name nulls first`, f.Project, f.User, f.Type, f.Untyped, f.Unowned)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&kind, &class, &amount, &consumers}, func() error {
			if class == nil { // the first row of a consumer type contains the number of consumers
				usages = append(usages,
					inventory.Usage{Type: kind, Used: map[string]int64{}, Consumers: consumers})
				return nil
			}
			usages[len(usages)-1].Used[*class] = amount
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read usages of project %s: %w", f.Project, err)
	}
	return usages, nil
}
