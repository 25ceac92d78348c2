// Package journalstore stores the journal of changes that must be sent to the SDN controller: the entries, the blockers of each
// entry, and the attempts to send them. Package journalstore also stores the objects that berth has no API for, and the state of
// the controller's circuit breaker.
package journalstore

import (
	"berth/internal/contract"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// Store reads and writes the journal.
type Store struct{ db *db.DB }

// New returns a store on the database.
func New(d *db.DB) *Store { return &Store{d} }

// Workflows contains the query for the journal entries that must have a workflow.
var Workflows = []outbox.Source{{Workflow: contract.JournalEntry, Rows: openEntriesSelect}}

// openEntriesSelect lists the open entries with the columns that an outbox.Source needs.
const openEntriesSelect = `
		select 'journal/' || seq, operation || ' ' || object_type || ' ' || coalesce(nullif(name, ''), object_id),
			jsonb_build_object('resource', object_type, 'project', project)
		from journal_entry
		where finished_at is null`
