package networkstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store/db"
)

const subnetSelect = `
	select id, network_id as network, project, name, description, cidr, host(gateway)::inet as gateway, dhcp, pools, dns, routes, ra_mode, address_mode, service_types, tags, revision, created_at, updated_at
	from subnet`

// smallSubnetSelect selects subnets without the attributes that can be large.
var smallSubnetSelect = strings.NewReplacer(
	" description,", " '' as description,",
	" pools, dns, routes,", " '[]'::jsonb as pools, array[]::text[] as dns, '[]'::jsonb as routes,",
	" tags,", " array[]::text[] as tags,",
).Replace(subnetSelect)

// largeSubnetFields are the attributes of a subnet that can be large.
var largeSubnetFields = []string{"description", "allocation_pools", "dns_nameservers", "host_routes", "tags"}

var subnetColumns = db.Tagged("subnet", map[string]db.Column{
	"id":             {Expr: "subnet.id", Cast: "uuid[]"},
	"network":        {Expr: "subnet.network_id", Cast: "uuid[]"},
	"project":        {Expr: "subnet.project", Cast: "text[]"},
	"name":           {Expr: "subnet.name", Cast: "text[]"},
	"description":    {Expr: "subnet.description", Cast: "text[]"},
	"ip_version":     {Expr: "family(subnet.cidr)", Cast: "bigint[]"},
	"cidr":           {Expr: "subnet.cidr::text", Cast: "text[]"},
	"gateway":        {Expr: "coalesce(host(subnet.gateway), '')", Cast: "text[]"},
	"dhcp":           {Expr: "subnet.dhcp", Cast: "boolean[]"},
	"ra_mode":        {Expr: "subnet.ra_mode", Cast: "text[]"},
	"address_mode":   {Expr: "subnet.address_mode", Cast: "text[]"},
	"subnetpool":     {Expr: "text ''", Cast: "text[]"},
	"revision":       {Expr: "subnet.revision", Cast: "bigint[]"},
	FieldServingHost: {Test: "subnet.network_id in (" + networksOnHost + ")", Cast: "text[]", Unsorted: true},
	"shared": {
		Test:     "exists (select from network n where n.id = subnet.network_id and n.shared = any(%s))",
		Cast:     "boolean[]",
		Unsorted: true,
	},
})

// visibleSubnet has the reasons for which a project sees a subnet: a subnet of the project, or of a shared
// network.
var visibleSubnet = []db.Visibility{
	{Condition: `subnet.project = $project`},
	{Condition: `shared`, Parent: "network", Key: "network_id"},
}

func scanSubnet(row pgx.CollectableRow) (network.Subnet, error) {
	return pgx.RowToStructByName[network.Subnet](row)
}

// Subnets lists subnets. If the request needs none of the attributes that can be large, Subnets does not read
// them.
func (s *Store) Subnets(ctx context.Context, q db.Listing) ([]network.Subnet, error) {
	l := db.ListQuery{Columns: subnetColumns, Table: "subnet"}
	clauses, err := l.Clauses(q, visibleSubnet...)
	if err != nil {
		return nil, err
	}
	columns := smallSubnetSelect
	if slices.ContainsFunc(largeSubnetFields, q.Needs) {
		columns = subnetSelect
	}
	rows, err := s.db.Query(ctx, columns+clauses, l.Args...)
	if err != nil {
		return nil, fmt.Errorf("list subnets: %w", err)
	}
	subnets, err := pgx.CollectRows(rows, scanSubnet)
	return db.Page(subnets, q), err
}

// Subnet reads one subnet.
func (s *Store) Subnet(ctx context.Context, id uuid.UUID) (network.Subnet, error) {
	return SubnetByID(ctx, s.db, id)
}

// SubnetByID reads one subnet.
func SubnetByID(ctx context.Context, q db.Querier, id uuid.UUID) (network.Subnet, error) {
	missing := NotFound(network.NotFound(network.SubnetNotFound, "Subnet", id))
	return db.QueryOne(ctx, q, scanSubnet, missing, subnetSelect+` where id = $1`, id)
}

// networkSubnetsClause selects the subnets of network $1, oldest first.
const networkSubnetsClause = ` where network_id = $1 order by created_at, id`

// NetworkSubnets lists the subnets of a network, oldest first.
func NetworkSubnets(ctx context.Context, tx *Transaction, id uuid.UUID) ([]network.Subnet, error) {
	rows, err := tx.Query(ctx, subnetSelect+networkSubnetsClause, id)
	if err != nil {
		return nil, fmt.Errorf("list subnets of the network: %w", err)
	}
	return pgx.CollectRows(rows, scanSubnet)
}

// CreateSubnet creates a subnet. The ports of the network get no addresses in it.
func CreateSubnet(ctx context.Context, tx *Transaction, c network.SubnetChange) (network.Subnet, error) {
	s, err := network.NewSubnet(uuid.New(), c)
	if err != nil {
		return s, err
	}
	n, err := LockNetwork(ctx, tx, s.Network, LockForChange)
	if err != nil {
		return s, err
	}
	if err := n.CheckMTU([]network.Subnet{s}); err != nil {
		return s, err
	}
	if err := CheckQuota(ctx, tx, network.QuotaSubnets, s.Project, 1); err != nil {
		return s, err
	}
	siblings, err := NetworkSubnets(ctx, tx, s.Network)
	if err != nil {
		return s, err
	}
	if at := slices.IndexFunc(siblings, func(o network.Subnet) bool { return o.CIDR.Overlaps(s.CIDR) }); at >= 0 {
		return s, network.Faultf(network.InvalidInput,
			"Invalid input for operation: Requested subnet with cidr: %s for network: %s overlaps with another subnet.",
			s.CIDR, s.Network)
	}
	if _, err := tx.Exec(ctx, `
		insert into subnet (id, network_id, project, name, description, cidr, gateway, dhcp, pools, dns, routes, ra_mode, address_mode, service_types)
		values (@id, @network_id, @project, @name, @description, @cidr, @gateway::text::inet, @dhcp, @pools, @dns, @routes, @ra_mode, @address_mode, @service_types)`, pgx.StrictNamedArgs{
		"id":            s.ID,
		"network_id":    s.Network,
		"project":       s.Project,
		"name":          s.Name,
		"description":   s.Description,
		"cidr":          s.CIDR,
		"gateway":       db.InetParam(s.Gateway),
		"dhcp":          s.DHCP,
		"pools":         db.EncodeJSON(db.OrEmpty(s.Pools)),
		"dns":           db.OrEmpty(s.DNS),
		"routes":        db.EncodeJSON(db.OrEmpty(s.Routes)),
		"ra_mode":       s.RAMode,
		"address_mode":  s.AddressMode,
		"service_types": s.ServiceTypes,
	}); err != nil {
		return s, fmt.Errorf("create subnet: %w", err)
	}
	if err := bumpNetworkRevision(ctx, tx, s.Network); err != nil {
		return s, err
	}
	if s.DHCP {
		if err := ChooseDHCPAgent(ctx, tx, s.Network, uuid.Nil); err != nil {
			return s, err
		}
	}
	if s, err = SubnetByID(ctx, tx, s.ID); err != nil {
		return s, err
	}
	return s, RecordChanges(ctx, tx, mirrorSubnet(s, journal.Create))
}

// QueueSubnetsRead queues the query that NetworkSubnets makes.
func QueueSubnetsRead(batch *pgx.Batch, id uuid.UUID, found *[]network.Subnet) {
	batch.Queue(subnetSelect+networkSubnetsClause, id).Query(func(rows pgx.Rows) (err error) {
		*found, err = pgx.CollectRows(rows, scanSubnet)
		return err
	})
}

// LockSubnet locks the row of the subnet's network and then the row of the subnet. If `expect` is not nil,
// LockSubnet fails unless the subnet has the revision `expect`.
func LockSubnet(ctx context.Context, tx *Transaction, id uuid.UUID, expect *int64) (network.Subnet, error) {
	s, err := SubnetByID(ctx, tx, id)
	if err != nil {
		return s, err
	}
	if _, err := LockNetwork(ctx, tx, s.Network, LockForChange); err != nil {
		return s, err
	}
	if _, err := tx.Exec(ctx, `select from subnet where id = $1 for update`, id); err != nil {
		return s, fmt.Errorf("lock subnet: %w", err)
	}
	if s, err = SubnetByID(ctx, tx, id); err != nil {
		return s, err
	}
	return s, CheckRevision(s.Revision, expect)
}

// UpdateSubnet writes a changed subnet whose row is locked. If the change enables DHCP, UpdateSubnet assigns
// the network to a DHCP agent. UpdateSubnet does not record the change; RecordSubnetUpdate does.
func UpdateSubnet(ctx context.Context, tx *Transaction, before, after network.Subnet) error {
	if after.Gateway.IsValid() && after.Gateway != before.Gateway {
		if err := checkNoRouterOnGateway(ctx, tx, before); err != nil {
			return err
		}
	}
	tag, err := tx.Exec(ctx, `
		update subnet
		set name = @name, description = @description, gateway = @gateway::text::inet, dhcp = @dhcp, pools = @pools, dns = @dns, routes = @routes, service_types = @service_types, tags = @tags,
			revision = revision + 1, updated_at = now()
		where id = @id and revision = @expected_revision`, pgx.StrictNamedArgs{
		"id":                after.ID,
		"name":              after.Name,
		"description":       after.Description,
		"gateway":           db.InetParam(after.Gateway),
		"dhcp":              after.DHCP,
		"pools":             db.EncodeJSON(db.OrEmpty(after.Pools)),
		"dns":               db.OrEmpty(after.DNS),
		"routes":            db.EncodeJSON(db.OrEmpty(after.Routes)),
		"service_types":     after.ServiceTypes,
		"tags":              after.Tags,
		"expected_revision": before.Revision,
	})
	if err := db.CheckFence(tag, err, "update subnet", after.ID); err != nil {
		return err
	}
	if err := bumpNetworkRevision(ctx, tx, after.Network); err != nil {
		return err
	}
	if before.DHCP || !after.DHCP {
		return nil
	}
	return ChooseDHCPAgent(ctx, tx, after.Network, uuid.Nil)
}

// RecordSubnetUpdate records what UpdateSubnet has changed, and returns the subnet after the change.
func RecordSubnetUpdate(ctx context.Context, tx *Transaction, before network.Subnet) (network.Subnet, error) {
	after, err := SubnetByID(ctx, tx, before.ID)
	if err != nil {
		return after, err
	}
	tx.Audit(before, after)
	return after, RecordChanges(ctx, tx, mirrorSubnet(after, journal.Update))
}

// checkNoRouterOnGateway fails if a router port uses the current gateway address of a locked subnet.
func checkNoRouterOnGateway(ctx context.Context, tx *Transaction, s network.Subnet) error {
	var router uuid.UUID
	err := tx.QueryRow(ctx, `
		select p.id
		from port_address a
		join port p on p.id = a.port_id
		where a.subnet_id = $1 and a.address = $2::text::inet and p.device_owner = any($3)`, s.ID, db.InetParam(s.Gateway), network.RouterInterfaceOwners()).Scan(&router)
	switch {
	case db.NoRows(err):
		return nil
	case err != nil:
		return fmt.Errorf("find router ports: %w", err)
	default:
		return network.Faultf(network.GatewayInUse,
			"Current gateway ip %s already in use by port %s. Unable to update.", s.Gateway, router)
	}
}

// DeleteSubnet deletes a locked subnet without addresses.
func DeleteSubnet(ctx context.Context, tx *Transaction, s network.Subnet) error {
	if _, err := tx.Exec(ctx, `delete from subnet where id = $1`, s.ID); err != nil {
		return fmt.Errorf("delete subnet: %w", err)
	}
	if err := bumpNetworkRevision(ctx, tx, s.Network); err != nil {
		return err
	}
	tx.Audit(s, nil)
	return RecordChanges(ctx, tx, mirrorSubnet(s, journal.Delete))
}
