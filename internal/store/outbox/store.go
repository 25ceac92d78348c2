// Package outbox stores notes: rows that name a workflow which must run and read its row again. A transaction that changes a
// row also enqueues a note. A relay claims the notes that are due, delivers them to Temporal, and then deletes the delivered
// notes.
package outbox

import (
	"time"

	"berth/internal/store/db"
)

// ClaimDuration is how long a relay claims notes. If the process of a relay dies, another relay delivers the claimed
// notes after ClaimDuration.
const ClaimDuration = 8 * time.Second

// Store claims and settles notes.
type Store struct {
	db      *db.DB
	sources []Source
}

// Source lists the rows of one type of workflow, in the shape of notes.
type Source struct {
	Workflow string // workflow type
	Rows     string // SQL: a select of workflow ID, summary and attributes
	// Due is SQL: a select of the workflow ID of each row of which a step is due, and since when the step is due. Empty: no step of the
	// rows is due at a time.
	Due string
}

// New returns a store. The sources of New list every row that must have a workflow.
func New(d *db.DB, sources ...[]Source) *Store {
	s := &Store{db: d}
	for _, of := range sources {
		s.sources = append(s.sources, of...)
	}
	return s
}
