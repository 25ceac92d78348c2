package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
)

// PutAllocations replaces what one consumer holds, if the consumer is as the writer expects. Refusals are an
// *inventory.Problem; its Kind tells a lost race (Concurrent: read again and retry) from what does not fit.
func (s *Store) PutAllocations(ctx context.Context, w inventory.ConsumerWrite) error {
	return s.ReplaceAllocations(ctx, []inventory.ConsumerWrite{w})
}

// ReplaceAllocations does the same for several consumers, all or nothing.
func (s *Store) ReplaceAllocations(ctx context.Context, writes []inventory.ConsumerWrite) error {
	r := newReplacement(ctx, writes)
	var err error
	if r.ofOneProvider() {
		err = s.queue(ctx, r)
	} else {
		err = s.settle(ctx, r)
	}
	switch {
	case overtaken(err): // again and again
		return inventory.Refuse(inventory.Concurrent, "Inventory and/or allocations changed while attempting to allocate: "+
			"Another thread concurrently updated the data. Please retry your update")
	case err != nil:
		return err
	}
	return r.refusal
}

// settle is the transaction of some replacements, in two round trips: one locks and reads, and between the two
// they are judged.
func (s *Store) settle(ctx context.Context, all ...*replacement) error {
	var l *ledger
	err := s.inTwoTrips(ctx, func(reads *pgx.Batch) {
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

// replaceAllocations is the step that writes allocations, for transactions of others: leases. Each consumer named
// at most once comes to hold exactly what its write says; one that holds nothing is deleted. The generation of
// every consumer, of every provider in the new allocations and of those that an emptied consumer leaves grows by
// one. If one of the replacements is refused, nothing is written.
//
// Locks are taken in one order, consumers by UUID and then providers by ID, and what is read is read under
// them, so that of several writers each is either right or refused with an *inventory.Problem. A caller that
// has locked a provider already must not come here afterwards for consumers that others may be writing.
func replaceAllocations(ctx context.Context, tx pgx.Tx, all ...*replacement) error {
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
		if r.refusal != nil {
			return r.refusal
		}
	}
	batch = &pgx.Batch{}
	l.queueWrites(ctx, batch)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("replace allocations: %w", err)
	}
	return nil
}

// replacement is one all-or-nothing change of what consumers hold.
type replacement struct {
	actor   string
	writes  []inventory.ConsumerWrite // by consumer
	refusal error                     // an *inventory.Problem, once it is judged
}

func newReplacement(ctx context.Context, writes []inventory.ConsumerWrite) *replacement {
	return &replacement{actor: actorOf(ctx), writes: slices.SortedFunc(slices.Values(writes), byConsumer)}
}

func byConsumer(a, b inventory.ConsumerWrite) int { return cmp.Compare(a.Consumer, b.Consumer) }

// asked lists the providers of the new allocations.
func (r *replacement) asked() []string {
	var all []string
	for _, w := range r.writes {
		all = append(all, w.Allocations.Providers()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ofOneProvider tells whether it locks one provider, whatever is in the books.
func (r *replacement) ofOneProvider() bool {
	emptied := slices.ContainsFunc(r.writes, func(w inventory.ConsumerWrite) bool { return len(w.Allocations) == 0 })
	return !emptied && len(r.asked()) == 1
}

// namesAny tells whether it writes one of the consumers.
func (r *replacement) namesAny(consumers map[string]bool) bool {
	return slices.ContainsFunc(r.writes, func(w inventory.ConsumerWrite) bool { return consumers[w.Consumer] })
}

// overtaken tells whether a consumer has appeared while it was about to be created.
func overtaken(err error) bool { return errors.Is(err, errOvertaken) || violates(err, "consumer_uuid") }
