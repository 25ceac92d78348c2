// Package networkstore keeps networks, subnets, addresses, ports with their bindings and provisioning blocks, agents, trunks,
// security groups, quotas and the notifications of agents.
package networkstore

import (
	"context"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// Store reads and writes networks and what belongs to them.
type Store struct {
	db     *db.DB
	config Config
}

// Config is what the operator sets of networks. Its zero value is the default.
type Config struct {
	Policy           network.BlockPolicy // how long provisioning blocks may stand
	Quota            network.Quota       // of projects without a quota of their own
	NoDHCP           bool                // no port waits for a DHCP agent and no network gets one: another system answers DHCP
	DisableNewAgents bool                // agents that report for the first time stay disabled until an operator enables them
	NotifyAgents     bool                // changes are enqueued for the agents' RPC
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

// inPreparedTx is inTx for statements that each have an index for what they look for.
func (s *Store) inPreparedTx(ctx context.Context, f func(*transaction) error) error {
	return s.db.InPreparedTx(ctx, func(tx db.Tx) error { return f(&transaction{tx, s.config}) })
}

// Workflows lists the rows that have a workflow.
var Workflows = []outbox.Source{
	{Workflow: contract.Port, Rows: `
		select 'port/' || id, coalesce(nullif('port ' || name, 'port '), 'port ' || id),
			jsonb_build_object('resource', 'port', 'project', project, 'host', host, 'status', status)
		from port
		union all
		select distinct 'port/' || port_id, 'port ' || port_id, jsonb_build_object('resource', 'port', 'status', 'DELETED')
		from nova_event e
		where not exists (select from port p where p.id = e.port_id)`},
	{Workflow: contract.Announce, Rows: `
		select distinct 'announce/' || network_id, 'what agents are told of network ' || network_id, jsonb_build_object('resource', 'announcement')
		from announcement
		where told_at is null`},
}
