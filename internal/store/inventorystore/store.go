// Package inventorystore stores the data of the Placement API in PostgreSQL: resource providers with their inventories, traits
// and aggregates, consumers with their allocations, and the history of generations. Where the Placement API requires it, a
// write checks that the generation has not changed since its writer has read it. The package also searches allocation
// candidates.
package inventorystore

import "berth/internal/store/db"

// Store reads and writes resource providers, consumers and allocations.
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
