package inventorystore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
	"berth/internal/tracing"
)

// queueHistory queues the insertion of history entries for changed generations. The caller must call
// queueHistory after it has queued the statements that lock the changed rows, so that the history entries of
// a consumer or provider have the same order as the writes. If a change has no actor, the history entry of
// the change gets the actor and the request ID in ctx.
func queueHistory(
	ctx context.Context,
	batch *pgx.Batch,
	cause inventory.Cause,
	changes ...inventory.GenerationChange,
) {
	if len(changes) == 0 {
		return
	}
	n := len(changes)
	actors, requests := make([]string, n), make([]string, n)
	consumers, providers := make([]*string, n), make([]*string, n)
	consumerFrom, consumerTo := make([]*int64, n), make([]*int64, n)
	providerFrom, providerTo := make([]*int64, n), make([]*int64, n)
	for i, c := range changes {
		actors[i], requests[i] = c.Actor, c.RequestID
		if c.Actor == "" {
			actors[i], requests[i] = db.Actor(ctx), tracing.RequestIDsOf(ctx).ID
		}
		if s := c.Consumer; s != nil {
			consumers[i], consumerFrom[i], consumerTo[i] = &s.UUID, s.From, s.To
		}
		if s := c.Provider; s != nil {
			providers[i], providerFrom[i], providerTo[i] = &s.UUID, s.From, s.To
		}
	}
	batch.Queue(`
		insert into generation_change (cause, actor, consumer, consumer_from, consumer_to, provider, provider_from, provider_to, request_id)
		select $1, c.actor, c.consumer, c.consumer_from, c.consumer_to, c.provider, c.provider_from, c.provider_to, nullif(c.request_id, '')
		from unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[], $9::text[])
			as c (actor, consumer, consumer_from, consumer_to, provider, provider_from, provider_to, request_id)`,
		cause, actors, consumers, consumerFrom, consumerTo, providers, providerFrom, providerTo, requests)
}

// ConsumerHistory returns at most `limit` changes of a consumer's generation, newest first. If `before` is
// not 0, ConsumerHistory returns only changes whose ID is smaller than `before`.
func (s *Store) ConsumerHistory(
	ctx context.Context,
	consumer string,
	before int64,
	limit int,
) ([]inventory.GenerationChange, error) {
	return s.history(ctx, `consumer = $1`, consumer, before, limit)
}

// ProviderHistory returns at most `limit` changes of a provider's generation, newest first. If `before` is
// not 0, ProviderHistory returns only changes whose ID is smaller than `before`.
func (s *Store) ProviderHistory(
	ctx context.Context,
	provider string,
	before int64,
	limit int,
) ([]inventory.GenerationChange, error) {
	return s.history(ctx, `provider = $1`, provider, before, limit)
}

func (s *Store) history(
	ctx context.Context,
	condition, uuid string,
	before int64,
	limit int,
) ([]inventory.GenerationChange, error) {
	changes, err := db.QueryAll(ctx, s.db, scanChange, `
		select id, at, actor, coalesce(request_id, '') as request_id, cause,
			consumer, consumer_from, consumer_to, provider, provider_from, provider_to
		from generation_change
		where `+condition+` and ($2::bigint = 0 or id < $2)
		order by id desc
		limit $3`, uuid, before, limit)
	if err != nil {
		return nil, fmt.Errorf("read generation history of consumer or provider %s: %w", uuid, err)
	}
	return changes, nil
}

// changeRow is a row of the generation history.
type changeRow struct {
	ID                       int64
	At                       time.Time
	Actor                    string
	RequestID                string
	Cause                    inventory.Cause
	Consumer, Provider       *string
	ConsumerFrom, ConsumerTo *int64
	ProviderFrom, ProviderTo *int64
}

func scanChange(row pgx.CollectableRow) (inventory.GenerationChange, error) {
	r, err := pgx.RowToStructByName[changeRow](row)
	c := inventory.GenerationChange{
		ID:        r.ID,
		At:        r.At,
		Actor:     r.Actor,
		RequestID: r.RequestID,
		Cause:     r.Cause,
	}
	if r.Consumer != nil {
		c.Consumer = &inventory.GenerationShift{UUID: *r.Consumer, From: r.ConsumerFrom, To: r.ConsumerTo}
	}
	if r.Provider != nil {
		c.Provider = &inventory.GenerationShift{UUID: *r.Provider, From: r.ProviderFrom, To: r.ProviderTo}
	}
	return c, err
}

// Retention says which entries of the generation history are kept. If a field of Retention is zero, the field
// sets no limit.
type Retention struct {
	Age  time.Duration // maximum age
	Rows int64         // maximum number of entries
}

// TrimHistory deletes entries of the generation history that exceed the retention, oldest first and at most
// `limit`. TrimHistory returns the number of deleted entries.
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
