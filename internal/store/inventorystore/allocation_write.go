package inventorystore

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
)

// queueWrites writes what became of the admitted replacements. If that is nothing, the transaction is to be given up.
func (l *ledger) queueWrites(ctx context.Context, batch *pgx.Batch) {
	if len(l.changes) == 0 {
		return
	}
	var writes []inventory.ConsumerWrite
	for _, r := range l.replacements {
		if r.Refusal == nil {
			writes = append(writes, r.Writes...)
		}
	}
	slices.SortFunc(writes, byConsumer)
	l.queueConsumers(batch, writes)
	l.queueAllocations(batch, writes)
	l.queueGenerations(batch)
	queueHistory(ctx, batch, inventory.CauseAllocations, l.changes...)
}

// queueConsumers creates the consumers that are new, changes those that were there, and takes from them what they
// held; who shall hold nothing goes. A consumer that somebody else has created meanwhile fails the transaction,
// which is then run again.
func (l *ledger) queueConsumers(batch *pgx.Batch, writes []inventory.ConsumerWrite) {
	var uuids, projects, users []string
	var kinds []*string
	var emptied, cleared []int64
	for _, w := range writes {
		a, exists := l.consumers[w.Consumer]
		switch {
		case exists && len(w.Allocations) == 0:
			emptied = append(emptied, a.id)
		case exists:
			cleared = append(cleared, a.id)
			batch.Queue(`
				update consumer
				set project = $2, user_id = $3, type = coalesce($4, type), generation = generation + 1, updated_at = now()
				where id = $1`, a.id, w.Project, w.User, w.Type)
		case len(w.Allocations) > 0:
			uuids, projects, users, kinds = append(uuids, w.Consumer), append(projects, w.Project), append(users, w.User), append(kinds, w.Type)
		}
	}
	if len(emptied) > 0 {
		batch.Queue(`delete from consumer where id = any($1)`, emptied)
	}
	if len(cleared) > 0 {
		batch.Queue(`delete from allocation where consumer_id = any($1)`, cleared)
	}
	if len(uuids) > 0 {
		batch.Queue(`
			insert into consumer (uuid, project, user_id, type, generation)
			select *, 1
			from unnest($1::text[], $2::text[], $3::text[], $4::text[])`, uuids, projects, users, kinds)
	}
}

func (l *ledger) queueAllocations(batch *pgx.Batch, writes []inventory.ConsumerWrite) {
	var consumers []string
	var providers, amounts []int64
	var classes []int32
	for _, w := range writes {
		for provider, resources := range w.Allocations {
			for class, amount := range resources {
				s := l.stock[inventory.InventoryKey{Provider: provider, Class: class}]
				consumers, providers = append(consumers, w.Consumer), append(providers, s.provider)
				classes, amounts = append(classes, s.class), append(amounts, amount)
			}
		}
	}
	if len(consumers) == 0 {
		return
	}
	batch.Queue(`
		insert into allocation (consumer_id, provider_id, class_id, amount)
		select (select id from consumer where uuid = new.consumer), new.provider, new.class, new.amount
		from unnest($1::text[], $2::bigint[], $3::integer[], $4::bigint[]) as new (consumer, provider, class, amount)`,
		consumers, providers, classes, amounts)
}

// queueGenerations moves the generations of the providers on, those by the same number of writes together.
func (l *ledger) queueGenerations(batch *pgx.Batch) {
	moved := map[int64][]int64{}
	for _, p := range l.providers {
		if by := p.moved - l.ahead; by != 0 {
			moved[by] = append(moved[by], p.id)
		}
	}
	for by, ids := range moved {
		batch.Queue(`
			update provider
			set generation = generation + $2, updated_at = now()
			where id = any($1)`, ids, by)
	}
}
