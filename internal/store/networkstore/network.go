package networkstore

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store/db"
)

const networkSelect = `
	select id, project, name, description, admin_up, shared, external, mtu, port_security, type, physical_network, segment,
		array(select s.id from subnet s where s.network_id = network.id order by s.id), tags, revision, created_at, updated_at
	from network`

var networkColumns = db.Tagged("network", map[string]db.Column{
	"id":               {Expr: "network.id", Cast: "uuid[]"},
	"project":          {Expr: "network.project", Cast: "text[]"},
	"name":             {Expr: "network.name", Cast: "text[]"},
	"description":      {Expr: "network.description", Cast: "text[]"},
	"admin_up":         {Expr: "network.admin_up", Cast: "boolean[]"},
	"shared":           {Expr: "network.shared", Cast: "boolean[]"},
	"external":         {Expr: "network.external", Cast: "boolean[]"},
	"mtu":              {Expr: "network.mtu", Cast: "bigint[]"},
	"port_security":    {Expr: "network.port_security", Cast: "boolean[]"},
	"type":             {Expr: "network.type", Cast: "text[]"},
	"physical_network": {Expr: "network.physical_network", Cast: "text[]"},
	"segment":          {Expr: "network.segment", Cast: "bigint[]", Unsorted: true},
	"status":           {Expr: "text 'ACTIVE'", Cast: "text[]"},
	"revision":         {Expr: "network.revision", Cast: "bigint[]"},
	"created_at":       {Expr: "network.created_at", Cast: "timestamptz[]", Unsorted: true},
})

// visibleNetwork is which networks a project may see: its own and those for all.
const visibleNetwork = `(network.project = %s or network.shared or network.external)`

func scanNetwork(row pgx.CollectableRow) (network.Network, error) {
	var n network.Network
	err := row.Scan(&n.ID, &n.Project, &n.Name, &n.Description, &n.AdminUp, &n.Shared, &n.External, &n.MTU, &n.PortSecurity,
		&n.Type, &n.PhysicalNetwork, &n.Segment, &n.Subnets, &n.Tags, &n.Revision, &n.CreatedAt, &n.UpdatedAt)
	return n, err
}

// Networks lists networks.
func (s *Store) Networks(ctx context.Context, q db.Listing) ([]network.Network, error) {
	l := db.ListQuery{Columns: networkColumns, Table: "network"}
	clauses, err := l.Clauses(q, visibleNetwork)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.Query(ctx, networkSelect+clauses, l.Args...)
	if err != nil {
		return nil, fmt.Errorf("list networks: %w", err)
	}
	networks, err := pgx.CollectRows(rows, scanNetwork)
	return db.Page(networks, q), err
}

// Network reads one network.
func (s *Store) Network(ctx context.Context, id uuid.UUID) (network.Network, error) {
	return networkByID(ctx, s.db, id)
}

// createAll makes one thing of each draft, all or none.
func createAll[D, M any](ctx context.Context, s *Store, drafts []D, create func(context.Context, *transaction, D) (M, error)) ([]M, error) {
	var made []M
	err := s.inPreparedTx(ctx, func(tx *transaction) error {
		made = make([]M, 0, len(drafts))
		for _, d := range drafts {
			m, err := create(ctx, tx, d)
			if err != nil {
				return err
			}
			made = append(made, m)
		}
		return nil
	})
	return made, err
}

func networkByID(ctx context.Context, q db.Querier, id uuid.UUID) (network.Network, error) {
	return db.QueryOne(ctx, q, scanNetwork, missingNetwork(id), networkSelect+` where id = $1`, id)
}

func missingNetwork(id uuid.UUID) error {
	return missing(network.NotFound(network.NetworkNotFound, "Network", id))
}

// Strengths of a network's row lock: who puts a port on it shares it, who changes what its ports depend on holds
// it alone, and who deletes it keeps out even those who only refer to it.
const (
	sharing  = "share"
	changing = "no key update"
	deleting = "update"
)

// lockNetwork takes the network's row lock and then reads it. The lock comes in a statement of its own, so that
// the read sees what the lock waited for.
func lockNetwork(ctx context.Context, tx *transaction, id uuid.UUID, strength string) (network.Network, error) {
	if _, err := tx.Exec(ctx, `select from network where id = $1 for `+strength, id); err != nil {
		return network.Network{}, fmt.Errorf("lock network: %w", err)
	}
	return networkByID(ctx, tx, id)
}

// CreateNetworks makes networks, all or none.
func (s *Store) CreateNetworks(ctx context.Context, drafts []network.NetworkChange) ([]network.Network, error) {
	return createAll(ctx, s, drafts, createNetwork)
}

func createNetwork(ctx context.Context, tx *transaction, c network.NetworkChange) (network.Network, error) {
	n := network.NewNetwork(uuid.New(), c)
	if err := n.Check(); err != nil {
		return n, err
	}
	if err := admit(ctx, tx, network.QuotaNetworks, n.Project); err != nil {
		return n, err
	}
	if n.Type == network.VXLAN && n.Segment == nil {
		vni, err := freeVNI(ctx, tx)
		if err != nil {
			return n, err
		}
		n.Segment = &vni
	}
	_, err := tx.Exec(ctx, `
		insert into network (id, project, name, description, admin_up, shared, external, mtu, port_security, type, physical_network, segment)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		n.ID, n.Project, n.Name, n.Description, n.AdminUp, n.Shared, n.External, n.MTU, n.PortSecurity, n.Type, n.PhysicalNetwork, n.Segment)
	switch {
	case db.Violates(err, "network_segment"):
		return n, n.SegmentInUseFault()
	case db.Violates(err, "network_flat"):
		return n, network.Faultf(network.FlatInUse, "Unable to create the flat network. Physical network %s is in use.", n.PhysicalNetwork)
	case err != nil:
		return n, fmt.Errorf("create network: %w", err)
	}
	if n, err = networkByID(ctx, tx, n.ID); err != nil {
		return n, err
	}
	return n, record(ctx, tx, mirrorNetwork(n, journal.Create))
}

// freeVNI takes the next VNI that no network has.
func freeVNI(ctx context.Context, tx *transaction) (int, error) {
	for {
		var vni int
		var taken bool
		if err := tx.QueryRow(ctx, `
			with next as (select nextval('network_vni')::integer as vni)
			select vni, exists (select from network where type = 'vxlan' and segment = vni)
			from next`).Scan(&vni, &taken); err != nil {
			return 0, fmt.Errorf("take a VNI: %w", err)
		}
		if !taken {
			return vni, nil
		}
	}
}

// UpdateNetwork changes a network. If expect is not nil, it is the only revision that is changed.
func (s *Store) UpdateNetwork(ctx context.Context, id uuid.UUID, c network.NetworkChange, expect *int64) (network.Network, error) {
	var after network.Network
	err := s.inTx(ctx, func(tx *transaction) error {
		before, err := lockNetwork(ctx, tx, id, changing)
		if err != nil {
			return err
		}
		if err := revisionIs(before.Revision, expect); err != nil {
			return err
		}
		after = before.With(c)
		if same(before, after) {
			return nil
		}
		if before.OpenToAllProjects() && !after.OpenToAllProjects() {
			if err := noGuests(ctx, tx, after); err != nil {
				return err
			}
		}
		tag, err := tx.Exec(ctx, `
			update network
			set name = $2, description = $3, admin_up = $4, shared = $5, external = $6, mtu = $7, port_security = $8, tags = $9,
				revision = revision + 1, updated_at = now()
			where id = $1 and revision = $10`,
			id, after.Name, after.Description, after.AdminUp, after.Shared, after.External, after.MTU, after.PortSecurity, after.Tags, before.Revision)
		if err := fenced(tag, err, "update network", id); err != nil {
			return err
		}
		if after, err = networkByID(ctx, tx, id); err != nil {
			return err
		}
		return record(ctx, tx, mirrorNetwork(after, journal.Update))
	})
	return after, err
}

// noGuests refuses to close a network that ports of other projects are on: these could not be changed any more by those whose they are.
func noGuests(ctx context.Context, tx *transaction, n network.Network) error {
	var guests bool
	if err := tx.QueryRow(ctx, `select exists (select from port where network_id = $1 and project not in ($2, ''))`, n.ID, n.Project).Scan(&guests); err != nil {
		return fmt.Errorf("look for guests: %w", err)
	}
	if guests {
		return network.Faultf(network.InvalidSharedSetting, "Unable to reconfigure sharing settings for network %s. Multiple projects are using it.", n.ID)
	}
	return nil
}

// DeleteNetwork deletes a network without ports but those that serve it, and its subnets with it.
func (s *Store) DeleteNetwork(ctx context.Context, id uuid.UUID, expect *int64) error {
	return s.inTx(ctx, func(tx *transaction) error {
		n, err := lockNetwork(ctx, tx, id, deleting)
		if err != nil {
			return err
		}
		if err := revisionIs(n.Revision, expect); err != nil {
			return err
		}
		if err := evict(ctx, tx, id); err != nil {
			return err
		}
		subnets, err := subnetsOf(ctx, tx, id)
		if err != nil {
			return err
		}
		if _, err := announceHosting(ctx, tx, network.EventDeleted, `
			delete from dhcp_binding d
			using agent a
			where d.network_id = $1 and a.id = d.agent_id
			returning d.network_id, a.host`, id); err != nil {
			return fmt.Errorf("delete network: %w", err)
		}
		var changes []journal.Change
		for _, s := range subnets {
			changes = append(changes, mirrorSubnet(s, journal.Delete))
		}
		changes = append(changes, mirrorNetwork(n, journal.Delete))
		if _, err := tx.Exec(ctx, `delete from subnet where network_id = $1`, id); err != nil {
			return fmt.Errorf("delete network: %w", err)
		}
		if _, err := tx.Exec(ctx, `delete from network where id = $1`, id); err != nil {
			return fmt.Errorf("delete network: %w", err)
		}
		return record(ctx, tx, changes...)
	})
}
