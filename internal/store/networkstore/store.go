// Package networkstore stores networks, subnets, agents and the networks that DHCP agents serve, security
// groups, quotas and tunnel endpoints in PostgreSQL. The package portstore stores the ports on the networks.
// A change of a network, a subnet or an agent that also changes ports is a function here, which runs in a
// transaction of portstore.
package networkstore

import (
	"context"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/db"
)

// Store reads and writes networks and related objects.
type Store struct {
	db     *db.DB
	config Config
}

// Config holds the operator's settings for networks. The zero value of Config contains the default settings.
type Config struct {
	Quota       network.Quota      // default limits of projects
	VLANs       network.VLANRanges // VLANs for networks whose request names no segmentation ID
	PhysicalMTU int                // MTU of physical networks in bytes; 0: 1500
	// another system serves DHCP: networks get no DHCP agent, and ports do not wait for a DHCP agent
	NoDHCP bool
	// availability zones of networks whose requests name none; empty: any zone
	DefaultZones     []string
	DisableNewAgents bool // new agents stay disabled until an operator enables them
	NotifyAgents     bool // changes are enqueued as notifications for agents
}

// New returns a store that uses the database.
func New(d *db.DB, c Config) *Store { return &Store{d, c} }

// Transaction is a database transaction with the settings of the store.
type Transaction struct {
	db.Tx
	config Config
	// The requests of the transaction. No network gets by chance a segment that one of them names.
	networkDrafts []network.NetworkChange
	// the networks whose advisory locks the transaction has acquired
	networkTurns map[uuid.UUID]bool
	ports        int // that the transaction creates; 0: one at most
}

// NewTransaction returns the database transaction with the given settings.
func NewTransaction(tx db.Tx, c Config) *Transaction { return &Transaction{Tx: tx, config: c} }

func (s *Store) inTx(ctx context.Context, f func(*Transaction) error) error {
	return s.db.InTx(ctx, func(tx db.Tx) error { return f(NewTransaction(tx, s.config)) })
}

// inPreparedTx does the same as inTx on a connection that plans each SQL statement only once. Each statement
// that f runs needs an index for its condition, because PostgreSQL does not plan the statement again when a
// table grows.
func (s *Store) inPreparedTx(ctx context.Context, f func(*Transaction) error) error {
	return s.db.InPreparedTx(ctx, func(tx db.Tx) error { return f(NewTransaction(tx, s.config)) })
}
