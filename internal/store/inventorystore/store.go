// Package inventorystore stores the data of the Placement API in PostgreSQL: resource providers with their
// inventories, traits and aggregates, consumers with their allocations, and the history of generations. If
// the Placement API requires a generation in a request, the write checks that the generation in the database
// is still the same. Package inventorystore also searches allocation candidates.
package inventorystore

import "berth/internal/store/db"

// Store reads and writes resource providers, consumers and allocations.
type Store struct {
	db          *db.DB
	groupCommit *groupCommit
	groupRead   *groupRead
	conflicts   conflictCounter
	traits      traitCache
	classCounts classCounts
}

// New returns a store for a database.
func New(d *db.DB) *Store {
	s := &Store{
		db:          d,
		conflicts:   conflictCounter{counts: map[conflictKey]conflictCount{}},
		traits:      newTraitCache(maxCachedTraits),
		classCounts: newClassCounts(),
	}
	s.groupCommit = newGroupCommit(s)
	s.groupRead = newGroupRead(s)
	return s
}
