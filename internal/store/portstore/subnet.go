package portstore

import (
	"context"
	"reflect"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/networkstore"
)

// CreateSubnets creates subnets in one transaction.
func (s *Store) CreateSubnets(ctx context.Context, drafts []network.SubnetChange) ([]network.Subnet, error) {
	return networkstore.CreateAll(
		ctx,
		s.inPreparedTx,
		drafts,
		func(ctx context.Context, tx *transaction, c network.SubnetChange) (network.Subnet, error) {
			created, err := networkstore.CreateSubnet(ctx, tx.Transaction, c)
			if err != nil || !created.IsAutoAddress() {
				return created, err
			}
			return created, assignSLAAC(ctx, tx, created)
		},
	)
}

// UpdateSubnet changes a subnet. If the change disables DHCP, ports no longer wait for DHCP because of their
// addresses in this subnet.
func (s *Store) UpdateSubnet(
	ctx context.Context,
	id uuid.UUID,
	c network.SubnetChange,
	expect *int64,
) (network.Subnet, error) {
	var after network.Subnet
	err := s.inTx(ctx, func(tx *transaction) error {
		before, err := networkstore.LockSubnet(ctx, tx.Transaction, id, expect)
		if err != nil {
			return err
		}
		if after, err = before.With(c); err != nil || reflect.DeepEqual(before, after) {
			return err
		}
		if err := networkstore.UpdateSubnet(ctx, tx.Transaction, before, after); err != nil {
			return err
		}
		if before.DHCP && !after.DHCP {
			if err := recheckDHCPPorts(ctx, tx, after.Network); err != nil {
				return err
			}
		}
		after, err = networkstore.RecordSubnetUpdate(ctx, tx.Transaction, before)
		return err
	})
	return after, err
}

// DeleteSubnet deletes a subnet. DeleteSubnet fails if a port has an address in the subnet, unless the port
// is a service port or the address is a SLAAC address (see releaseSubnetAddresses).
func (s *Store) DeleteSubnet(ctx context.Context, id uuid.UUID, expect *int64) error {
	return s.inTx(ctx, func(tx *transaction) error {
		n, err := networkstore.LockSubnet(ctx, tx.Transaction, id, expect)
		if err != nil {
			return err
		}
		if err := releaseSubnetAddresses(ctx, tx, n); err != nil {
			return err
		}
		return networkstore.DeleteSubnet(ctx, tx.Transaction, n)
	})
}
