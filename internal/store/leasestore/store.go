// Package leasestore keeps leases, their reservations and events, the hosts and floating IPs that can be reserved, and who has
// which of them when. What an active reservation holds is written to inventory in the same transaction.
package leasestore

import (
	"context"

	"berth/internal/contract"
	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// Store reads and writes leases and hosts.
type Store struct {
	db     *db.DB
	config Config
}

// Config is what the operator sets of leases.
type Config struct {
	Limits        lease.Limits
	Notifications bool // every change of a lease is recorded for its webhooks
	PoolHosts     bool // hosts that are registered or deleted join or leave Nova's pool
}

// New makes a store on that database.
func New(d *db.DB, c Config) *Store { return &Store{d, c} }

// transaction is a transaction of this store, with its settings.
type transaction struct {
	db.Tx
	config Config
}

func (s *Store) inTx(ctx context.Context, f func(*transaction) error) error {
	return s.db.InTx(ctx, func(tx db.Tx) error { return f(&transaction{tx, s.config}) })
}

// savepoint runs f in a savepoint: if f fails, what it wrote is undone and the transaction goes on.
func (t *transaction) savepoint(ctx context.Context, f func(*transaction) error) error {
	return db.Savepoint(ctx, t.Tx, func(tx db.Tx) error { return f(&transaction{tx, t.config}) })
}

// Workflows lists the rows that have a workflow.
var Workflows = []outbox.Source{
	{Workflow: contract.Lease, Rows: `
		select 'lease/' || id, name, jsonb_build_object('resource', 'lease', 'project', project_id, 'status', status)
		from lease
		where status <> 'TERMINATED' or delete_requested_at is not null`},
	{Workflow: contract.Webhook, Rows: `
		select distinct on (lease_id) 'webhook/' || lease_id, 'webhooks of lease ' || lease_id, jsonb_build_object('resource', 'webhook')
		from lease_notice`},
	{Workflow: contract.Pool, Rows: `
		select 'pool/' || service_name, 'host ' || service_name || ' in the pool', jsonb_build_object('resource', 'pool', 'host', service_name)
		from host_pooling`},
}
