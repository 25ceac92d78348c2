package inventorystore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/coalesce"
	"berth/internal/inventory"
	"berth/internal/store/db"
)

// PutAllocations replaces the allocations of one consumer if the consumer is in the state that the writer
// expects. If the write is not allowed, PutAllocations returns an *inventory.Fault. If the fault has the kind
// ConcurrentUpdate, the writer should read the consumer again and retry the write.
func (s *Store) PutAllocations(ctx context.Context, w inventory.ConsumerWrite) error {
	return s.ReplaceAllocations(ctx, []inventory.ConsumerWrite{w})
}

// ReplaceAllocations replaces the allocations of several consumers, as PutAllocations does for one.
// ReplaceAllocations either executes all writes or, if one write fails, none of them.
func (s *Store) ReplaceAllocations(ctx context.Context, writes []inventory.ConsumerWrite) error {
	err := s.replaceAllocations(ctx, writes)
	s.conflicts.record(err, inventory.CauseAllocations)
	return err
}

func (s *Store) replaceAllocations(ctx context.Context, writes []inventory.ConsumerWrite) error {
	w := NewAllocationWrite(ctx, writes)
	w.recorder = db.RecorderOf(ctx)
	ctx = db.WithRecorder(ctx, nil) // a transaction may contain the writes of several requests
	var err error
	if w.allocatesFromOneProvider() {
		if _, err = s.groupCommit.Do(ctx, w); ctx.Err() != nil {
			err = db.Abandoned(err, errors.Is(err, coalesce.ErrBegun))
		}
	} else {
		err = s.runAllocationTx(ctx, w)
	}
	switch {
	case db.WasOvertaken(err): // every attempt lost against another writer
		return inventory.Faultf(
			inventory.ConcurrentUpdate,
			"Inventory and/or allocations changed while attempting to allocate: "+
				"Another thread concurrently updated the data. Please retry your update",
		).About(inventory.ConsumerObject, w.consumers()...)
	case err != nil:
		return err
	}
	return w.Fault
}

// runSingleWrite runs a write that allocates from one provider: as one statement if possible, otherwise as a
// transaction.
func (s *Store) runSingleWrite(ctx context.Context, w *AllocationWrite) error {
	if done, err := s.tryAllocationStatement(ctx, w); done || err != nil {
		return err
	}
	return s.runAllocationTx(ctx, w)
}

// runAllocationTx runs writes in one transaction of two round trips. The first round trip locks and reads the
// rows, and the second round trip writes the rows. Between the two round trips, runAllocationTx checks each
// write, and sets the field Fault of each write that is not allowed.
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

// ReplaceAllocations replaces the allocations of consumers in the caller's transaction. No consumer may occur
// in more than one element of `writes`. If a write contains no new allocations for a consumer,
// ReplaceAllocations deletes the consumer. ReplaceAllocations increases by one the generation of each
// consumer, of each provider of the new allocations, and of each provider of a deleted consumer. If one write
// is not allowed, ReplaceAllocations writes nothing.
//
// Every transaction that writes allocations locks rows in the same order: first consumers by UUID, then
// providers by ID. ReplaceAllocations reads a row only after it has locked the row. Therefore, each of
// several concurrent writers either sees the current rows or gets an *inventory.Fault. If the caller's
// transaction already holds the lock of a provider, the caller must not call ReplaceAllocations for consumers
// that other transactions may write, because the transactions can deadlock.
func ReplaceAllocations(ctx context.Context, tx db.Tx, writes ...*AllocationWrite) error {
	_, err := replaceAllocations(ctx, tx, writes...)
	return err
}

// replaceAllocations does the same as ReplaceAllocations, and returns the changes of the consumers'
// generations.
func replaceAllocations(
	ctx context.Context,
	tx db.Tx,
	writes ...*AllocationWrite,
) (map[string]*inventory.GenerationShift, error) {
	t := newAllocationTx(writes)
	batch := &pgx.Batch{}
	t.queueReads(batch)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("replace allocations: %w", err)
	}
	if err := t.apply(ctx, tx); err != nil {
		return nil, err
	}
	for _, w := range writes {
		if w.Fault != nil {
			return nil, w.Fault
		}
	}
	batch = &pgx.Batch{}
	t.queueWrites(ctx, batch)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("replace allocations: %w", err)
	}
	return t.shifts, nil
}
