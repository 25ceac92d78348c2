package inventorystore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/coalesce"
	"berth/internal/store/db"
)

const (
	// maxGroupCommit is the largest number of writes that share a transaction.
	maxGroupCommit = 32
	// groupCommitTimeout limits a transaction that several writes share.
	groupCommitTimeout = 2 * db.StatementTimeout
	// maxGroupCommitWait is the longest time that a queue waits for the writers that it has just answered.
	maxGroupCommitWait = 2 * time.Millisecond
)

// groupCommit contains one queue of writes per provider. A transaction holds the lock of its provider until PostgreSQL has
// written the commit to disk. Writes that arrive meanwhile share the next transaction, so that they do not wait for one disk
// write each. The order of writers in different processes is decided by the locks of the database.
type groupCommit = coalesce.Batcher[*AllocationWrite, struct{}]

// queuedWrite is a write in the queue of its provider.
type queuedWrite = coalesce.Call[*AllocationWrite, struct{}]

// newGroupCommit returns the queues of a store. The first write of an idle queue runs at once. After a shared transaction
// the queue waits for a quarter of that transaction's duration, because the answered writers tend to write again; otherwise
// the writers would alternate in two groups of half the size.
func newGroupCommit(s *Store) *groupCommit {
	return coalesce.NewBatcher(coalesce.Config[*AllocationWrite, struct{}]{
		Run:       s.runGroupCommit,
		Queue:     func(w *AllocationWrite) string { return w.providers()[0] },
		Exclusive: (*AllocationWrite).consumers,
		MaxSize:   maxGroupCommit,
		Timeout:   groupCommitTimeout,
		Inline:    true,
		Linger:    func(_ int, took time.Duration) time.Duration { return min(took/4, maxGroupCommitWait) },
	})
}

// runGroupCommit runs a batch of writes of one provider in one transaction. If PostgreSQL refuses it, each write runs in a
// transaction of its own, so that an invalid write fails no other.
func (s *Store) runGroupCommit(ctx context.Context, batch []*queuedWrite) {
	if len(batch) == 1 {
		batch[0].Finish(struct{}{}, s.runSingleWrite(ctx, batch[0].Item))
		return
	}
	writes := make([]*AllocationWrite, len(batch))
	for i, c := range batch {
		writes[i] = c.Item
	}
	err := s.runAllocationTx(ctx, writes...)
	var refused *pgconn.PgError
	for _, c := range batch {
		result := err
		if errors.As(err, &refused) || db.WasOvertaken(err) {
			result = s.runAllocationTx(ctx, c.Item)
		}
		c.Finish(struct{}{}, result)
	}
}
