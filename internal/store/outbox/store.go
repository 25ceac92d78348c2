// Package outbox stores notes: rows that name a workflow which must run and read its row again. A transaction
// that changes a row also enqueues a note. A relay claims the notes that are due, delivers them to Temporal,
// and then deletes the delivered notes.
package outbox

import (
	"time"

	"berth/internal/store/db"
)

// ClaimDuration is how long a relay claims notes. If the process of a relay dies, another relay delivers the
// claimed notes after ClaimDuration.
const ClaimDuration = 8 * time.Second

// Store reads and writes notes, for the relays that deliver them and for operators.
type Store struct {
	db      *db.DB
	sources []Source
}

// Source lists the rows that must have a workflow of one type, with the data that a note contains.
type Source struct {
	Workflow string // workflow type
	Rows     string // SQL: a select of workflow ID, summary and attributes
	// Due is SQL that selects, for each row with a due step, the workflow ID and the time since which the
	// step is due. Due is empty if the steps of these rows do not depend on the time.
	Due string
}

// New returns a store. Together, the sources must list every row that must have a workflow.
func New(d *db.DB, sources ...[]Source) *Store {
	s := &Store{db: d}
	for _, of := range sources {
		s.sources = append(s.sources, of...)
	}
	return s
}
