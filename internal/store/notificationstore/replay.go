package notificationstore

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// replayDelay is the time from the first request for a replay to the replay. After an outage of berth, all
// agents come back within the time between two of their heartbeats, by default 30 seconds: this is three or
// four replays.
const replayDelay = 10 * time.Second

// Replay marks the notifications that were sent during the last `within` as unsent, because notifications may
// be lost when the broker or an agent's connection fails. Sending a notification again is safe, because each
// notification contains the current state of its object. Replay also repeats what an earlier replay has sent,
// which may be lost, too, but only for `retention` after the first sending: an agent that causes one replay
// after another would otherwise keep all notifications alive and make each replay larger than the one before.
// Of equal notifications, Replay repeats only the newest one.
func (s *Store) Replay(ctx context.Context, within time.Duration) error {
	return s.db.InTx(ctx, func(tx db.Tx) error { return replay(ctx, tx, within) })
}

func replay(ctx context.Context, tx db.Tx, within time.Duration) error {
	networks, err := db.QueryAll(ctx, tx, pgx.RowTo[uuid.UUID], `
		with replayed as (
			update agent_notification
			set sent_at = null, claimed_until = null, at = clock_timestamp()
			where id in (
				select distinct on (network_id, kind, event, object_id, data) id
				from agent_notification
				where sent_at > clock_timestamp() - $1::interval
					and coalesce(first_sent_at, sent_at) > clock_timestamp() - $2::interval
				order by network_id, kind, event, object_id, data, id desc)
			returning network_id)
		select distinct network_id
		from replayed
		order by network_id`, within, retention)
	if err != nil {
		return fmt.Errorf("replay notifications: %w", err)
	}
	nudges := make([]contract.Nudge, len(networks))
	for i, id := range networks {
		nudges[i] = nudge(id, "")
	}
	return outbox.Enqueue(ctx, tx, nudges...)
}

// RequestReplay requests a replay of the notifications that were sent during the last `within`, at the end of
// the caller's transaction. The replay is due after replayDelay, so that one replay serves all agents that
// come back within this time. RequestReplay waits for no other request and for no replay.
func RequestReplay(tx db.Tx, within time.Duration) {
	tx.QueueLast(`agent notification replay`, ReplayRequest(`(select $1::interval as within) request`), within)
}

// RequestReplay requests a replay, as the function RequestReplay does, in a transaction of its own.
func (s *Store) RequestReplay(ctx context.Context, within time.Duration) error {
	return s.db.InTx(ctx, func(tx db.Tx) error {
		RequestReplay(tx, within)
		return nil
	})
}

// ReplayRequest returns the SQL statement that requests a replay, as RequestReplay does, for each row of a
// table expression, which has the column `within`.
func ReplayRequest(from string) string {
	return fmt.Sprintf(`
		insert into notification_replay (since, due_at)
		select clock_timestamp() - within, clock_timestamp() + interval '%d seconds' from %s`, int(replayDelay.Seconds()), from)
}

// ReplayRequested runs the requested replay if one is due, and reports whether it has run. A replay covers
// the periods of all requests that it deletes. A request that is committed later stays and causes the next
// replay. While another process runs a replay, ReplayRequested does not wait for it.
func (s *Store) ReplayRequested(ctx context.Context) (done bool, err error) {
	err = s.db.InTx(ctx, func(tx db.Tx) error {
		var within time.Duration
		err := tx.QueryRow(ctx, `
			with requested as (
				select id, due_at from notification_replay for update skip locked
			), served as (
				delete from notification_replay
				where id in (select id from requested) and exists (select from requested where due_at <= clock_timestamp())
				returning since)
			select clock_timestamp() - min(since) from served having count(*) > 0`).Scan(&within)
		if done = !db.NoRows(err); !done {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the requested replay: %w", err)
		}
		return replay(ctx, tx, within)
	})
	return done && err == nil, err
}
