package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
)

// terms are what the operator wishes of networks. They are set before the store is used.
type terms struct {
	policy    network.Policy
	quota     network.Quota
	noDHCP    bool
	newcomers bool // agents that report for the first time are disabled
	announces bool // agents are told of changes
}

func termsOf(tx pgx.Tx) terms {
	if t, ok := tx.(*noting); ok {
		return t.terms
	}
	return terms{}
}

// Govern sets how long blocks of ports may stand from now on.
func (s *Store) Govern(p network.Policy) { s.terms.policy = p }

// Allow sets how many of each resource a project may have from now on, unless it has a quota of its own.
func (s *Store) Allow(q network.Quota) { s.terms.quota = q }

// Doubt has agents that report for the first time be disabled until an operator enables them.
func (s *Store) Doubt() { s.terms.newcomers = true }

// ForgoDHCP has no port wait for a DHCP agent, and gives none a network, from now on: somebody else answers DHCP.
func (s *Store) ForgoDHCP() { s.terms.noDHCP = true }

// manyPorts is how many ports one transaction looks at.
const manyPorts = 100

// LookAtDHCP looks at every port that waits for DHCP: what it waits for may be forgone since it last was looked at.
func (s *Store) LookAtDHCP(ctx context.Context) error {
	for after, more := uuid.Nil, true; more; {
		err := s.inTx(ctx, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, `
				select object_id
				from block
				where object_type = 'port' and entity = $1 and object_id > $2
				order by object_id
				limit $3`, network.DHCP, after, manyPorts)
			if err != nil {
				return err
			}
			ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			if err != nil {
				return err
			}
			for _, id := range ids {
				if err := look(ctx, tx, id); err != nil {
					return err
				}
			}
			if more = len(ids) == manyPorts; more {
				after = ids[len(ids)-1]
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("look at ports that wait for DHCP: %w", err)
		}
	}
	return nil
}
