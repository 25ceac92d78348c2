package inventorystore

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// queueWrites queues the statements that write the results of the allowed writes. If the allowed writes
// change nothing, queueWrites queues no statement, and the transaction is rolled back.
func (t *allocationTx) queueWrites(ctx context.Context, batch *pgx.Batch) {
	if len(t.changes) == 0 {
		return
	}
	var allowed []inventory.ConsumerWrite
	for _, w := range t.writes {
		if w.Fault == nil {
			allowed = append(allowed, w.Writes...)
		}
	}
	slices.SortFunc(allowed, compareConsumers)
	t.queueConsumers(batch, allowed)
	t.queueAllocations(batch, allowed)
	t.queueGenerations(batch)
	queueHistory(ctx, batch, inventory.CauseAllocations, t.changes...)
	t.queueAudit(batch)
}

// queueAudit queues the audit records of the allowed writes, each of which may belong to another request.
func (t *allocationTx) queueAudit(batch *pgx.Batch) {
	for _, w := range t.writes {
		if w.recorder == nil || w.Fault != nil {
			continue
		}
		var changes []db.Change
		for _, c := range w.Writes {
			if s := t.shifts[c.Consumer]; s.From != nil || s.To != nil {
				changes = append(changes, consumerChange(s))
			}
		}
		if len(changes) > 0 {
			w.recorder.QueueRecords(batch, changes)
		}
	}
}

// consumerChange returns a change of a consumer for the audit log.
func consumerChange(s *inventory.GenerationShift) db.Change {
	return db.Change{
		Type:   "consumer",
		ID:     s.UUID,
		Before: s.From,
		After:  s.To,
	}
}

// queueConsumers queues the statements that create the new consumers, update the existing consumers and
// delete their current allocations, and delete the consumers that get no new allocations. If another writer
// creates one of the new consumers after the transaction has read its rows, the transaction fails and is
// retried.
func (t *allocationTx) queueConsumers(batch *pgx.Batch, writes []inventory.ConsumerWrite) {
	var uuids, projects, users []string
	var types []*string
	var deleted, updated []int64
	for _, c := range writes {
		row, exists := t.consumers[c.Consumer]
		switch {
		case exists && len(c.Allocations) == 0:
			deleted = append(deleted, row.id)
		case exists:
			updated = append(updated, row.id)
			batch.Queue(`
				update consumer
				set project = $2, user_id = $3, type = coalesce($4, type), generation = generation + 1, updated_at = now()
				where id = $1`, row.id, c.Project, c.User, c.Type)
		case len(c.Allocations) > 0:
			uuids = append(uuids, c.Consumer)
			projects = append(projects, c.Project)
			users = append(users, c.User)
			types = append(types, c.Type)
		}
	}
	if len(deleted) > 0 {
		batch.Queue(`delete from consumer where id = any($1)`, deleted)
	}
	if len(updated) > 0 {
		batch.Queue(`delete from allocation where consumer_id = any($1)`, updated)
	}
	if len(uuids) > 0 {
		batch.Queue(`
			insert into consumer (uuid, project, user_id, type, generation)
			select *, 1
			from unnest($1::text[], $2::text[], $3::text[], $4::text[])`, uuids, projects, users, types)
	}
}

func (t *allocationTx) queueAllocations(batch *pgx.Batch, writes []inventory.ConsumerWrite) {
	var consumers []string
	var providers, amounts []int64
	var classes, positions []int32
	for _, c := range writes {
		for position, key := range c.Keys() {
			i := t.inventories[key]
			consumers = append(consumers, c.Consumer)
			providers = append(providers, i.providerID)
			classes = append(classes, i.classID)
			amounts = append(amounts, c.Allocations[key.Provider][key.Class])
			positions = append(positions, int32(position))
		}
	}
	if len(consumers) == 0 {
		return
	}
	batch.Queue(`
		insert into allocation (consumer_id, provider_id, class_id, amount, position)
		select (select id from consumer where uuid = new.consumer), new.provider, new.class, new.amount, new.position
		from unnest($1::text[], $2::bigint[], $3::integer[], $4::bigint[], $5::integer[]) as new (consumer, provider, class, amount, position)`,
		consumers, providers, classes, amounts, positions)
}

// queueGenerations queues the statements that increase the generations of the providers. One statement
// increases the generations of all providers that have the same number of writes.
func (t *allocationTx) queueGenerations(batch *pgx.Batch) {
	providers := map[int64][]int64{} // IDs by increment
	for _, p := range t.providers {
		if increment := p.increments - t.incremented; increment != 0 {
			providers[increment] = append(providers[increment], p.id)
		}
	}
	for increment, ids := range providers {
		batch.Queue(`
			update provider
			set generation = generation + $2, updated_at = now()
			where id = any($1)`, ids, increment)
	}
}
