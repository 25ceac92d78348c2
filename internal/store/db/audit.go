package db

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Change is a change of one object, for the audit log.
type Change struct {
	Type, ID      string
	Before, After *int64 // generation or revision; nil: unknown, or the object did not or does not exist
}

// Recorder queues the audit records of a request's transactions.
type Recorder interface {
	// QueueRecords queues one record for each change. Without a change, QueueRecords queues a record of the
	// object that the request names.
	QueueRecords(batch *pgx.Batch, changes []Change)
	// QueueRecordIfMarked queues a record of a change that is written only if an earlier statement of the
	// batch has selected MarkWritten or MarkDeleted. After MarkDeleted, the generation before the change is
	// that of the mark.
	QueueRecordIfMarked(batch *pgx.Batch, c Change)
}

// MarkWritten and MarkDeleted are SQL expressions for statements that write rows or not, in a batch without
// round trips in between. If one of the expressions is evaluated, IsMarked is true until the end of the
// transaction. MarkDeleted is for statements that return the column generation of a deleted row, and
// MarkedGeneration is this generation.
const (
	MarkWritten      = `set_config('berth.written', 'on', true)`
	MarkDeleted      = `set_config('berth.written', generation::text, true)`
	IsMarked         = `current_setting('berth.written', true) <> ''`
	MarkedGeneration = `current_setting('berth.written', true)`
)

type recorderKey struct{}

// WithRecorder returns a context whose transactions write audit records: each transaction that writes rows
// sends its records together with its commit. A nil recorder makes the transactions write no audit records.
func WithRecorder(ctx context.Context, r Recorder) context.Context {
	return context.WithValue(ctx, recorderKey{}, r)
}

// RecorderOf returns the Recorder of a context, or nil.
func RecorderOf(ctx context.Context) Recorder {
	r, _ := ctx.Value(recorderKey{}).(Recorder)
	return r
}

// auditState is what a transaction has written so far, for the audit log.
type auditState struct {
	recorder Recorder // nil: the transaction writes no audit records
	changes  []Change
	wrote    bool
}

// queueRecords queues the transaction's audit records, if it needs any.
func (a *auditState) queueRecords(batch *pgx.Batch) {
	if a.recorder != nil && a.wrote {
		a.recorder.QueueRecords(batch, a.changes)
	}
}

// note records that the transaction runs an SQL statement.
func (a *auditState) note(sql string) {
	if a.recorder != nil && !a.wrote {
		a.wrote = isWrite(sql)
	}
}

// watch returns a callback of a batch that calls `callback` and records whether its statement has written
// rows.
func (a *auditState) watch(sql string, callback func(pgx.BatchResults) error) func(pgx.BatchResults) error {
	if a.recorder == nil || !isWrite(sql) {
		return callback
	}
	return func(b pgx.BatchResults) error { return callback(watchedResults{b, a}) }
}

// watchedResults are the results of a batch, of which the next one belongs to a statement that may write
// rows.
type watchedResults struct {
	pgx.BatchResults
	audit *auditState
}

func (w watchedResults) Exec() (pgconn.CommandTag, error) {
	tag, err := w.BatchResults.Exec()
	w.audit.wrote = w.audit.wrote || tag.RowsAffected() > 0
	return tag, err
}

func (w watchedResults) Query() (pgx.Rows, error) {
	w.audit.wrote = true
	return w.BatchResults.Query()
}

func (w watchedResults) QueryRow() pgx.Row {
	w.audit.wrote = true
	return w.BatchResults.QueryRow()
}

// isWrite reports whether an SQL statement inserts, updates or deletes rows. A lock (`for update`) is not a
// write.
func isWrite(sql string) bool {
	if strings.Contains(sql, "insert into ") || strings.Contains(sql, "delete from ") {
		return true
	}
	for rest := sql; ; {
		i := strings.Index(rest, "update ")
		if i < 0 {
			return false
		}
		if before := strings.TrimRight(rest[:i], " "); !strings.HasSuffix(before, "for") &&
			!strings.HasSuffix(before, "no key") {
			return true
		}
		rest = rest[i+len("update "):]
	}
}

// Changed records a change of an object for the audit log. The audit log gets the change only if the
// transaction writes rows and commits.
func (t *transaction) Changed(c Change) {
	if t.audit.recorder != nil {
		t.audit.changes = append(t.audit.changes, c)
	}
}

// SkipAudit makes a transaction leave no audit records, although it writes rows.
func SkipAudit(tx Tx) { tx.(*transaction).audit.recorder = nil }

func (t *transaction) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	tag, err := t.Tx.Exec(ctx, sql, args...)
	if err == nil && (tag.Select() || tag.RowsAffected() > 0) {
		t.audit.note(sql)
	}
	return tag, err
}

func (t *transaction) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	t.audit.note(sql)
	return t.Tx.Query(ctx, sql, args...)
}

func (t *transaction) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	t.audit.note(sql)
	return t.Tx.QueryRow(ctx, sql, args...)
}
