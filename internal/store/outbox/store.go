// Package outbox keeps notes: rows that say which workflow should run and look at its row again. Whoever changes a row
// enqueues a note in the same transaction; a relay claims due notes, delivers them to Temporal and settles them.
package outbox

import "berth/internal/store/db"

// Store claims and settles notes.
type Store struct {
	db      *db.DB
	sources []Source
}

// Source lists the rows of one type of workflow, in the shape of notes.
type Source struct {
	Workflow string // type
	Rows     string // SQL: a select of workflow ID, summary and attributes
}

// New makes a store; the sources list every row that has a workflow.
func New(d *db.DB, sources ...[]Source) *Store {
	s := &Store{db: d}
	for _, of := range sources {
		s.sources = append(s.sources, of...)
	}
	return s
}
