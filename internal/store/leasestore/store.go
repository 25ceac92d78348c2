// Package leasestore stores leases with their reservations and events, the hosts, floating IPs, network
// segments and devices that can be reserved, and their allocations to reservations. When an active
// reservation changes, package leasestore also updates the resources of the reservation in the tables of
// Placement (package inventorystore), in the same transaction.
package leasestore

import (
	"context"
	"time"

	"berth/internal/contract"
	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// Store reads and writes leases and the resources that leases can reserve.
type Store struct {
	db     *db.DB
	config Config
}

// Config contains the operator's settings for leases.
type Config struct {
	Limits        lease.Limits
	Quota         lease.Quota
	Notifications bool // store a notification for the webhooks at every change of a lease
	// OnFinished, if set, is called after the start or the end of a lease has been committed without a
	// failure. The parameter `late` is the time since the start or the end was due.
	OnFinished func(step lease.Step, late time.Duration)
	// PlanBudget is the time after which PlanLease matches no further requirements and tries no further
	// start; 0: defaultPlanBudget. PlanLease always matches the requirements of the first reservation.
	PlanBudget time.Duration
	// BatchTime is the time after which another process takes over a batch, which means the steps that one
	// call to BeginDueLeases has begun; 0: defaultBatchTime. If a process is slower, two processes perform
	// the same step, which is harmless.
	BatchTime time.Duration
	// add registered hosts to Nova's aggregate "freepool", and remove hosts that are no longer registered
	PoolHosts bool
}

// New returns a store for a database, with the given settings.
func New(d *db.DB, c Config) *Store { return &Store{d, c} }

// transaction is a database transaction that also has the settings of the store.
type transaction struct {
	db.Tx
	config Config
	search *startSearch // nil unless the transaction searches for the earliest start of a lease
	// hosts that meet the requirements of reservations; see retryTaken for when the transaction forgets them
	matches hostMatches
}

func newTransaction(tx db.Tx, c Config) *transaction {
	return &transaction{Tx: tx, config: c, matches: hostMatches{}}
}

func (s *Store) inTx(ctx context.Context, f func(*transaction) error) error {
	return s.db.InTx(ctx, func(tx db.Tx) error { return f(newTransaction(tx, s.config)) })
}

// savepoint runs f in a savepoint. If f fails, savepoint rolls back the writes of f, and the caller can
// continue the transaction.
func (t *transaction) savepoint(ctx context.Context, f func(*transaction) error) error {
	return db.Savepoint(ctx, t.Tx, func(tx db.Tx) error {
		return f(&transaction{tx, t.config, t.search, t.matches})
	})
}

// Workflows lists the workflow types of this package, each with the SQL query for the rows that must have a
// workflow.
var Workflows = []outbox.Source{
	// A lease needs a workflow as long as lease.Next returns another step than lease.StepStop.
	{Workflow: contract.Lease, Rows: `
		select 'lease/' || id, name, jsonb_build_object('resource', 'lease', 'project', project_id, 'status', status)
		from lease
		where ` + notEndedSQL,
		Due: `
		select 'lease/' || l.id, e.at
		from event e
		join lease l on l.id = e.lease_id
		where e.status = 'UNDONE' and e.event_type <> 'before_end_lease' and e.at <= now()
			and (e.event_type, l.status) in (('end_lease', 'ACTIVE'), ('end_lease', 'ERROR'), ('start_lease', 'PENDING'))`},
	{Workflow: contract.Webhook, Rows: `
		select distinct on (lease_id) 'webhook/' || lease_id, 'webhooks of lease ' || lease_id, jsonb_build_object('resource', 'webhook')
		from lease_notification`},
	{Workflow: contract.Pool, Rows: `
		select 'pool/' || service_name, 'host ' || service_name || ' in the pool', jsonb_build_object('resource', 'pool', 'host', service_name)
		from host_pooling`},
}
