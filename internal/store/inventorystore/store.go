// Package inventorystore keeps resource providers, their inventories, traits and aggregates, consumers and their allocations,
// with the generations that fence every write, and finds allocation candidates.
package inventorystore

import "berth/internal/store/db"

// Store reads and writes providers and allocations.
type Store struct {
	db    *db.DB
	lines lines
}

// New makes a store on that database.
func New(d *db.DB) *Store { return &Store{db: d, lines: lines{provider: map[string]*line{}}} }
