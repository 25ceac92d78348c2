package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/store/db"
	"berth/internal/tracing"
)

// Enqueue writes a note for each nudge (the request that a workflow run and read its row again), at the end
// of the caller's transaction. If a note of the same workflow already waits, Enqueue merges the nudge into
// the waiting note. The merged note becomes due at the earlier of the two times. The note names the request
// and the trace of the context. If a relay has already tried to deliver the note, Enqueue clears its
// NotRunning (the column `fresh`), because the workflow may be running by now.
func Enqueue(ctx context.Context, tx db.Tx, nudges ...contract.Nudge) error {
	for _, n := range nudges {
		if err := queueNote(ctx, tx, n, upsertNote(``, ``)); err != nil {
			return err
		}
	}
	return nil
}

// EnqueueLast enqueues the last nudge of a workflow in the transaction that deletes the row of its object. If
// no relay has tried to deliver the first note of the workflow, the workflow cannot be running. EnqueueLast
// then deletes this note instead, because the workflow would only find that its row is deleted. If `hasWork`
// is true, the workflow still has work after the deletion, and EnqueueLast does the same as Enqueue.
func EnqueueLast(ctx context.Context, tx db.Tx, n contract.Nudge, hasWork bool) error {
	if hasWork {
		return Enqueue(ctx, tx, n)
	}
	return queueNote(ctx, tx, n, upsertNote(`
		with unstarted as (
			delete from note
			where workflow_id = $1 and fresh and attempts = 0
			returning 1)`, `
		where not exists (select from unstarted)`))
}

// upsertNote returns the statement that writes a note. The text `with` stands before the statement, and the
// text `where` is a condition for the note.
func upsertNote(with, where string) string {
	return with + `
		insert into note (workflow_id, workflow, fresh, summary, attributes, due_at, seen, restart, priority, traceparent,
			request_id, global_request_id)
		select $1, $2, $3, $4, $5, now() + $6::interval, $7, $8, $9, nullif($10, ''), nullif($11, ''), nullif($12, '')` +
		where + `
		on conflict (workflow_id) do update
		set version = note.version + 1,
			fresh = note.fresh and note.attempts = 0,
			due_at = least(note.due_at, excluded.due_at),
			restart = note.restart or excluded.restart,
			priority = least(note.priority, excluded.priority),
			traceparent = coalesce(excluded.traceparent, note.traceparent),
			request_id = coalesce(excluded.request_id, note.request_id),
			global_request_id = case
				when excluded.request_id is null then note.global_request_id
				else excluded.global_request_id end`
}

// queueNote queues a statement of upsertNote for the end of the transaction.
func queueNote(ctx context.Context, tx db.Tx, n contract.Nudge, statement string) error {
	attributes, err := json.Marshal(n.Attributes)
	if err != nil {
		return fmt.Errorf("encode the note for %s: %w", n.ID, err)
	}
	if n.Delay <= 0 {
		tx.NotifyRelays()
	}
	request := tracing.RequestIDsOf(ctx)
	tx.QueueLast(
		n.ID,
		statement,
		n.ID,
		n.Workflow,
		n.NotRunning,
		n.Summary,
		attributes,
		n.Delay,
		n.PortStatus,
		n.Restart,
		priority(n.Workflow),
		tracing.Traceparent(ctx),
		request.ID,
		request.Global,
	)
	return nil
}

// Claim returns up to `limit` due notes and hides them from other relays for the duration `claim`. Claim
// takes urgent notes first, then normal notes, then bulk notes. Claim returns no notes if the database is
// bound to another Temporal namespace than the given namespace. If a relay dies, the relay's claim expires,
// and another relay can claim and deliver the notes.
func (s *Store) Claim(
	ctx context.Context,
	namespace string,
	limit int,
	claim time.Duration,
) ([]contract.Note, error) {
	return s.ClaimShares(ctx, namespace, limit, Shares{}, claim)
}

// ClaimShares does the same as Claim, but in addition to the urgent notes claims at least as many normal and
// bulk notes as `least` says, if so many are due.
func (s *Store) ClaimShares(
	ctx context.Context,
	namespace string,
	limit int,
	least Shares,
	claim time.Duration,
) ([]contract.Note, error) {
	notes, err := db.QueryAll(ctx, s.db, ScanNote, `
		with urgent as materialized (`+selectDue(urgent, "$1::bigint")+`),
		normal as materialized (`+selectDue(normal, "greatest($1 - (select count(*) from urgent), $4)")+`),
		bulk as materialized (`+selectDue(bulk, "greatest($1 - (select count(*) from urgent) - (select count(*) from normal), $5)")+`)
		update note
		set attempts = attempts + 1, first_due_at = coalesce(first_due_at, due_at), due_at = now() + $2::interval
		where workflow_id in (select workflow_id from urgent union all select workflow_id from normal union all select workflow_id from bulk)
		returning `+noteColumns, limit, claim, namespace, least.Normal, least.Bulk)
	if err != nil {
		return nil, fmt.Errorf("claim notes: %w", err)
	}
	byPriority := func(a, b contract.Note) int { return priority(a.Workflow) - priority(b.Workflow) }
	slices.SortStableFunc(notes, byPriority)
	return notes, nil
}

// selectDue returns the SQL that locks at most `limit` due notes of a priority and selects their workflow
// IDs; `limit` is an SQL expression.
func selectDue(priority int, limit string) string {
	return fmt.Sprintf(`
			select workflow_id
			from note
			where priority = %d and due_at <= now() and `+unlessBoundElsewhere+`
			order by due_at
			limit %s
			for update skip locked`, priority, limit)
}

// noteColumns lists the columns that ScanNote reads.
const noteColumns = `workflow_id, workflow, fresh, restart, summary, attributes, case when version = 1 then seen end, version, created_at, attempts, refusals,
	coalesce(traceparent, ''), coalesce(request_id, ''), coalesce(global_request_id, '')`

// ScanNote reads a claimed note.
func ScanNote(row pgx.CollectableRow) (contract.Note, error) {
	var n contract.Note
	err := row.Scan(
		&n.ID,
		&n.Workflow,
		&n.NotRunning,
		&n.Restart,
		&n.Summary,
		&n.Attributes,
		&n.PortStatus,
		&n.Version,
		&n.CreatedAt,
		&n.Attempts,
		&n.Refusals,
		&n.Origin.Traceparent,
		&n.Origin.RequestID,
		&n.Origin.GlobalRequestID,
	)
	return n, err
}

// Settle deletes notes that were delivered to the given namespace. If a newer nudge was merged into a note
// during the delivery, Settle does not delete this note, but makes it due now; so it does with a newer note
// of the same workflow, if another relay has delivered the note meanwhile because the claim had expired.
// Settle deletes no notes if the database was bound to another namespace during the delivery.
func (s *Store) Settle(ctx context.Context, namespace string, delivered []contract.Note) error {
	ids, versions := make([]string, len(delivered)), make([]int64, len(delivered))
	created := make([]time.Time, len(delivered))
	for i, n := range delivered {
		ids[i], versions[i], created[i] = n.ID, n.Version, n.CreatedAt
	}
	err := s.db.InBatch(ctx, func(batch *pgx.Batch) {
		batch.Queue(`
			delete from note
			using unnest($1::text[], $2::bigint[], $4::timestamptz[]) as d (workflow_id, version, created_at)
			where note.workflow_id = d.workflow_id and note.version = d.version and note.created_at = d.created_at
				and `+unlessBoundElsewhere, ids, versions, namespace, created)
		batch.Queue(`
			update note
			set due_at = now(), first_due_at = null, refusals = 0, set_aside_at = null
			where workflow_id = any($1)`, ids)
	})
	if err != nil {
		return fmt.Errorf("settle notes: %w", err)
	}
	return nil
}

// Defer postpones an undeliverable note and stores the reason.
func (s *Store) Defer(ctx context.Context, n contract.Note, after time.Duration, reason string) error {
	_, err := s.db.Exec(ctx, `
		update note
		set due_at = now() + $2::interval, last_error = $3
		where workflow_id = $1`, n.ID, after, reason)
	if err != nil {
		return fmt.Errorf("defer note: %w", err)
	}
	return nil
}

// Backlog is the number and age of the notes that wait for delivery.
type Backlog struct {
	Notes  int64         // number of due notes, including claimed ones
	Oldest time.Duration // age of the oldest due note
}

// Backlog counts the notes that are due. Notes that are set aside do not count: Temporal refuses them for
// reasons of their own, so they say nothing about the delivery of other notes.
func (s *Store) Backlog(ctx context.Context) (Backlog, error) {
	var b Backlog
	err := s.db.QueryRow(ctx, `
		select count(*), coalesce(now() - min(created_at), interval '0')
		from note
		where (due_at <= now() or attempts > 0) and set_aside_at is null`).Scan(&b.Notes, &b.Oldest)
	if err != nil {
		return b, fmt.Errorf("count notes: %w", err)
	}
	return b, nil
}

// NextDue returns the time until the note that is due first; `ok` is false if no note exists.
func (s *Store) NextDue(ctx context.Context) (wait time.Duration, ok bool, err error) {
	var next *time.Duration
	err = s.db.QueryRow(ctx, `
		select least(
			(select min(due_at) from note where priority = 0),
			(select min(due_at) from note where priority = 1),
			(select min(due_at) from note where priority = 2)) - now()`).Scan(&next)
	if err != nil || next == nil {
		return 0, false, err
	}
	return max(*next, 0), true, nil
}

// Listen calls `wake` at its start and whenever notes that are due immediately are enqueued, until ctx ends
// or the connection is lost.
func (s *Store) Listen(ctx context.Context, wake func()) error {
	conn, err := s.db.Session(ctx)
	if err != nil {
		return fmt.Errorf("listen for notes: %w", err)
	}
	defer db.CloseSession(ctx, conn)
	if _, err := conn.Exec(ctx, `listen `+db.NoteChannel); err != nil {
		return fmt.Errorf("listen for notes: %w", err)
	}
	wake()
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return fmt.Errorf("listen for notes: %w", err)
		}
		wake()
	}
}
