package inventorystore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// queueHistory puts into the batch that generations moved. It stands beside every statement that moves one, and
// after those that lock what moves, so that the entries of one consumer or provider are in the order of its writes.
// Changes without an actor are of the context's.
func queueHistory(ctx context.Context, batch *pgx.Batch, cause inventory.Cause, changes ...inventory.GenerationChange) {
	if len(changes) == 0 {
		return
	}
	n := len(changes)
	actors, consumers, providers := make([]string, n), make([]*string, n), make([]*string, n)
	consumerFrom, consumerTo := make([]*int64, n), make([]*int64, n)
	providerFrom, providerTo := make([]*int64, n), make([]*int64, n)
	for i, c := range changes {
		actors[i] = cmp.Or(c.Actor, db.Actor(ctx))
		if s := c.Consumer; s != nil {
			consumers[i], consumerFrom[i], consumerTo[i] = &s.UUID, s.From, s.To
		}
		if s := c.Provider; s != nil {
			providers[i], providerFrom[i], providerTo[i] = &s.UUID, s.From, s.To
		}
	}
	batch.Queue(`
		insert into generation_change (cause, actor, consumer, consumer_from, consumer_to, provider, provider_from, provider_to)
		select $1, *
		from unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[])`,
		cause, actors, consumers, consumerFrom, consumerTo, providers, providerFrom, providerTo)
}

// ConsumerHistory is how a consumer's generation moved, newest first: at most limit entries, before the one of that
// number, or the newest for 0.
func (s *Store) ConsumerHistory(ctx context.Context, consumer string, before int64, limit int) ([]inventory.GenerationChange, error) {
	return s.history(ctx, `consumer = $1`, consumer, before, limit)
}

// ProviderHistory is the same of a provider.
func (s *Store) ProviderHistory(ctx context.Context, provider string, before int64, limit int) ([]inventory.GenerationChange, error) {
	return s.history(ctx, `provider = $1`, provider, before, limit)
}

func (s *Store) history(ctx context.Context, whose, uuid string, before int64, limit int) ([]inventory.GenerationChange, error) {
	rows, err := s.db.Query(ctx, `
		select id, at, actor, cause, consumer, consumer_from, consumer_to, provider, provider_from, provider_to
		from generation_change
		where `+whose+` and ($2::bigint = 0 or id < $2)
		order by id desc
		limit $3`, uuid, before, limit)
	if err != nil {
		return nil, fmt.Errorf("history of %s: %w", uuid, err)
	}
	changes, err := pgx.CollectRows(rows, scanChange)
	if err != nil {
		return nil, fmt.Errorf("history of %s: %w", uuid, err)
	}
	return changes, nil
}

func scanChange(row pgx.CollectableRow) (inventory.GenerationChange, error) {
	var c inventory.GenerationChange
	var consumer, provider *string
	var k, p inventory.GenerationShift
	err := row.Scan(&c.ID, &c.At, &c.Actor, &c.Cause, &consumer, &k.From, &k.To, &provider, &p.From, &p.To)
	if consumer != nil {
		k.UUID = *consumer
		c.Consumer = &k
	}
	if provider != nil {
		p.UUID = *provider
		c.Provider = &p
	}
	return c, err
}

// Retention is how much of the generation history is kept; a zero field does not limit it.
type Retention struct {
	Age  time.Duration // older entries go
	Rows int64         // so many of the newest stay
}

// TrimHistory deletes up to limit of the oldest entries of the generation history that are too many or too old, and
// returns how many those were.
func (s *Store) TrimHistory(ctx context.Context, keep Retention, limit int) (int64, error) {
	tag, err := s.db.Exec(ctx, `
		delete from generation_change
		where id = any (array(
			select id
			from (select id, at from generation_change order by id limit $3) as oldest
			where $1::bigint > 0 and at < clock_timestamp() - $1 * interval '1 microsecond'
				or $2::bigint > 0 and id <= (select max(id) from generation_change) - $2))`,
		keep.Age.Microseconds(), keep.Rows, limit)
	if err != nil {
		return 0, fmt.Errorf("trim the generation history: %w", err)
	}
	return tag.RowsAffected(), nil
}
