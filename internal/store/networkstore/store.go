// Package networkstore stores networks, subnets, addresses, ports with their bindings and provisioning
// blocks, agents, trunks, security groups, quotas and tunnel endpoints in PostgreSQL.
package networkstore

import (
	"context"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// Store reads and writes networks, ports and related objects.
type Store struct {
	db     *db.DB
	config Config
}

// Config holds the operator's settings for networks. The zero value of Config contains the default settings.
type Config struct {
	Policy      network.BlockPolicy // time limits of provisioning blocks
	Quota       network.Quota       // default limits of projects
	VLANs       network.VLANRanges  // VLANs for networks whose request names no segmentation ID
	PhysicalMTU int                 // MTU of physical networks in bytes; 0: 1500
	// another system serves DHCP: networks get no DHCP agent, and ports do not wait for a DHCP agent
	NoDHCP bool
	// availability zones of networks whose requests name none; empty: any zone
	DefaultZones     []string
	DisableNewAgents bool // new agents stay disabled until an operator enables them
	NotifyAgents     bool // changes are enqueued as notifications for agents
	// a notification is enqueued when nothing blocks a port or a trunk any more
	NotifyWebhook bool
}

// New returns a store that uses the database.
func New(d *db.DB, c Config) *Store { return &Store{d, c} }

// transaction is a database transaction with the settings of the store.
type transaction struct {
	db.Tx
	config Config
	// The requests of the transaction. No port gets an address at random, and no network a segment, that one
	// of them names.
	drafts        []network.PortChange
	networkDrafts []network.NetworkChange
}

func (s *Store) inTx(ctx context.Context, f func(*transaction) error) error {
	return s.db.InTx(ctx, func(tx db.Tx) error { return f(&transaction{Tx: tx, config: s.config}) })
}

// inPreparedTx does the same as inTx on a connection that plans each SQL statement only once. Each statement
// that f runs needs an index for its condition, because PostgreSQL does not plan the statement again when a
// table grows.
func (s *Store) inPreparedTx(ctx context.Context, f func(*transaction) error) error {
	return s.db.InPreparedTx(ctx, func(tx db.Tx) error { return f(&transaction{Tx: tx, config: s.config}) })
}

// Workflows lists, for each workflow type of this package, the SQL query for the rows that must have a
// workflow of this type.
var Workflows = []outbox.Source{
	{Workflow: contract.Port, Rows: `
		select 'port/' || id, coalesce(nullif('port ' || name, 'port '), 'port ' || id),
			jsonb_build_object('resource', 'port', 'project', project, 'host', host, 'status', status)
		from port
		union all
		select distinct 'port/' || port_id, 'port ' || port_id, jsonb_build_object('resource', 'port', 'status', 'DELETED')
		from nova_event e
		where not exists (select from port p where p.id = e.port_id)`},
}
