package portstore

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
)

// MaxExamined is the maximum number of ports that InactivePorts examines. The table has no index of these
// ports, because every port that becomes ACTIVE would have to change it.
const MaxExamined = 10_000

// InactivePorts returns the IDs of ports of a project that are not ACTIVE, in the order of their IDs and at
// most `limit`, and the value of `after` for the next page, or uuid.Nil if the page is the last. A page may
// be shorter than its limit although it is not the last, because each page examines a limited number of
// ports.
func (s *Store) InactivePorts(
	ctx context.Context,
	project string,
	after uuid.UUID,
	limit int,
) (ids []uuid.UUID, next uuid.UUID, err error) {
	rows, err := s.db.Query(ctx, `
		select id, status <> $5, examined = $4
		from (
			select id, status, row_number() over (order by id) as examined
			from (select id, status from port where project = $1 and id > $2 order by id limit $4) as first) as numbered
		where status <> $5 or examined = $4
		order by id
		limit $3`, project, after, limit+1, MaxExamined, network.Active)
	var id uuid.UUID
	var inactive, last bool
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&id, &inactive, &last}, func() error {
			switch {
			case len(ids) == limit:
				next = ids[limit-1]
			case inactive:
				ids = append(ids, id)
			}
			if last && next == uuid.Nil {
				next = id
			}
			return nil
		})
	}
	if err != nil {
		return nil, next, fmt.Errorf("list ports of project %s that are not ACTIVE: %w", project, err)
	}
	return ids, next, nil
}
