// Package reportstore answers questions of operators that concern the tables of several stores, for example:
// what waits, and for whom? A report is one SQL statement, so that it shows one state of all tables. Package
// reportstore owns no table and writes none. Each of its statements reads a bounded number of rows.
package reportstore

import "berth/internal/store/db"

// Store reads reports.
type Store struct{ db *db.DB }

// New returns a Store on a database.
func New(d *db.DB) *Store { return &Store{d} }
