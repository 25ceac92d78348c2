package inventorystore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// PutAllocations replaces the allocations of one consumer if the consumer is in the state that the writer expects. A write
// that is not allowed returns an *inventory.Fault. Its kind is ConcurrentUpdate if the writer should read again and retry.
func (s *Store) PutAllocations(ctx context.Context, w inventory.ConsumerWrite) error {
	return s.ReplaceAllocations(ctx, []inventory.ConsumerWrite{w})
}

// ReplaceAllocations is PutAllocations for several consumers. Either all writes succeed or none does.
func (s *Store) ReplaceAllocations(ctx context.Context, writes []inventory.ConsumerWrite) error {
	w := NewAllocationWrite(ctx, writes)
	var err error
	if w.locksOneProvider() {
		_, err = s.groupCommit.Do(ctx, w)
	} else {
		err = s.runAllocationTx(ctx, w)
	}
	switch {
	case db.WasOvertaken(err): // every attempt lost against another writer
		return inventory.Faultf(inventory.ConcurrentUpdate, "Inventory and/or allocations changed while attempting to allocate: "+
			"Another thread concurrently updated the data. Please retry your update")
	case err != nil:
		return err
	}
	return w.Fault
}

// runSingleWrite runs a write of one provider: as one statement if possible, otherwise as a transaction.
func (s *Store) runSingleWrite(ctx context.Context, w *AllocationWrite) error {
	if done, err := s.tryAllocationStatement(ctx, w); done || err != nil {
		return err
	}
	return s.runAllocationTx(ctx, w)
}

// runAllocationTx runs writes in one transaction of two round trips. The first one locks and reads, the second one writes.
// Each write is checked in between, and its Fault is set if it is not allowed.
func (s *Store) runAllocationTx(ctx context.Context, writes ...*AllocationWrite) error {
	var t *allocationTx
	err := s.db.InPipelinedTx(ctx, func(reads *pgx.Batch) {
		t = newAllocationTx(writes)
		t.standalone = true
		t.queueReads(reads)
	}, func(tx pgx.Tx, batch *pgx.Batch) error {
		if err := t.apply(ctx, tx); err != nil {
			return err
		}
		t.queueWrites(ctx, batch)
		return nil
	})
	if err != nil {
		return fmt.Errorf("replace allocations: %w", err)
	}
	return nil
}

// ReplaceAllocations replaces the allocations of consumers in the caller's transaction. Each consumer occurs at most once. A
// consumer without allocations is deleted. The generation grows by one for each consumer, for each provider of the new
// allocations, and for each provider of a deleted consumer. If one write is not allowed, nothing is written.
//
// Locks are taken in one order, consumers by UUID and then providers by ID, and every read happens under these locks. Each of
// several concurrent writers therefore either sees the current rows or gets an *inventory.Fault. A caller that already holds
// the lock of a provider must not call this for consumers that others may write; that can cause a deadlock.
func ReplaceAllocations(ctx context.Context, tx db.Tx, writes ...*AllocationWrite) error {
	t := newAllocationTx(writes)
	batch := &pgx.Batch{}
	t.queueReads(batch)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("replace allocations: %w", err)
	}
	if err := t.apply(ctx, tx); err != nil {
		return err
	}
	for _, w := range writes {
		if w.Fault != nil {
			return w.Fault
		}
	}
	batch = &pgx.Batch{}
	t.queueWrites(ctx, batch)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("replace allocations: %w", err)
	}
	return nil
}
