package inventorystore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"berth/internal/inventory"
	"berth/internal/store/db"
)

// ConflictInterval is the time after which a process adds the generation conflicts that it has counted to the
// table.
const ConflictInterval = 10 * time.Second

const (
	// maxCountedConflicts is the maximum number of objects and causes for which a process counts conflicts
	// until it adds them to the table. The conflicts of further ones are not counted.
	maxCountedConflicts = 1000
	// maxObjectsOfWrite is the maximum number of objects for which one refused write counts.
	maxObjectsOfWrite = 16
	// conflictTimeout is the maximum time for one write of the counts. It delays the end of the process if
	// the database does not answer.
	conflictTimeout = 2 * time.Second
)

// conflictCounter counts the generation conflicts of this process: the writes that it has refused because
// another writer had changed the generation of a provider or a consumer. A refused write has no transaction,
// and must not cost one, so the counts wait in memory until they are added to the table.
type conflictCounter struct {
	mutex  sync.Mutex
	counts map[conflictKey]conflictCount
}

// conflictKey is the object that another writer has changed, and the kind of the refused write.
type conflictKey struct {
	object inventory.Object
	cause  inventory.Cause
}

type conflictCount struct {
	writes int64
	last   time.Time
}

// record counts a write that was refused with an error. It ignores all errors except faults of the kind
// ConcurrentUpdate.
func (c *conflictCounter) record(err error, cause inventory.Cause) {
	var fault *inventory.Fault
	if !errors.As(err, &fault) || fault.Kind != inventory.ConcurrentUpdate {
		return
	}
	now := time.Now()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, o := range fault.Objects[:min(len(fault.Objects), maxObjectsOfWrite)] {
		c.add(conflictKey{o, cause}, conflictCount{1, now})
	}
}

// add adds to a count. The caller has locked the mutex.
func (c *conflictCounter) add(key conflictKey, n conflictCount) {
	before, known := c.counts[key]
	if known || len(c.counts) < maxCountedConflicts {
		c.counts[key] = conflictCount{before.writes + n.writes, latest(before.last, n.last)}
	}
}

// take returns the counts, and begins again with none.
func (c *conflictCounter) take() map[conflictKey]conflictCount {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	taken := c.counts
	c.counts = map[conflictKey]conflictCount{}
	return taken
}

// restore adds counts that take has returned.
func (c *conflictCounter) restore(taken map[conflictKey]conflictCount) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for key, n := range taken {
		c.add(key, n)
	}
}

// WriteConflicts adds the conflicts that this process counts to the table, after each interval until ctx
// ends, and then once more. A process that is killed loses the counts of its last interval.
func (s *Store) WriteConflicts(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-ticker.C:
		}
		s.tryFlushConflicts(ctx)
	}
}

func (s *Store) tryFlushConflicts(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), conflictTimeout)
	defer cancel()
	if err := s.FlushConflicts(db.WithClass(ctx, "generation conflicts")); err != nil {
		slog.WarnContext(ctx,
			"adding the generation conflicts to the database failed; they are added later", "error", err)
	}
}

// FlushConflicts adds the conflicts that this process has counted to the table, in one statement for all. If
// the write fails, the counts wait for the next one. If the database does not say whether it has committed
// the write, the next one may add the counts a second time.
func (s *Store) FlushConflicts(ctx context.Context) error {
	counts := s.conflicts.take()
	if len(counts) == 0 {
		return nil
	}
	var hours, last []time.Time
	var types, objects, causes []string
	var writes []int64
	for key, n := range counts {
		hours, last = append(hours, n.last.UTC().Truncate(time.Hour)), append(last, n.last)
		types, objects = append(types, string(key.object.Type)), append(objects, key.object.UUID)
		causes, writes = append(causes, string(key.cause)), append(writes, n.writes)
	}
	_, err := s.db.Exec(ctx, `
		insert into generation_conflict (hour, object_type, object_id, cause, writes, last_at)
		select hour, object_type, object_id, cause, writes, last_at
		from unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::timestamptz[])
			as counted (hour, object_type, object_id, cause, writes, last_at)
		order by hour, object_type, object_id, cause
		on conflict (hour, object_type, object_id, cause) do update
		set writes = generation_conflict.writes + excluded.writes,
			last_at = greatest(generation_conflict.last_at, excluded.last_at)`,
		hours, types, objects, causes, writes, last)
	if err != nil {
		s.conflicts.restore(counts)
		return fmt.Errorf("add generation conflicts: %w", err)
	}
	return nil
}
