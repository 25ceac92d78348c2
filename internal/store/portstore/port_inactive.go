package portstore

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
)

// MaxExamined is the maximum number of ports without a wired binding, and of objects with blocks, that
// InactivePorts examines.
const MaxExamined = 10_000

// unwired is true for the ports that can lack the status ACTIVE without a block: a port that is not ACTIVE
// has a block or a reason (network.Port.Reason), and unwired is true for every reason. The index
// port_unwired_project has the same condition. An index of the status itself would make each activation of a
// port change the index.
const unwired = `(not admin_up or vif in ('` + network.VIFUnbound + `', '` + network.VIFFailed + `', '` + network.VIFDistributed + `'))`

// selectInactivePorts selects ports of a project that are not ACTIVE from two short lists: the unwired ports
// of the project, and the objects with blocks of all projects. It also selects the object with which the
// examination of a list has ended early. A port that is in both lists occurs twice.
const selectInactivePorts = `
	(
		select id, status <> $5 as waits, examined = $4 as last
		from (
			select id, status, row_number() over (order by id) as examined
			from (select id, status from port where project = $1 and id > $2 and ` + unwired + ` order by id limit $4) as first) as numbered
		where status <> $5 or examined = $4
		order by id
		limit $3)
	union all (
		select id, coalesce(waits, false), last
		from (
			select id, (select status <> $5 from port where port.id = numbered.id and project = $1) as waits, examined = $4 as last
			from (
				select id, row_number() over (order by id) as examined
				from (select distinct object_id as id from block where object_id > $2 order by object_id limit $4) as first) as numbered) as read
		where waits or last
		order by id
		limit $3)
	order by id`

// examinedPort is a row of selectInactivePorts.
type examinedPort struct {
	ID    uuid.UUID
	Waits bool // the port is not ACTIVE, and belongs to the project
	Last  bool // the list may have further ports, which were not examined
}

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
	examined, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[examinedPort], selectInactivePorts,
		project, after, limit+1, MaxExamined, network.Active)
	if err != nil {
		return nil, next, fmt.Errorf("list ports of project %s that are not ACTIVE: %w", project, err)
	}
	for _, p := range examined {
		isNew := len(ids) == 0 || ids[len(ids)-1] != p.ID
		switch {
		case p.Waits && isNew && len(ids) == limit:
			return ids, ids[limit-1], nil
		case p.Waits && isNew:
			ids = append(ids, p.ID)
		}
		if p.Last {
			return ids, p.ID, nil
		}
	}
	return ids, uuid.Nil, nil
}
