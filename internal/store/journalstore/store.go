// Package journalstore stores the journal of changes that must be sent to the SDN controller: the entries,
// the blockers of each entry, and the attempts to send them. Package journalstore also stores the objects
// that berth has no API for, and the state of the controller's circuit breaker.
package journalstore

import (
	"cmp"
	"time"

	"berth/internal/contract"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// Config configures a Store.
type Config struct {
	// ClaimDuration is the time for which ClaimBacklog claims an entry for its caller; 0:
	// DefaultClaimDuration.
	ClaimDuration time.Duration
}

// DefaultClaimDuration is the default of Config.ClaimDuration. It is longer than the timeout of an attempt.
const DefaultClaimDuration = 5 * time.Second

// Store reads and writes the journal.
type Store struct {
	db            *db.DB
	claimDuration time.Duration
}

// New returns a store on the database.
func New(d *db.DB, c Config) *Store {
	return &Store{db: d, claimDuration: cmp.Or(c.ClaimDuration, DefaultClaimDuration)}
}

// ClaimDuration is the time for which ClaimBacklog claims an entry for its caller.
func (s *Store) ClaimDuration() time.Duration { return s.claimDuration }

// Workflows contains the query for the journal entries that must have a workflow.
var Workflows = []outbox.Source{{Workflow: contract.JournalEntry, Rows: openEntriesSelect}}

// openEntriesSelect lists the open entries with the columns that an outbox.Source needs.
const openEntriesSelect = `
		select 'journal/' || seq, operation || ' ' || object_type || ' ' || coalesce(nullif(name, ''), object_id),
			jsonb_build_object('resource', object_type, 'project', project)
		from journal_entry
		where finished_at is null`
