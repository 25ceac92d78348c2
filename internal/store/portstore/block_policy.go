package portstore

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
)

// portBatchSize is the maximum number of ports that one transaction of ApplyBlockPolicy rechecks.
const portBatchSize = 100

// ApplyBlockPolicy rechecks every port whose blocks differ from the configured policy: blocks whose time
// limit, or whose effect when the limit passes, is not the configured one, and DHCP blocks although the
// configuration disables DHCP. Blocks that AddBlock has added do not count.
func (s *Store) ApplyBlockPolicy(ctx context.Context) error {
	var disabled []string
	if s.config.Network.NoDHCP {
		disabled = []string{network.DHCP}
	}
	stale, err := s.staleBlockTerms(ctx)
	if err != nil {
		return err
	}
	for after, more := uuid.Nil, len(disabled)+len(stale.entities) > 0; more; {
		err := s.inTx(ctx, func(tx *transaction) error {
			rows, err := tx.Query(ctx, `
				select distinct object_id
				from block
				where object_type = 'port' and owner = '' and object_id > $1
					and (entity = any($2) or (entity, fatal, `+blockTimeLimit+`) in (select * from unnest($3::text[], $4::boolean[], $5::bigint[])))
				order by object_id
				limit $6`, after, disabled, stale.entities, stale.fatal, stale.limits, portBatchSize)
			if err != nil {
				return err
			}
			ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			if err != nil {
				return err
			}
			for _, id := range ids {
				if err := recheckPort(ctx, tx, id); err != nil {
					return err
				}
			}
			if more = len(ids) == portBatchSize; more {
				after = ids[len(ids)-1]
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("recheck ports with stale blocks: %w", err)
		}
	}
	return nil
}

// blockTimeLimit is the time limit of a block in microseconds; 0 means no limit.
const blockTimeLimit = `coalesce((extract(epoch from deadline - since) * 1000000)::bigint, 0)`

// blockTerms are three lists of equal length for SQL's unnest. Each position describes blocks of one entity:
// the name of the entity, whether the port's status becomes ERROR when the time limit passes (`fatal`), and
// the time limit in microseconds.
type blockTerms struct {
	entities []string
	fatal    []bool
	limits   []int64
}

// staleBlockTerms returns the terms of existing port blocks that differ from the configured policy.
func (s *Store) staleBlockTerms(ctx context.Context) (stale blockTerms, err error) {
	rows, err := s.db.Query(
		ctx,
		`select distinct entity, fatal, `+blockTimeLimit+` from block where object_type = 'port' and owner = ''`,
	)
	if err != nil {
		return stale, fmt.Errorf("read block policies: %w", err)
	}
	var entity string
	var fatal bool
	var limit int64
	_, err = pgx.ForEachRow(rows, []any{&entity, &fatal, &limit}, func() error {
		if now, isFatal := s.config.Policy.Limit(entity); now.Microseconds() != limit || isFatal != fatal {
			stale.entities = append(stale.entities, entity)
			stale.fatal = append(stale.fatal, fatal)
			stale.limits = append(stale.limits, limit)
		}
		return nil
	})
	return stale, err
}
