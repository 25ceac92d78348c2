// Package store opens the stores of berth's rows in PostgreSQL. The packages below it are the only ones with SQL, and each
// owns its tables: outbox owns the notes, journalstore the journal, inventorystore providers and allocations, networkstore
// networks and ports, leasestore leases and hosts, mirrorstore the runs that compare the controller with the rows.
// An exported method of a Store is one transaction; a function that takes a db.Tx is a step of its caller's transaction.
// No store speaks to the network, to Temporal or in HTTP.
package store

import (
	"context"

	"berth/internal/store/db"
	"berth/internal/store/inventorystore"
	"berth/internal/store/journalstore"
	"berth/internal/store/leasestore"
	"berth/internal/store/mirrorstore"
	"berth/internal/store/networkstore"
	"berth/internal/store/outbox"
)

// Store is every store on one database.
type Store struct {
	DB        *db.DB
	Outbox    *outbox.Store
	Journal   *journalstore.Store
	Inventory *inventorystore.Store
	Network   *networkstore.Store
	Lease     *leasestore.Store
	Mirror    *mirrorstore.Store
}

// Config is what the operator sets of the stores.
type Config struct {
	Network networkstore.Config
	Lease   leasestore.Config
}

// Open connects to the database at that URL. It does not migrate; see db.Migrate.
func Open(ctx context.Context, url string, c Config) (*Store, error) {
	d, err := db.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	return &Store{
		DB:        d,
		Outbox:    outbox.New(d, journalstore.Workflows, networkstore.Workflows, leasestore.Workflows, mirrorstore.Workflows),
		Journal:   journalstore.New(d),
		Inventory: inventorystore.New(d),
		Network:   networkstore.New(d, c.Network),
		Lease:     leasestore.New(d, c.Lease),
		Mirror:    mirrorstore.New(d),
	}, nil
}

// Close waits for running methods and closes every connection.
func (s *Store) Close() { s.DB.Close() }

// Ping returns an error unless the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.DB.Ping(ctx) }
