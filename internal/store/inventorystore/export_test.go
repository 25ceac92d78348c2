package inventorystore

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// ReplaceTogether runs several writes of allocations in one transaction, as a group commit does, and returns
// the result of each write.
func ReplaceTogether(ctx context.Context, s *Store, all ...[]inventory.ConsumerWrite) []error {
	var writes []*AllocationWrite
	for _, w := range all {
		writes = append(writes, NewAllocationWrite(ctx, w))
	}
	err := s.runAllocationTx(ctx, writes...)
	var results []error
	for _, w := range writes {
		results = append(results, cmp.Or(err, w.Fault))
	}
	return results
}

// TryStatement runs a write of allocations as one statement, if possible, and reports whether the statement
// has written.
func TryStatement(ctx context.Context, s *Store, w inventory.ConsumerWrite) (done bool, err error) {
	return s.tryAllocationStatement(ctx, NewAllocationWrite(ctx, []inventory.ConsumerWrite{w}))
}

// WaitingWrites returns the number of writes that wait for a group commit.
func WaitingWrites(s *Store) int { return s.groupCommit.Waiting() }

// GroupCommitQueues returns the number of group commit queues with a running or waiting write.
func GroupCommitQueues(s *Store) int { return s.groupCommit.Queues() }

// WaitingReads returns the number of reads of allocations that wait for a query.
func WaitingReads(s *Store) int { return s.groupRead.Waiting() }

// GroupReadQueues returns the number of queues with a running or waiting read of allocations.
func GroupReadQueues(s *Store) int { return s.groupRead.Queues() }

// RunBatch runs a batch of SQL statements in its own transaction.
func RunBatch(ctx context.Context, s *Store, queue func(*pgx.Batch)) error {
	return s.db.InTx(ctx, func(tx db.Tx) error {
		batch := &pgx.Batch{}
		queue(batch)
		return tx.SendBatch(ctx, batch).Close()
	})
}

// RecordConflict counts a refused write.
func RecordConflict(s *Store, err error, cause inventory.Cause) { s.conflicts.record(err, cause) }

// The limits of the generation conflicts.
const (
	MaxCountedConflicts = maxCountedConflicts
	MaxConflictRows     = maxConflictRows
)

// SetMaxCachedTraits replaces the cache of traits by an empty one for the given number of providers.
func SetMaxCachedTraits(s *Store, n int) { s.traits = newTraitCache(n) }

// CachedTraits returns the number of providers whose traits the store keeps.
func CachedTraits(s *Store) int { return s.traits.Len() }
