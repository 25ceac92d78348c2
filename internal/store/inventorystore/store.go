// Package inventorystore stores resource providers with their inventories, traits and aggregates, consumers with their
// allocations, and the history of generations. Every write checks the generation that its writer has read. The package also
// searches allocation candidates.
package inventorystore

import "berth/internal/store/db"

// Store reads and writes providers, consumers and allocations.
type Store struct {
	db          *db.DB
	groupCommit *groupCommit
}

// New returns a store for a database.
func New(d *db.DB) *Store {
	s := &Store{db: d}
	s.groupCommit = newGroupCommit(s)
	return s
}
