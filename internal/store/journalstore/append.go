package journalstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// wakeDelay is the maximum time from the recording of a blocked entry until the workflow of the entry starts.
// A blocked entry must wait for other entries, its blockers. If the last blocker completes earlier, the
// workflow starts then.
const wakeDelay = 2 * time.Second

// Append records changes as journal entries in the caller's transaction,
// enqueues a note for each entry, and returns the numbers of the entries.
func Append(ctx context.Context, tx db.Tx, changes []journal.Change) ([]int64, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	seqs, nudges := make([]int64, len(changes)), make([]contract.Nudge, len(changes))
	batch := &pgx.Batch{}
	for i, c := range changes {
		queueEntry(batch, c, &seqs[i], &nudges[i])
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("record changes in the journal: %w", err)
	}
	return seqs, outbox.Enqueue(ctx, tx, nudges...)
}

// queueEntry queues the insertion of an entry and of its dependencies. queueEntry locks the blockers (`for
// share`), so that none of them completes before the dependencies are committed.
func queueEntry(batch *pgx.Batch, c journal.Change, seq *int64, n *contract.Nudge) {
	types, ids, self := []string{c.Object.Type}, []string{c.Object.ID}, ""
	for _, p := range c.Parents {
		// When the controller updates a parent with a nested collection (a pool with members), it drops the
		// objects in the collection, and berth creates them again. So the delete of such an object waits for
		// the update of its parent.
		if c.Operation != journal.Delete || p.Type == journal.ParentType(c.Object.Type) {
			types, ids = append(types, p.Type), append(ids, p.ID)
		}
	}
	if c.Operation == journal.Delete || journal.NestedType(c.Object.Type) != "" {
		self = parentKey(c.Object)
	}
	data := string(c.Data)
	if data == "" {
		data = "null"
	}
	batch.Queue(`
		with blocker as (
			select e.seq
			from journal_entry e
			where e.finished_at is null and e.seq = any(array(
				select newest.seq
				from unnest($1::text[], $2::text[]) as o (object_type, object_id)
				cross join lateral (
					select l.seq
					from journal_entry l
					where l.object_type = o.object_type and l.object_id = o.object_id and l.finished_at is null
					order by l.seq desc
					limit 1) as newest
				union
				select max(c.seq)
				from journal_entry c
				where $3::text <> '' and c.parents @> array[$3::text] and c.finished_at is null
				group by c.object_type, c.object_id))
			order by e.seq
			for share of e),
		entry as (
			insert into journal_entry (object_type, object_id, operation, data, parents, project, name)
			values ($1[1], $2[1], $4, $5, $6, $7, $8)
			returning seq),
		dep as (
			insert into journal_dep (entry, waits_for)
			select entry.seq, blocker.seq
			from entry cross join blocker)
		select seq, array(select seq from blocker order by seq)
		from entry`,
		types, ids, self, c.Operation, data, parentKeys(c), c.Project, c.Name,
	).QueryRow(func(row pgx.Row) error {
		var inserted int64
		var blockers []int64
		if err := row.Scan(&inserted, &blockers); err != nil {
			return fmt.Errorf("record %s of %s %s: %w", c.Operation, c.Object.Type, c.Object.ID, err)
		}
		*seq = inserted
		e := journal.Entry{
			Seq:       inserted,
			Object:    c.Object,
			Operation: c.Operation,
			State:     journal.Pending,
			Project:   c.Project,
			Name:      c.Name,
		}
		*n = entryNudge(e, blockers)
		n.NotRunning = true
		return nil
	})
}

// parentKeys returns the keys of the parents of an object, and of the other objects that it mentions now or
// mentioned before the change. The delete of each of them waits for the entry of this change.
func parentKeys(c journal.Change) []string {
	keys := []string{}
	for _, p := range slices.Concat(c.Parents, c.Mentioned) {
		keys = append(keys, parentKey(p))
	}
	return keys
}

// parentKey returns the text that stands for a parent object in the column `parents` of journal_entry and
// mirror_object.
func parentKey(r journal.Ref) string { return r.Type + "/" + r.ID }

// entryNudge returns the nudge for the workflow of an entry. The nudge of a blocked entry is delayed by
// wakeDelay.
func entryNudge(e journal.Entry, blockers []int64) contract.Nudge {
	n := contract.Nudge{
		Workflow: contract.JournalEntry,
		ID:       entryID(e.Seq),
		Summary:  journal.Summary(e),
		// the status is set below if the entry is blocked
		Attributes: contract.Attributes{
			Project:  e.Project,
			Resource: e.Object.Type,
		},
	}
	if len(blockers) > 0 {
		n.Delay, n.Attributes.Status = wakeDelay, string(e.State)
	}
	for _, b := range blockers[:min(len(blockers), maxShownBlockers)] {
		n.Attributes.WaitingFor = append(n.Attributes.WaitingFor, entryID(b))
	}
	return n
}

// maxShownBlockers is the maximum number of an entry's blockers that the search attributes of its workflow
// name.
const maxShownBlockers = 20

func entryID(seq int64) string { return contract.JournalID(strconv.FormatInt(seq, 10)) }

// EntryColumns lists the columns that ScanEntry reads.
const EntryColumns = `seq, object_type, object_id, operation, data, state, attempt, failures, maybe_applied, project, name, last_error,
	created_at, taken_at, finished_at, retry_at, sent_by`

// entryRow is a row of EntryColumns.
type entryRow struct {
	Seq          int64
	ObjectType   string
	ObjectID     string
	Operation    journal.Operation
	Data         json.RawMessage
	State        journal.State
	Attempt      int
	Failures     int
	MaybeApplied bool
	Project      string
	Name         string
	LastError    string
	CreatedAt    time.Time
	TakenAt      *time.Time
	FinishedAt   *time.Time
	RetryAt      *time.Time
	SentBy       *int64
}

func (r entryRow) entry() journal.Entry {
	return journal.Entry{
		Seq:          r.Seq,
		Object:       journal.Ref{Type: r.ObjectType, ID: r.ObjectID},
		Operation:    r.Operation,
		Data:         r.Data,
		State:        r.State,
		Attempt:      r.Attempt,
		Failures:     r.Failures,
		MaybeApplied: r.MaybeApplied,
		Project:      r.Project,
		Name:         r.Name,
		LastError:    r.LastError,
		CreatedAt:    r.CreatedAt,
		TakenAt:      r.TakenAt,
		FinishedAt:   r.FinishedAt,
		RetryAt:      r.RetryAt,
		SentBy:       r.SentBy,
	}
}

// ScanEntry reads a row of EntryColumns.
func ScanEntry(row pgx.CollectableRow) (journal.Entry, error) {
	r, err := pgx.RowToStructByName[entryRow](row)
	return r.entry(), err
}

// queryEntry runs a statement that returns EntryColumns of one entry.
func queryEntry(ctx context.Context, tx db.Tx, sql string, args ...any) (journal.Entry, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return journal.Entry{}, err
	}
	return pgx.CollectExactlyOneRow(rows, ScanEntry)
}

// wakeEntries enqueues notes for entries.
func wakeEntries(ctx context.Context, tx db.Tx, entries ...journal.Entry) error {
	return enqueueNudges(ctx, tx, false, entries...)
}

// enqueueNudges enqueues notes for entries, sorted by number to avoid deadlocks. If `restart` is true, the
// notes also start workflows that have already completed.
func enqueueNudges(ctx context.Context, tx db.Tx, restart bool, entries ...journal.Entry) error {
	slices.SortFunc(entries, func(a, b journal.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	nudges := make([]contract.Nudge, len(entries))
	for i, e := range entries {
		nudges[i] = entryNudge(e, nil)
		nudges[i].Restart = restart
	}
	return outbox.Enqueue(ctx, tx, nudges...)
}
