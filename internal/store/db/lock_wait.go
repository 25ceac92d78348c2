package db

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// LimitLockWait limits each later wait of a transaction for a lock. When a wait ends without the lock, the
// transaction fails with an error for which WasLocked reports true.
func LimitLockWait(ctx context.Context, tx Tx, wait time.Duration) error {
	batch := &pgx.Batch{}
	QueueLockWaitLimit(batch, wait)
	return tx.SendBatch(ctx, batch).Close()
}

// QueueLockWaitLimit queues what LimitLockWait does.
func QueueLockWaitLimit(batch *pgx.Batch, wait time.Duration) {
	batch.Queue(`select set_config('lock_timeout', $1, true)`, milliseconds(wait))
}

// LockHolder is a session of the database for which other sessions wait, because it holds a lock.
type LockHolder struct {
	PID         int32
	User        string
	Application string
	State       string        // for example active or idle in transaction; empty: this user may not see it
	For         time.Duration // since the transaction of the session began
	Waiting     int64         // sessions that wait for this session directly
	Longest     time.Duration // for which a session has waited
	Tables      []string      // for whose locks the sessions wait; a wait for a row names no table
}

// LockHolders lists the sessions for which other sessions wait and whose transactions began before at least
// the given time, those with the longest wait first. A session that itself waits is not listed. If this user
// may not see when a transaction began, the time of the longest wait counts.
func LockHolders(ctx context.Context, url string, atLeast time.Duration) (all []LockHolder, err error) {
	err = withOneConn(ctx, url, func(ctx context.Context, conn *pgx.Conn) error {
		all, err = QueryAll(ctx, conn, pgx.RowToStructByPos[LockHolder], `
			with wait as (
				select l.pid, l.relation, clock_timestamp() - l.waitstart as waited, unnest(pg_blocking_pids(l.pid)) as holder
				from pg_locks l
				join pg_stat_activity a on a.pid = l.pid
				where not l.granted and l.waitstart is not null and a.datname = current_database())
			select h.pid, coalesce(h.usename, ''), coalesce(h.application_name, ''), coalesce(h.state, ''),
				coalesce(clock_timestamp() - h.xact_start, interval '0'), count(distinct w.pid), max(w.waited),
				coalesce(array_agg(distinct w.relation::regclass::text) filter (where w.relation is not null), '{}')
			from wait w
			join pg_stat_activity h on h.pid = w.holder
			where not exists (select from wait o where o.pid = h.pid)
			group by h.pid, h.usename, h.application_name, h.state, h.xact_start
			having coalesce(clock_timestamp() - h.xact_start, max(w.waited)) >= $1::interval
			order by 7 desc, h.pid`, atLeast)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the sessions that hold locks: %w", err)
	}
	return all, nil
}
