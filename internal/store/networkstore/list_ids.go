package networkstore

import (
	"context"

	"github.com/google/uuid"

	"berth/internal/store/db"
)

// The functions of this file list only the IDs of objects, so that a long list can be read in parts: an
// object can have 200 kB, its ID has 16 bytes. Each function returns the IDs in the order of the list
// request.

// NetworkIDs lists the IDs of networks.
func (s *Store) NetworkIDs(ctx context.Context, q db.Listing) ([]uuid.UUID, error) {
	return db.ListIDs(ctx, s.db, db.ListQuery{Columns: networkColumns, Table: "network"}, q, visibleNetwork...)
}

// SubnetIDs lists the IDs of subnets.
func (s *Store) SubnetIDs(ctx context.Context, q db.Listing) ([]uuid.UUID, error) {
	return db.ListIDs(ctx, s.db, db.ListQuery{Columns: subnetColumns, Table: "subnet"}, q, visibleSubnet...)
}

// SecurityGroupIDs lists the IDs of security groups.
func (s *Store) SecurityGroupIDs(ctx context.Context, q db.Listing) ([]uuid.UUID, error) {
	return db.ListIDs(ctx, s.db, db.ListQuery{Columns: groupColumns, Table: "security_group"}, q, visibleGroup)
}

// SecurityRuleIDs lists the IDs of security group rules.
func (s *Store) SecurityRuleIDs(ctx context.Context, q db.Listing) ([]uuid.UUID, error) {
	return db.ListIDs(ctx, s.db, db.ListQuery{Columns: ruleColumns, Table: "security_group_rule"}, q, visibleRule...)
}
