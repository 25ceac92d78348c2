package portstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
)

const trunkSelect = `
	select id, project, name, description, admin_up, port_id, tags, revision, created_at, updated_at,
		(select coalesce(jsonb_agg(to_jsonb(b) order by entity), '[]') from block b where b.object_id = trunk.id) as blocks,
		(select jsonb_build_object('status', p.status, 'vif', p.vif, 'admin_up', p.admin_up) from port p where p.id = trunk.port_id),
		(select coalesce(jsonb_agg(to_jsonb(s) || jsonb_build_object('status', p.status, 'vif', p.vif, 'admin_up', p.admin_up)
				order by s.segmentation_id, s.port_id), '[]')
			from subport s
			join port p on p.id = s.port_id
			where s.trunk_id = trunk.id)
	from trunk`

var trunkColumns = db.Tagged("trunk", map[string]db.Column{
	"id":          {Expr: "trunk.id", Cast: "uuid[]"},
	"project":     {Expr: "trunk.project", Cast: "text[]"},
	"name":        {Expr: "trunk.name", Cast: "text[]"},
	"description": {Expr: "trunk.description", Cast: "text[]"},
	"admin_up":    {Expr: "trunk.admin_up", Cast: "boolean[]"},
	"port":        {Expr: "trunk.port_id", Cast: "uuid[]"},
	"revision":    {Expr: "trunk.revision", Cast: "bigint[]"},
})

var visibleTrunk = db.Visibility{Condition: `trunk.project = $project`}

func scanTrunk(row pgx.CollectableRow) (network.Trunk, error) {
	t := network.Trunk{Subports: []network.Subport{}}
	var parent network.TrunkPort
	var subports []struct {
		network.Subport
		network.TrunkPort
	}
	err := row.Scan(
		&t.ID,
		&t.Project,
		&t.Name,
		&t.Description,
		&t.AdminUp,
		&t.Port,
		&t.Tags,
		&t.Revision,
		&t.CreatedAt,
		&t.UpdatedAt,
		&t.Blocks,
		&parent,
		&subports,
	)
	members := make([]network.TrunkPort, len(subports))
	for i, s := range subports {
		t.Subports, members[i] = append(t.Subports, s.Subport), s.TrunkPort
		members[i].ID = s.Port
	}
	parent.ID = t.Port
	t.Status = network.TrunkStatus(parent, members, len(t.Blocks) > 0)
	t.Reason = network.TrunkReason(parent, members)
	return t, err
}

// trunkPageSize is the maximum number of trunks that one query of trunksWithStatus reads, whatever the limit
// of the request is.
const trunkPageSize = 100

// Trunks lists trunks.
func (s *Store) Trunks(ctx context.Context, q db.Listing) ([]network.Trunk, error) {
	if statusCondition(q) < 0 {
		trunks, err := s.trunks(ctx, q)
		return db.Page(trunks, q), err
	}
	var matching []network.Trunk
	err := s.trunksWithStatus(ctx, q, func(t network.Trunk) { matching = append(matching, t) })
	return db.Page(matching, q), err
}

// statusCondition returns the index of the condition for the status, or -1.
func statusCondition(q db.Listing) int {
	return slices.IndexFunc(q.Where, func(c db.Condition) bool { return c.Field == "status" })
}

// trunksWithStatus calls add for each trunk of a request with a condition for the status. The database has no
// column for the status of a trunk, so trunksWithStatus applies the condition after it has read the trunks.
func (s *Store) trunksWithStatus(ctx context.Context, q db.Listing, add func(network.Trunk)) error {
	at, page, found := statusCondition(q), q, 0
	wanted := q.Where[at].In
	page.Where = slices.Delete(slices.Clone(q.Where), at, at+1)
	page.Limit = trunkPageSize
	for {
		trunks, err := s.trunks(ctx, page)
		if err != nil {
			return err
		}
		for _, t := range trunks {
			if slices.Contains(wanted, t.Status) && (q.Limit == 0 || found < q.Limit) {
				add(t)
				found++
			}
		}
		if len(trunks) < page.Limit || q.Limit > 0 && found == q.Limit {
			return nil
		}
		page.Marker = trunks[len(trunks)-1].ID
	}
}

// trunks reads trunks in the order of the query; a reverse page has the opposite order.
func (s *Store) trunks(ctx context.Context, q db.Listing) ([]network.Trunk, error) {
	l := db.ListQuery{Columns: trunkColumns, Table: "trunk"}
	clauses, err := l.Clauses(q, visibleTrunk)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.Query(ctx, trunkSelect+clauses, l.Args...)
	if err != nil {
		return nil, fmt.Errorf("list trunks: %w", err)
	}
	return pgx.CollectRows(rows, scanTrunk)
}

// Trunk reads the trunk with the given ID.
func (s *Store) Trunk(ctx context.Context, id uuid.UUID) (network.Trunk, error) {
	return trunkByID(ctx, s.db, id)
}

// TrunkOfPort returns the ID of the trunk whose parent port or subport the port is, or uuid.Nil if the port
// belongs to no trunk.
func (s *Store) TrunkOfPort(ctx context.Context, port uuid.UUID) (uuid.UUID, error) {
	id, err := db.QueryOne(ctx, s.db, pgx.RowTo[uuid.UUID], nil, `
		select id from trunk where port_id = $1
		union all
		select trunk_id from subport where port_id = $1
		limit 1`, port)
	if err != nil {
		return id, fmt.Errorf("find the trunk of port %s: %w", port, err)
	}
	return id, nil
}

// TrunksOfPorts returns the trunks whose parent is one of the ports, by parent port.
func (s *Store) TrunksOfPorts(
	ctx context.Context,
	ports []uuid.UUID,
) (map[uuid.UUID]*network.TrunkDetails, error) {
	rows, err := s.db.Query(ctx, `
		select t.port_id, t.id, (select coalesce(jsonb_agg(to_jsonb(s) || jsonb_build_object('mac_address', p.mac) order by s.segmentation_id, s.port_id), '[]')
			from subport s
			join port p on p.id = s.port_id
			where s.trunk_id = t.id)
		from trunk t
		where t.port_id = any($1)`, ports)
	if err != nil {
		return nil, fmt.Errorf("find trunks of ports: %w", err)
	}
	byParent := map[uuid.UUID]*network.TrunkDetails{}
	var parent, trunk uuid.UUID
	var subports []network.SubportDetails
	_, err = pgx.ForEachRow(rows, []any{&parent, &trunk, &subports}, func() error {
		byParent[parent] = &network.TrunkDetails{Trunk: trunk, Subports: slices.Clone(subports)}
		return nil
	})
	return byParent, err
}
