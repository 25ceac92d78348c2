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

// Govern sets how long blocks of ports may stand. Those that stand already get their new deadlines when somebody looks.
func (s *Store) Govern(p network.Policy) { s.terms.policy = p }

// Allow sets how many of each resource a project may have from now on, unless it has a quota of its own.
func (s *Store) Allow(q network.Quota) { s.terms.quota = q }

// Doubt has agents that report for the first time be disabled until an operator enables them.
func (s *Store) Doubt() { s.terms.newcomers = true }

// ForgoDHCP has no port wait for a DHCP agent, and gives none a network, from now on: somebody else answers DHCP.
func (s *Store) ForgoDHCP() { s.terms.noDHCP = true }

// manyPorts is how many ports one transaction looks at.
const manyPorts = 100

// LookAgain looks at every port whose blocks are not what the operator wishes of them now: they have other deadlines, or wait for DHCP that
// somebody else answers.
func (s *Store) LookAgain(ctx context.Context) error {
	var forgone []string
	if s.terms.noDHCP {
		forgone = []string{network.DHCP}
	}
	stale, err := s.staleTerms(ctx)
	if err != nil {
		return err
	}
	for after, more := uuid.Nil, len(forgone)+len(stale.entities) > 0; more; {
		err := s.inTx(ctx, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, `
				select distinct object_id
				from block
				where object_type = 'port' and object_id > $1
					and (entity = any($2) or (entity, fatal, `+blockLimit+`) in (select * from unnest($3::text[], $4::boolean[], $5::bigint[])))
				order by object_id
				limit $6`, after, forgone, stale.entities, stale.fatal, stale.limits, manyPorts)
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
			return fmt.Errorf("look at ports that wait: %w", err)
		}
	}
	return nil
}

// blockLimit is how long a block may stand, in microseconds, 0 for as long as it takes.
const blockLimit = `coalesce((extract(epoch from deadline - since) * 1000000)::bigint, 0)`

// agreed are terms on which blocks stand, side by side.
type agreed struct {
	entities []string
	fatal    []bool
	limits   []int64
}

// staleTerms are those on which ports' blocks stand and that are not the operator's any more.
func (s *Store) staleTerms(ctx context.Context) (stale agreed, err error) {
	rows, err := s.pool.Query(ctx, `select distinct entity, fatal, `+blockLimit+` from block where object_type = 'port'`)
	if err != nil {
		return stale, fmt.Errorf("read the terms of blocks: %w", err)
	}
	var entity string
	var fatal bool
	var limit int64
	_, err = pgx.ForEachRow(rows, []any{&entity, &fatal, &limit}, func() error {
		if now, deadly := s.terms.policy.Limit(entity); now.Microseconds() != limit || deadly != fatal {
			stale.entities, stale.fatal, stale.limits = append(stale.entities, entity), append(stale.fatal, fatal), append(stale.limits, limit)
		}
		return nil
	})
	return stale, err
}
