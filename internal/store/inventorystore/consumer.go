package inventorystore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// DeleteAllocations takes everything from a consumer, whatever its generation; ErrNotFound if it holds nothing.
func (s *Store) DeleteAllocations(ctx context.Context, consumer string) error {
	tag, err := s.db.Exec(ctx, `
		with gone as (
			delete from consumer
			where uuid = $1
			returning uuid, generation)
		insert into generation_change (actor, cause, consumer, consumer_from)
		select $2, $3, uuid, generation
		from gone`, consumer, db.Actor(ctx), inventory.CauseAllocations)
	if err != nil {
		return fmt.Errorf("delete allocations of %s: %w", consumer, err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("%w: no allocations of consumer %s", db.ErrNotFound, consumer)
	}
	return nil
}

// Allocations is what a consumer holds; the zero Holding if it holds nothing.
func (s *Store) Allocations(ctx context.Context, consumer string) (inventory.ConsumerAllocations, error) {
	rows, err := s.db.Query(ctx, `
		select coalesce(k.project, ''), coalesce(k.user_id, ''), k.type, k.generation, p.uuid, p.generation, c.name, a.amount, a.created_at
		from consumer k
		join allocation a on a.consumer_id = k.id
		join provider p on p.id = a.provider_id
		join resource_class c on c.id = a.class_id
		where k.uuid = $1`, consumer)
	if err != nil {
		return inventory.ConsumerAllocations{}, fmt.Errorf("allocations of %s: %w", consumer, err)
	}
	h := inventory.ConsumerAllocations{Allocations: inventory.Allocations{}, ProviderGenerations: map[string]int64{}}
	var provider, class string
	var generation, amount int64
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&h.Project, &h.User, &h.Type, &h.Generation, &provider, &generation, &class, &amount, &at},
		func() error {
			if h.Allocations[provider] == nil {
				h.Allocations[provider] = map[string]int64{}
			}
			h.Allocations[provider][class] = amount
			h.ProviderGenerations[provider] = generation
			h.ChangedAt = at
			return nil
		})
	if err != nil {
		return inventory.ConsumerAllocations{}, fmt.Errorf("allocations of %s: %w", consumer, err)
	}
	return h, nil
}
