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
	// groupCommitTimeout is the maximum duration of a transaction that several writes share.
	groupCommitTimeout = 2 * db.StatementTimeout
	// maxGroupCommitWait is the maximum time that a queue waits after a transaction, so that the writers of
	// this transaction can add their next writes.
	maxGroupCommitWait = 2 * time.Millisecond
)

// groupCommit has one queue of writes for each provider. A transaction that writes allocations holds the lock
// of its provider until PostgreSQL has written the commit to disk. All writes of the same provider that
// arrive while a transaction runs share the next transaction, so that they wait for one common disk write
// instead of one disk write each. If several processes write allocations of the same provider, PostgreSQL's
// row locks decide the order of the writes.
type groupCommit = coalesce.Batcher[*AllocationWrite, struct{}]

// queuedWrite is a write of allocations in the queue of its provider.
type queuedWrite = coalesce.Call[*AllocationWrite, struct{}]

// newGroupCommit returns the group commit queues of a store. If a queue is empty, a write that arrives runs
// immediately. After a transaction that several writes shared, the queue waits for a quarter of the
// transaction's duration before it starts the next transaction, because the same writers tend to write again
// soon. If the queue did not wait, the writers would form two groups of half the size that take turns.
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

// runGroupCommit runs a batch of writes of one provider in one transaction. If PostgreSQL rejects the
// transaction, runGroupCommit runs each write in its own transaction, so that one invalid write does not make
// the other writes fail. If the database is unavailable, all writes of the batch fail at once.
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
	for _, c := range batch {
		result := err
		if isRefused(err) {
			result = s.runAllocationTx(ctx, c.Item)
		}
		c.Finish(struct{}{}, result)
	}
}

// isRefused reports whether PostgreSQL rejected a transaction because of its content or because of other
// transactions.
func isRefused(err error) bool {
	var unavailable *db.UnavailableError
	if errors.As(err, &unavailable) && unavailable.Reason != db.Contended {
		return false
	}
	var refused *pgconn.PgError
	return errors.As(err, &refused) || db.WasOvertaken(err)
}
