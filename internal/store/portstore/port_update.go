package portstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
)

// UpdatePort changes a port, binds the port again if the change concerns the binding, and updates the port's
// blocks and status. If `expect` is not nil, UpdatePort fails unless the port has the revision `expect`.
func (s *Store) UpdatePort(
	ctx context.Context,
	id uuid.UUID,
	c network.PortChange,
	expect *int64,
) (network.Port, error) {
	var after network.Port
	err := s.inTx(ctx, func(tx *transaction) (err error) {
		after, err = updatePort(ctx, tx, id, c, expect)
		return err
	})
	return after, err
}

func updatePort(
	ctx context.Context,
	tx *transaction,
	id uuid.UUID,
	c network.PortChange,
	expect *int64,
) (network.Port, error) {
	before, err := lockPortAndNetwork(ctx, tx, id)
	if err != nil {
		return before.Port, err
	}
	if err := networkstore.CheckRevision(before.Revision, expect); err != nil {
		return before.Port, err
	}
	after, err := changePort(ctx, tx, before, c)
	tx.Audit(before.Port, after)
	return after, err
}

// lockPortAndNetwork takes a share lock on the port's network and then locks the port.
func lockPortAndNetwork(ctx context.Context, tx *transaction, id uuid.UUID) (lockedPort, error) {
	p, err := portByID(ctx, tx, id)
	if err != nil {
		return lockedPort{}, err
	}
	var n network.Network
	batch := &pgx.Batch{}
	tx.QueuePortNetworkLock(batch, p.Network, p.Project, &n)
	if err = tx.SendBatch(ctx, batch).Close(); db.NoRows(err) {
		err = networkstore.NetworkNotFound(p.Network)
	}
	if err != nil {
		return lockedPort{}, err
	}
	h, err := lockPort(ctx, tx, id)
	h.network = n
	return h, err
}

func changePort(
	ctx context.Context,
	tx *transaction,
	before lockedPort,
	c network.PortChange,
) (network.Port, error) {
	if db.EqualJSON(c.Profile, before.Profile) {
		c.Profile = nil
	}
	p, err := before.Port.With(c).WithExtensions(c)
	if err != nil {
		return p, err
	}
	if err := cmp.Or(p.CheckBoundChange(before.Port), p.CheckDevice(before.Port, c)); err != nil {
		return p, err
	}
	if p, err = applySecurityGroups(ctx, tx, p, c); err != nil {
		return p, err
	}
	if err := updateFixedIPs(ctx, tx, before, &p, c); err != nil {
		return p, err
	}
	dependencies, err := readDependencies(ctx, tx, p)
	if err != nil {
		return p, err
	}
	revision := before.Revision + 1
	cause := network.BlockTrigger{
		BindingChanged: p.Host != before.Host || p.VNIC != before.VNIC ||
			!db.EqualJSON(p.Profile, before.Profile) ||
			p.Distributed() != before.Distributed(),
		AddressesChanged: p.MAC != before.MAC || !slices.Equal(p.Addresses, before.Addresses),
		BroughtUp:        p.AdminUp && !before.AdminUp,
		Revision:         revision,
	}
	if cause.BindingChanged {
		p = p.BindToNewHost(dependencies.HostAgents)
	}
	p = p.RetryBinding(dependencies, revision, before.now).
		UpdateBlocks(dependencies, cause, before.now).
		UpdateStatus(before.now)
	return writePort(ctx, tx, before.Port, p, network.PortCause{Request: true})
}

// readDependencies reads the agents that a changed port depends on. When readDependencies runs, the port's
// row still has the values before the change, so readDependencies gets the new values in the parameter p.
func readDependencies(ctx context.Context, tx *transaction, p network.Port) (network.PortContext, error) {
	dependencies := network.PortContext{BlockPolicy: tx.config.Policy}
	subnets := make([]uuid.UUID, len(p.Addresses))
	for i, a := range p.Addresses {
		subnets[i] = a.Subnet
	}
	err := tx.QueryRow(ctx, `select `+dhcpHosts("$1", "(select unnest($2::uuid[]))")+`, `+agentsOn("$3"), p.Network, subnets, p.Host).
		Scan(&dependencies.DHCPHosts, &dependencies.HostAgents)
	if tx.config.Network.NoDHCP {
		dependencies.DHCPHosts = nil
	}
	return dependencies, err
}
