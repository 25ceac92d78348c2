package inventorystore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/inventory"
	"berth/internal/store/db"
	"berth/internal/tracing"
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
	if expected != nil {
		if done, err := s.trySetAggregates(ctx, provider, aggregates, *expected); done || err != nil {
			return *expected + 1, err
		}
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

// setAggregatesStatement replaces the aggregates of a provider that has the expected generation, and
// increments its generation. It returns a row if it has written.
const setAggregatesStatement = `
	with updated_provider as (
		update provider
		set generation = generation + 1, updated_at = now()
		where uuid = @provider and generation = @expected
		returning id, uuid, generation
	), removed as (
		delete from provider_aggregate a
		using updated_provider p
		where a.provider_id = p.id and a.aggregate <> all(@aggregates)
	), added as (
		insert into provider_aggregate (provider_id, aggregate)
		select id, unnest(@aggregates::text[])
		from updated_provider
		on conflict do nothing
	)
	insert into generation_change (cause, actor, request_id, provider, provider_from, provider_to)
	select @cause, @actor, nullif(@request, ''), uuid, generation - 1, generation
	from updated_provider
	returning ` + db.MarkWritten

// trySetAggregates replaces the aggregates of a provider with one round trip to PostgreSQL, and reports
// whether it has. If not, the provider does not exist or does not have the expected generation; the caller
// runs the transaction that says so. The first statement of the batch locks the provider, so that the second
// one sees the aggregates that another writer, which changes no generation, has committed meanwhile.
func (s *Store) trySetAggregates(
	ctx context.Context,
	provider string,
	aggregates []string,
	expected int64,
) (done bool, err error) {
	err = s.db.InBatch(ctx, func(batch *pgx.Batch) {
		batch.Queue(`select from provider where uuid = $1 for no key update`, provider)
		batch.Queue(setAggregatesStatement, pgx.NamedArgs{
			"provider":   provider,
			"expected":   expected,
			"aggregates": aggregates,
			"cause":      inventory.CauseAggregates,
			"actor":      db.Actor(ctx),
			"request":    tracing.RequestIDsOf(ctx).ID,
		}).Exec(func(tag pgconn.CommandTag) error {
			done = tag.RowsAffected() == 1
			return nil
		})
		if r := db.RecorderOf(ctx); r != nil {
			r.QueueRecordIfMarked(batch, db.Change{
				Type:   providerType,
				ID:     provider,
				Before: &expected,
				After:  new(expected + 1),
			})
		}
	})
	if err != nil {
		return false, fmt.Errorf("set aggregates of provider %s: %w", provider, err)
	}
	return done, nil
}
