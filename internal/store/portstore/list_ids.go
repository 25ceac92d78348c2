package portstore

import (
	"context"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/db"
)

// PortIDs lists the IDs of ports.
func (s *Store) PortIDs(ctx context.Context, q db.Listing) ([]uuid.UUID, error) {
	return db.ListIDs(ctx, s.db, db.ListQuery{Columns: portColumns, Table: "port"}, q, visiblePort...)
}

// TrunkIDs lists the IDs of trunks.
func (s *Store) TrunkIDs(ctx context.Context, q db.Listing) ([]uuid.UUID, error) {
	if statusCondition(q) < 0 {
		return db.ListIDs(ctx, s.db, db.ListQuery{Columns: trunkColumns, Table: "trunk"}, q, visibleTrunk)
	}
	var ids []uuid.UUID
	err := s.trunksWithStatus(ctx, q, func(t network.Trunk) { ids = append(ids, t.ID) })
	return db.Page(ids, q), err
}
