package inventorystore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// PutAllocations replaces what one consumer holds, if the consumer is as the writer expects. Refusals are an
// *inventory.Problem; its Kind tells a lost race (Concurrent: read again and retry) from what does not fit.
func (s *Store) PutAllocations(ctx context.Context, w inventory.ConsumerWrite) error {
	return s.ReplaceAllocations(ctx, []inventory.ConsumerWrite{w})
}

// ReplaceAllocations does the same for several consumers, all or nothing.
func (s *Store) ReplaceAllocations(ctx context.Context, writes []inventory.ConsumerWrite) error {
	r := NewAllocationWrite(ctx, writes)
	var err error
	if r.ofOneProvider() {
		err = s.queue(ctx, r)
	} else {
		err = s.settle(ctx, r)
	}
	switch {
	case db.WasOvertaken(err): // again and again
		return inventory.Faultf(inventory.ConcurrentUpdate, "Inventory and/or allocations changed while attempting to allocate: "+
			"Another thread concurrently updated the data. Please retry your update")
	case err != nil:
		return err
	}
	return r.Refusal
}

// settle is the transaction of some replacements, in two round trips: one locks and reads, and between the two
// they are judged.
func (s *Store) settle(ctx context.Context, all ...*AllocationWrite) error {
	var l *ledger
	err := s.db.InPipelinedTx(ctx, func(reads *pgx.Batch) {
		l = newLedger(all)
		l.own = true
		l.queueReads(reads)
	}, func(tx pgx.Tx, writes *pgx.Batch) error {
		if err := l.judge(ctx, tx); err != nil {
			return err
		}
		l.queueWrites(ctx, writes)
		return nil
	})
	if err != nil {
		return fmt.Errorf("replace allocations: %w", err)
	}
	return nil
}

// ReplaceAllocations is the step that writes allocations, for transactions of others: leases. Each consumer named
// at most once comes to hold exactly what its write says; one that holds nothing is deleted. The generation of
// every consumer, of every provider in the new allocations and of those that an emptied consumer leaves grows by
// one. If one of the replacements is refused, nothing is written.
//
// Locks are taken in one order, consumers by UUID and then providers by ID, and what is read is read under
// them, so that of several writers each is either right or refused with an *inventory.Problem. A caller that
// has locked a provider already must not come here afterwards for consumers that others may be writing.
func ReplaceAllocations(ctx context.Context, tx db.Tx, all ...*AllocationWrite) error {
	l := newLedger(all)
	batch := &pgx.Batch{}
	l.queueReads(batch)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("replace allocations: %w", err)
	}
	if err := l.judge(ctx, tx); err != nil {
		return err
	}
	for _, r := range all {
		if r.Refusal != nil {
			return r.Refusal
		}
	}
	batch = &pgx.Batch{}
	l.queueWrites(ctx, batch)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("replace allocations: %w", err)
	}
	return nil
}

// AllocationWrite is one all-or-nothing change of what consumers hold.
type AllocationWrite struct {
	actor   string
	Writes  []inventory.ConsumerWrite // by consumer
	Refusal error                     // an *inventory.Problem, once it is judged
}

func NewAllocationWrite(ctx context.Context, writes []inventory.ConsumerWrite) *AllocationWrite {
	return &AllocationWrite{actor: db.Actor(ctx), Writes: slices.SortedFunc(slices.Values(writes), byConsumer)}
}

func byConsumer(a, b inventory.ConsumerWrite) int { return cmp.Compare(a.Consumer, b.Consumer) }

// asked lists the providers of the new allocations.
func (r *AllocationWrite) asked() []string {
	var all []string
	for _, w := range r.Writes {
		all = append(all, w.Allocations.Providers()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ofOneProvider tells whether it locks one provider, whatever is in the books.
func (r *AllocationWrite) ofOneProvider() bool {
	emptied := slices.ContainsFunc(r.Writes, func(w inventory.ConsumerWrite) bool { return len(w.Allocations) == 0 })
	return !emptied && len(r.asked()) == 1
}

// namesAny tells whether it writes one of the consumers.
func (r *AllocationWrite) namesAny(consumers map[string]bool) bool {
	return slices.ContainsFunc(r.Writes, func(w inventory.ConsumerWrite) bool { return consumers[w.Consumer] })
}
