package inventorystore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// generationChangedMessage is Placement's error message for a write of aggregates or traits with an outdated
// provider generation.
const generationChangedMessage = "Resource provider's generation already changed. Please update the generation and try again."

// Aggregates returns the aggregates of the provider with the given UUID.
func (s *Store) Aggregates(ctx context.Context, provider string) (inventory.Aggregates, error) {
	var a inventory.Aggregates
	err := s.db.QueryRow(ctx, `
		select generation, array(select aggregate from provider_aggregate where provider_id = p.id order by aggregate)
		from provider p
		where uuid = $1`, provider).Scan(&a.Generation, &a.UUIDs)
	if err := db.NotFoundOr(err, "no provider %s", provider); err != nil {
		return a, fmt.Errorf("read aggregates of provider %s: %w", provider, err)
	}
	return a, nil
}

// SetAggregates replaces the aggregates of a provider and returns the provider's generation. If `expected` is
// not nil and is the provider's current generation, SetAggregates increases the generation by one; if the
// provider has another generation, SetAggregates returns a fault of kind ConcurrentUpdate. If `expected` is
// nil, SetAggregates does not change the provider's generation.
func (s *Store) SetAggregates(
	ctx context.Context,
	provider string,
	aggregates []string,
	expected *int64,
) (int64, error) {
	if aggregates == nil {
		aggregates = []string{}
	}
	var generation int64
	err := s.db.InTx(ctx, func(tx db.Tx) error {
		p, err := lockProvider(ctx, tx, provider)
		if err != nil {
			return err
		}
		batch, before := &pgx.Batch{}, p.generation
		if expected != nil {
			if err := p.checkGeneration(*expected, generationChangedMessage); err != nil {
				return err
			}
			p.QueueGeneration(ctx, batch, inventory.CauseAggregates)
		}
		batch.Queue(`delete from provider_aggregate where provider_id = $1 and aggregate <> all($2)`,
			p.id, aggregates)
		batch.Queue(`
			insert into provider_aggregate (provider_id, aggregate)
			select $1, unnest($2::text[])
			on conflict do nothing`, p.id, aggregates)
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("set aggregates of provider %s: %w", provider, err)
		}
		generation = p.generation
		p.changed(tx, before)
		return nil
	})
	s.conflicts.record(err, inventory.CauseAggregates)
	return generation, err
}
