// Package store opens berth's stores in PostgreSQL. Only the packages below internal/store contain SQL, and
// each table belongs to one of these packages. The package outbox owns the notes (rows that name a workflow
// which must run), journalstore the journal (the changes that must be sent to the SDN controller), and
// inventorystore the resource providers and allocations. The package networkstore owns networks and agents,
// portstore ports and trunks, agentstore the credentials of agents, notificationstore the notifications to
// agents and the events for Nova, leasestore leases and hosts, and mirrorstore the runs (full syncs, audits,
// repairs and recoveries) that compare the controller with the database. The package metricstore owns no
// table; it counts rows for metrics. The package reportstore owns no table; it reads the tables of several
// stores for operators. The package auditstore owns the audit log. Each call to an exported method of a Store
// is one transaction. A function of a store with a db.Tx parameter runs in its caller's transaction. No store
// calls Temporal or another service.
package store

import (
	"context"

	"berth/internal/store/agentstore"
	"berth/internal/store/auditstore"
	"berth/internal/store/db"
	"berth/internal/store/inventorystore"
	"berth/internal/store/journalstore"
	"berth/internal/store/leasestore"
	"berth/internal/store/metricstore"
	"berth/internal/store/mirrorstore"
	"berth/internal/store/notificationstore"
	"berth/internal/store/outbox"
	"berth/internal/store/portstore"
	"berth/internal/store/reportstore"
)

// Store contains every store of one database.
type Store struct {
	DB            *db.DB
	Outbox        *outbox.Store
	Journal       *journalstore.Store
	Inventory     *inventorystore.Store
	Network       *portstore.Store
	Agents        *agentstore.Store
	Lease         *leasestore.Store
	Notifications *notificationstore.Store
	Mirror        *mirrorstore.Store
	Metrics       *metricstore.Store
	Report        *reportstore.Store
	Audit         *auditstore.Store
}

// Config contains the operator's settings of the stores.
type Config struct {
	db.Options
	Network portstore.Config
	Journal journalstore.Config
	Lease   leasestore.Config
}

// Open connects to the database with the given URL. Open does not migrate the schema of the database;
// db.Migrate does.
func Open(ctx context.Context, url string, c Config) (*Store, error) {
	d, err := db.Open(ctx, url, c.Options)
	if err != nil {
		return nil, err
	}
	return &Store{
		DB: d,
		Outbox: outbox.New(
			d, journalstore.Workflows, portstore.Workflows,
			notificationstore.Workflows, leasestore.Workflows, mirrorstore.Workflows,
		),
		Journal:       journalstore.New(d, c.Journal),
		Inventory:     inventorystore.New(d),
		Network:       portstore.New(d, c.Network),
		Agents:        agentstore.New(d),
		Lease:         leasestore.New(d, c.Lease),
		Notifications: notificationstore.New(d),
		Mirror:        mirrorstore.New(d),
		Metrics:       metricstore.New(d),
		Report:        reportstore.New(d),
		Audit:         auditstore.New(d),
	}, nil
}

// Close waits for running methods and closes every connection.
func (s *Store) Close() { s.DB.Close() }

// CheckWritable returns an error unless the database has berth's schema and can commit a write now.
func (s *Store) CheckWritable(ctx context.Context) error { return s.DB.CheckWritable(ctx) }
