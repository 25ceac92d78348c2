// Package portstore stores ports with their addresses, bindings and provisioning blocks, and trunks in
// PostgreSQL. A port depends on its network, and on the subnets, agents, security groups and quotas of
// networkstore; therefore the changes of these objects that also change ports are methods of this package.
package portstore

import (
	"context"
	"sync/atomic"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
	"berth/internal/store/outbox"
)

// Store reads and writes ports, networks and related objects: it has the methods of networkstore, too.
type Store struct {
	*networkstore.Store
	db             *db.DB
	config         Config
	foreignReports *atomic.Int64 // see ForeignReports
}

// Config holds the operator's settings for ports and networks. The zero value of Config contains the default
// settings.
type Config struct {
	Network networkstore.Config
	Policy  network.BlockPolicy // time limits of provisioning blocks
	// a notification is enqueued when nothing blocks a port or a trunk any more
	NotifyWebhook bool
}

// New returns a store that uses the database.
func New(d *db.DB, c Config) *Store {
	return &Store{networkstore.New(d, c.Network), d, c, new(atomic.Int64)}
}

// transaction is a database transaction with the settings of the store.
type transaction struct {
	*networkstore.Transaction
	config Config
	// The requests of the transaction. No port gets by chance an address or a MAC that one of them names.
	drafts []network.PortChange
	// the quota of the project refuses no port
	beyondQuota bool
	// the number of addresses whose advisory locks the transaction has acquired
	addressLocks int
}

func (s *Store) newTransaction(tx db.Tx) *transaction {
	return &transaction{Transaction: networkstore.NewTransaction(tx, s.config.Network), config: s.config}
}

func (s *Store) inTx(ctx context.Context, f func(*transaction) error) error {
	return s.db.InTx(ctx, func(tx db.Tx) error { return f(s.newTransaction(tx)) })
}

// inPreparedTx does the same as inTx on a connection that plans each SQL statement only once. Each statement
// that f runs needs an index for its condition, because PostgreSQL does not plan the statement again when a
// table grows.
func (s *Store) inPreparedTx(ctx context.Context, f func(*transaction) error) error {
	return s.db.InPreparedTx(ctx, func(tx db.Tx) error { return f(s.newTransaction(tx)) })
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
