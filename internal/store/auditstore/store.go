// Package auditstore stores the audit log: who changed which object through which API, and which requests
// berth refused. A transaction of a request writes its audit records together with its commit, without
// another round trip. The sealer moves the records to the hash chain.
package auditstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/auditlog"
	"berth/internal/store/db"
)

// Store reads and writes the audit log.
type Store struct {
	db      *db.DB
	denials *denials
}

// New returns a Store on a database.
func New(d *db.DB) *Store { return &Store{d, newDenials()} }

// insertPending inserts one record. Its cost is part of the cost of every write.
const (
	insertPending    = `insert into audit_pending (record) values ($1)`
	insertAllPending = `insert into audit_pending (record) select text::json from unnest($1::text[]) as new (text)`
)

// Request writes the audit records of one HTTP request.
type Request struct {
	// Record returns a new record with everything that is known about the request. Record is called only for
	// requests that write.
	Record func() auditlog.Record
	// OnlyNamed means that a record is written only for changes that a store names, and not for any
	// transaction that writes. It is set for requests that read, because some of them create what they find
	// missing.
	OnlyNamed bool
}

// QueueRecords implements db.Recorder.
func (r *Request) QueueRecords(batch *pgx.Batch, changes []db.Change) {
	if len(changes) == 0 && !r.OnlyNamed {
		batch.Queue(insertPending, text(r.Record()))
		return
	}
	switch len(changes) {
	case 0:
	case 1:
		batch.Queue(insertPending, r.changed(changes[0]))
	default:
		texts := make([]string, len(changes))
		for i, c := range changes {
			texts[i] = r.changed(c)
		}
		batch.Queue(insertAllPending, texts)
	}
}

// markedGeneration stands in the text of a record for the generation that only the database knows.
const markedGeneration = -1

// QueueRecordIfMarked implements db.Recorder.
func (r *Request) QueueRecordIfMarked(batch *pgx.Batch, c db.Change) {
	if c.After != nil {
		batch.Queue(`insert into audit_pending (record) select $1 where `+db.IsMarked, r.changed(c))
		return
	}
	c.Before = new(int64(markedGeneration))
	batch.Queue(`
		insert into audit_pending (record)
		select replace($1::text, '"before":' || $2::text, '"before":' || `+db.MarkedGeneration+`)::json
		where `+db.IsMarked, r.changed(c), strconv.Itoa(markedGeneration))
}

// changed returns the text of the record of a change.
func (r *Request) changed(c db.Change) string {
	record := r.Record()
	record.ObjectType, record.ObjectID, record.Before, record.After = c.Type, c.ID, c.Before, c.After
	return text(record)
}

func text(r auditlog.Record) string { return string(r.Encode()) }

// Query selects records of the audit log. An empty field selects all records.
type Query struct {
	Newest bool // the newest records first, otherwise the oldest
	// sequence number of the last record on the previous page; 0: begin with the first record
	Marker     int64
	Limit      int
	Project    string
	User       string
	ObjectType string
	ObjectID   string
	Outcome    string
	Since      time.Time // only records of this time or later
	Until      time.Time // only records before this time
}

// conditions returns the conditions of the query in SQL, and their arguments.
func (q Query) conditions() (sql string, args []any) {
	add := func(condition string, value any) {
		args = append(args, value)
		sql += fmt.Sprintf(" and "+condition, len(args))
	}
	if q.Marker > 0 && q.Newest {
		add(`sequence < $%d`, q.Marker)
	} else if q.Marker > 0 {
		add(`sequence > $%d`, q.Marker)
	}
	for _, text := range []struct{ field, value string }{
		{"project", q.Project}, {"user", q.User}, {"object_type", q.ObjectType}, {"object_id", q.ObjectID}, {"outcome", q.Outcome},
	} {
		if text.value != "" {
			add(`record ->> '`+text.field+`' = $%d`, text.value)
		}
	}
	if q.Outcome != "" && q.Outcome != auditlog.Success {
		sql += ` and record ->> 'outcome' <> 'success'` // the condition of an index
	}
	if !q.Since.IsZero() {
		add(`(record ->> 'at') collate "C" >= $%d`, auditlog.FormatTime(q.Since))
	}
	if !q.Until.IsZero() {
		add(`(record ->> 'at') collate "C" < $%d`, auditlog.FormatTime(q.Until))
	}
	return sql, args
}

// Page returns a page of the audit log with the ends of the chain, from one snapshot.
func (s *Store) Page(ctx context.Context, q Query) (p auditlog.Page, err error) {
	err = s.db.InSnapshot(ctx, func(tx db.Tx) error {
		head, anchor, err := ends(ctx, tx, ``)
		if err != nil {
			return err
		}
		p.Head, p.Anchor = head, anchor
		if err := tx.QueryRow(ctx, `select `+countWaiting, MaxWaiting).Scan(&p.Waiting); err != nil {
			return err
		}
		p.Records, err = records(ctx, tx, q)
		return err
	})
	if err != nil {
		return auditlog.Page{}, fmt.Errorf("read the audit log: %w", err)
	}
	if n := len(p.Records); n > 0 && n == q.Limit {
		p.NextMarker = p.Records[n-1].Sequence
	}
	return p, nil
}

func records(ctx context.Context, tx db.Tx, q Query) ([]auditlog.Sealed, error) {
	order := "asc"
	if q.Newest {
		order = "desc"
	}
	conditions, args := q.conditions()
	args = append(args, q.Limit)
	return db.QueryAll(ctx, tx, scanSealed, `
		select sequence, record::text, hash
		from audit_record
		where true`+conditions+`
		order by sequence `+order+`
		limit $`+strconv.Itoa(len(args)), args...)
}

func scanSealed(row pgx.CollectableRow) (r auditlog.Sealed, err error) {
	var record string
	var hash []byte
	if err := row.Scan(&r.Sequence, &record, &hash); err != nil {
		return r, err
	}
	r.Record = []byte(record)
	copy(r.Hash[:], hash)
	return r, nil
}

// State is the state of the audit log.
type State struct {
	Sealed  int64 // number of records that were sealed since the log began
	Waiting int64 // number of records that are not sealed yet, at most MaxWaiting
}

// MaxWaiting is the maximum number of records that State and Page count, so that they read few rows even if
// no process has sealed records for a long time.
const MaxWaiting = 10_000

// countWaiting counts the records that wait, at most $1.
const countWaiting = `(select count(*) from (select from audit_pending limit $1) few)`

// State reads the state of the audit log.
func (s *Store) State(ctx context.Context) (state State, err error) {
	err = s.db.QueryRow(ctx, `
		select (select sequence from audit_chain), `+countWaiting, MaxWaiting).
		Scan(&state.Sealed, &state.Waiting)
	if err != nil {
		return state, fmt.Errorf("read the state of the audit log: %w", err)
	}
	return state, nil
}

// ends reads the head and the anchor of the chain.
func ends(ctx context.Context, q db.Querier, lock string) (head, anchor auditlog.Position, err error) {
	type row struct {
		head, anchor auditlog.Position
	}
	r, err := db.QueryOne(ctx, q, func(found pgx.CollectableRow) (r row, err error) {
		var hash, anchorHash []byte
		err = found.Scan(&r.head.Sequence, &hash, &r.anchor.Sequence, &anchorHash)
		copy(r.head.Hash[:], hash)
		copy(r.anchor.Hash[:], anchorHash)
		return r, err
	}, errLocked, `select sequence, hash, anchor_sequence, anchor_hash from audit_chain`+lock)
	return r.head, r.anchor, err
}
