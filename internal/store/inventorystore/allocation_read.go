package inventorystore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/coalesce"
	"berth/internal/inventory"
	"berth/internal/store/db"
)

const (
	// maxGroupRead is the largest number of consumers that one query reads.
	maxGroupRead = 32
	// groupReadTimeout is the maximum duration of a query that several readers share.
	groupReadTimeout = 2 * db.StatementTimeout
)

// consumerRead is the request for the allocations of one consumer.
type consumerRead struct {
	consumer string // UUID
	caller   string // whose statements of the database it counts among
}

// groupRead has one queue of reads for each caller. A read that arrives while no other one of its caller runs
// is executed at once. The reads that arrive while a query runs share the next query, so that PostgreSQL and
// berth have the costs of a query once. A query begins after all its reads have arrived, so that each reader
// sees everything that was committed before.
type groupRead = coalesce.Batcher[consumerRead, inventory.ConsumerAllocations]

// queuedRead is a read in the queue of its caller.
type queuedRead = coalesce.Call[consumerRead, inventory.ConsumerAllocations]

func newGroupRead(s *Store) *groupRead {
	return coalesce.NewBatcher(coalesce.Config[consumerRead, inventory.ConsumerAllocations]{
		Run:     s.runGroupRead,
		Queue:   func(r consumerRead) string { return r.caller },
		MaxSize: maxGroupRead,
		Timeout: groupReadTimeout,
		Inline:  true,
	})
}

// Allocations returns a consumer with its allocations. If the consumer does not exist, Allocations returns
// the zero value of inventory.ConsumerAllocations, but with empty maps instead of nil.
func (s *Store) Allocations(ctx context.Context, consumer string) (inventory.ConsumerAllocations, error) {
	class, client := db.CallerOf(ctx)
	all, err := s.groupRead.Do(ctx, consumerRead{consumer: consumer, caller: class + "\x00" + client})
	if ctx.Err() != nil {
		err = db.Abandoned(err, false)
	}
	if err != nil {
		return inventory.ConsumerAllocations{}, fmt.Errorf("read allocations of consumer %s: %w", consumer, err)
	}
	return all, nil
}

// runGroupRead reads the consumers of a batch with one query.
func (s *Store) runGroupRead(ctx context.Context, batch []*queuedRead) {
	consumers := make([]string, len(batch))
	for i, c := range batch {
		consumers[i] = c.Item.consumer
	}
	rows, err := s.readAllocations(ctx, consumers)
	for _, c := range batch {
		if err != nil {
			c.Finish(inventory.ConsumerAllocations{}, err)
		} else {
			c.Finish(consumerAllocations(rows[c.Item.consumer]), nil)
		}
	}
}

// allocationRow is a result row with one allocation of a consumer.
type allocationRow struct {
	consumer           string
	project            string
	user               string
	kind               *string
	generation         int64
	provider           string
	providerGeneration int64
	class              string
	amount             int64
	createdAt          time.Time
}

// readAllocations returns the allocations of consumers, by the UUID of the consumer.
func (s *Store) readAllocations(ctx context.Context, consumers []string) (map[string][]allocationRow, error) {
	rows, err := s.db.Query(ctx, `
		select k.uuid, coalesce(k.project, ''), coalesce(k.user_id, ''), k.type, k.generation,
			p.uuid, p.generation, c.name, a.amount, a.created_at
		from consumer k
		join allocation a on a.consumer_id = k.id
		join provider p on p.id = a.provider_id
		join resource_class c on c.id = a.class_id
		where k.uuid = any($1)
		order by a.position, p.id, c.id`, consumers)
	if err != nil {
		return nil, err
	}
	all := make(map[string][]allocationRow, len(consumers))
	var r allocationRow
	_, err = pgx.ForEachRow(rows, []any{
		&r.consumer, &r.project, &r.user, &r.kind, &r.generation,
		&r.provider, &r.providerGeneration, &r.class, &r.amount, &r.createdAt,
	}, func() error {
		all[r.consumer] = append(all[r.consumer], r)
		return nil
	})
	return all, err
}

// consumerAllocations returns the consumer that the rows are about.
func consumerAllocations(rows []allocationRow) inventory.ConsumerAllocations {
	all := inventory.ConsumerAllocations{
		Allocations:         inventory.Allocations{},
		ProviderGenerations: map[string]int64{},
	}
	for _, r := range rows {
		all.Project, all.User, all.Type, all.Generation, all.ChangedAt = r.project, r.user, r.kind, r.generation, r.createdAt
		if all.Allocations[r.provider] == nil {
			all.Allocations[r.provider] = map[string]int64{}
		}
		all.Allocations[r.provider][r.class] = r.amount
		all.Order = append(all.Order, inventory.InventoryKey{Provider: r.provider, Class: r.class})
		all.ProviderGenerations[r.provider] = r.providerGeneration
	}
	return all
}
