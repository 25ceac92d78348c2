package networkstore

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
)

// manyPorts is how many ports one transaction looks at.
const manyPorts = 100

// LookAgain looks at every port whose blocks are not what the operator wishes of them now: they have other deadlines, or wait for DHCP that
// somebody else answers.
func (s *Store) LookAgain(ctx context.Context) error {
	var forgone []string
	if s.config.NoDHCP {
		forgone = []string{network.DHCP}
	}
	stale, err := s.staleTerms(ctx)
	if err != nil {
		return err
	}
	for after, more := uuid.Nil, len(forgone)+len(stale.entities) > 0; more; {
		err := s.inTx(ctx, func(tx *transaction) error {
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
	rows, err := s.db.Query(ctx, `select distinct entity, fatal, `+blockLimit+` from block where object_type = 'port'`)
	if err != nil {
		return stale, fmt.Errorf("read the terms of blocks: %w", err)
	}
	var entity string
	var fatal bool
	var limit int64
	_, err = pgx.ForEachRow(rows, []any{&entity, &fatal, &limit}, func() error {
		if now, deadly := s.config.Policy.Limit(entity); now.Microseconds() != limit || deadly != fatal {
			stale.entities, stale.fatal, stale.limits = append(stale.entities, entity), append(stale.fatal, fatal), append(stale.limits, limit)
		}
		return nil
	})
	return stale, err
}
