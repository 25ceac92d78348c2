package portstore

import (
	"context"

	"github.com/google/uuid"

	"berth/internal/store/networkstore"
)

// DeleteNetwork deletes a network with its subnets and service ports. DeleteNetwork fails if the network has
// ports that are not service ports.
func (s *Store) DeleteNetwork(ctx context.Context, id uuid.UUID, expect *int64) error {
	return s.inTx(ctx, func(tx *transaction) error {
		n, err := networkstore.LockNetwork(ctx, tx.Transaction, id, networkstore.LockForDelete)
		if err != nil {
			return err
		}
		if err := networkstore.CheckRevision(n.Revision, expect); err != nil {
			return err
		}
		if err := deleteServicePorts(ctx, tx, id); err != nil {
			return err
		}
		return networkstore.DeleteNetwork(ctx, tx.Transaction, n)
	})
}
