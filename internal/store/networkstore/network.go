package networkstore

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store/db"
)

const networkSelect = `
	select id, project, name, description, admin_up, shared, external, mtu, port_security, type, physical_network, segment,
		array(select s.id from subnet s where s.network_id = network.id order by s.id) as subnets, availability_zone_hints as zone_hints,
		array(
			select distinct a.availability_zone
			from dhcp_binding d
			join agent a on a.id = d.agent_id
			where d.network_id = network.id and a.availability_zone <> ''
			order by a.availability_zone) as zones,
		tags, revision, created_at, updated_at
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
	FieldServingHost:   {Test: "network.id in (" + networksOnHost + ")", Cast: "text[]", Unsorted: true},
	FieldDHCPHost:      {Test: "network.id in (" + NetworksOfDHCPHost + ")", Cast: "text[]", Unsorted: true},
})

// visibleNetwork has the reasons for which a project sees a network: a network of the project, or a shared or
// external network.
var visibleNetwork = []db.Visibility{
	{Condition: `network.project = $project`},
	{Condition: `(network.shared or network.external)`},
}

func scanNetwork(row pgx.CollectableRow) (network.Network, error) {
	return pgx.RowToStructByName[network.Network](row)
}

// Networks lists networks.
func (s *Store) Networks(ctx context.Context, q db.Listing) ([]network.Network, error) {
	l := db.ListQuery{Columns: networkColumns, Table: "network"}
	clauses, err := l.Clauses(q, visibleNetwork...)
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

func networkByID(ctx context.Context, q db.Querier, id uuid.UUID) (network.Network, error) {
	return db.QueryOne(ctx, q, scanNetwork, NetworkNotFound(id), networkSelect+` where id = $1`, id)
}

// NetworkNotFound returns the fault of a request that names a network that does not exist.
func NetworkNotFound(id uuid.UUID) error {
	return NotFound(network.NotFound(network.NetworkNotFound, "Network", id))
}

// NetworksByID reads the networks with the given IDs. NetworksByID omits networks that do not exist.
func NetworksByID(ctx context.Context, q db.Querier, ids []uuid.UUID) ([]network.Network, error) {
	return db.QueryAll(ctx, q, scanNetwork, networkSelect+` where id = any($1)`, ids)
}

// LockStrength is the strength of a lock on a network's row.
type LockStrength string

// The creation of a port takes a shared lock on the row of its network. A change of a network attribute that
// ports depend on takes a lock that excludes the creation of ports. The deletion of a network takes a lock
// that also excludes new rows that refer to the network.
const (
	LockShared    LockStrength = "share"
	LockForChange LockStrength = "no key update"
	LockForDelete LockStrength = "update"
)

// LockNetwork locks the network's row and then reads it, in separate statements, so that the read sees the
// changes of the transactions that the lock waited for.
func LockNetwork(
	ctx context.Context,
	tx *Transaction,
	id uuid.UUID,
	strength LockStrength,
) (n network.Network, err error) {
	batch := &pgx.Batch{}
	tx.QueueNetworkLock(batch, id, strength, &n)
	if err = tx.SendBatch(ctx, batch).Close(); db.NoRows(err) {
		err = NetworkNotFound(id)
	}
	return n, err
}

// maxNetworkTurns is the maximum number of networks for whose locks a transaction waits in turn. All
// transactions share the lock table of PostgreSQL (see maxAddressLocks of portstore). The locks on the rows
// are complete without turns; only a request for many networks at once needs more turns.
const maxNetworkTurns = 256

// QueueNetworkLock queues a lock on the network's row, and the read of the network. The batch fails with
// pgx.ErrNoRows if the network does not exist.
//
// If a row is locked with a shared lock, PostgreSQL gives further shared locks at once, also while a
// transaction waits for a stronger lock. Requests that create ports without a pause could so keep a change
// of their network waiting for ever. Therefore each transaction first takes an advisory lock of the network,
// because PostgreSQL gives advisory locks in the order of the requests.
func (tx *Transaction) QueueNetworkLock(
	batch *pgx.Batch,
	id uuid.UUID,
	strength LockStrength,
	found *network.Network,
) {
	tx.queueTurn(batch, id, strength)
	queueLockedRead(batch, id, strength, found)
}

// queueTurn queues the advisory lock of a network.
func (tx *Transaction) queueTurn(batch *pgx.Batch, id uuid.UUID, strength LockStrength) {
	if tx.networkTurns == nil {
		tx.networkTurns = map[uuid.UUID]bool{}
	}
	if tx.networkTurns[id] || len(tx.networkTurns) < maxNetworkTurns {
		tx.networkTurns[id] = true
		batch.Queue(turnSQL(strength), id.String())
	}
}

// queueLockedRead queues a lock on the network's row, and then the read of the network.
func queueLockedRead(batch *pgx.Batch, id uuid.UUID, strength LockStrength, found *network.Network) {
	batch.Queue(`select from network where id = $1 for `+string(strength), id)
	batch.Queue(networkSelect+` where id = $1`, id).Query(func(rows pgx.Rows) (err error) {
		*found, err = pgx.CollectExactlyOneRow(rows, scanNetwork)
		return err
	})
}

// Limits of a transaction after it has got the turn of a network of another project, whose owner waits
// meanwhile. A member could otherwise hold the turn of a shared network for as long as the member keeps other
// rows locked for which the transaction waits.
const (
	// ForeignLockWait is the maximum time of the wait for one lock.
	ForeignLockWait = 2 * time.Second
	// The transaction may last for foreignTurn, and for foreignPort more for each port that it creates, but
	// not as long as the owner of the network waits for the turn. Only a transaction that waits for several
	// locks, one after another, takes as long.
	foreignTurn    = 4 * time.Second
	foreignPort    = 20 * time.Millisecond
	maxForeignTurn = db.LockTimeout - 2*time.Second
)

// limitForeignTurn limits the rest of the transaction, because it has got the turn of a network of another
// project.
func (tx *Transaction) limitForeignTurn() {
	tx.LimitRest(foreignTurnOf(tx.ports))
}

// foreignTurnOf returns how long a transaction that creates the given number of ports may last after it has
// got the turn of a network of another project.
func foreignTurnOf(ports int) time.Duration {
	return min(foreignTurn+time.Duration(ports)*foreignPort, maxForeignTurn)
}

// QueuePortNetworkLock queues a shared lock on the row of the network of a port, and the read of the network,
// as QueueNetworkLock does. If the network belongs to another project than the port, QueuePortNetworkLock
// limits the time for which the transaction holds the turn of the network.
func (tx *Transaction) QueuePortNetworkLock(
	batch *pgx.Batch,
	id uuid.UUID,
	project string,
	found *network.Network,
) {
	tx.queueTurn(batch, id, LockShared)
	batch.Queue(`select set_config('lock_timeout', $3, true) from network where id = $1 and project <> $2`,
		id, project, strconv.FormatInt(ForeignLockWait.Milliseconds(), 10)).
		Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() > 0 {
				tx.limitForeignTurn()
			}
			return nil
		})
	queueLockedRead(batch, id, LockShared, found)
}

// TakePortTurns waits for the turns of the networks of several ports, before the transaction locks anything:
// first for those of the project's own networks, by ID, then for those of other projects, by ID. A member
// could otherwise hold the turn of a shared network while the transaction waits for one of the member's own
// networks. After the first turn of a network of another project, TakePortTurns limits the transaction as
// QueuePortNetworkLock does. `networks` has the network of each port.
func (tx *Transaction) TakePortTurns(ctx context.Context, project string, networks []uuid.UUID) error {
	tx.ports = len(networks)
	foreign, err := tx.takeOwnTurns(ctx, project, networks)
	for i := 0; i < len(foreign) && err == nil; i++ {
		batch := &pgx.Batch{}
		tx.queueTurn(batch, foreign[i], LockShared)
		db.QueueLockWaitLimit(batch, ForeignLockWait)
		if err = tx.SendBatch(ctx, batch).Close(); err == nil {
			tx.limitForeignTurn()
		}
	}
	if err != nil {
		return fmt.Errorf("wait for the turns of networks: %w", err)
	}
	return nil
}

// takeOwnTurns waits for the turns of those of the networks that belong to the project, and returns the
// others, by ID. Both together are at most maxNetworkTurns networks.
func (tx *Transaction) takeOwnTurns(
	ctx context.Context,
	project string,
	networks []uuid.UUID,
) (foreign []uuid.UUID, err error) {
	rows, err := tx.Query(ctx, `
		select id, project <> $2,
			case
				when project = $2 then pg_advisory_xact_lock_shared(hashtextextended('network ' || id::text, 0))::text
			end
		from (
			select id, project
			from network
			where id = any($1)
			order by project <> $2, id
			limit $3) as n`, networks, project, maxNetworkTurns)
	if err != nil {
		return nil, err
	}
	tx.networkTurns = map[uuid.UUID]bool{}
	var id uuid.UUID
	var isForeign bool
	_, err = pgx.ForEachRow(rows, []any{&id, &isForeign, nil}, func() error {
		if isForeign {
			foreign = append(foreign, id)
		} else {
			tx.networkTurns[id] = true
		}
		return nil
	})
	return foreign, err
}

// turnSQL returns SQL that waits for the advisory lock of the network $1.
func turnSQL(strength LockStrength) string {
	shared := ""
	if strength == LockShared {
		shared = "_shared"
	}
	return `select pg_advisory_xact_lock` + shared + `(hashtextextended('network ' || $1::text, 0))`
}

// CreateNetworks creates networks in one transaction.
func (s *Store) CreateNetworks(
	ctx context.Context,
	drafts []network.NetworkChange,
) ([]network.Network, error) {
	return CreateAll(
		ctx,
		s.inPreparedTx,
		drafts,
		func(ctx context.Context, tx *Transaction, c network.NetworkChange) (network.Network, error) {
			tx.networkDrafts = drafts
			return createNetwork(ctx, tx, c)
		},
	)
}

func createNetwork(ctx context.Context, tx *Transaction, c network.NetworkChange) (network.Network, error) {
	n := network.NewNetwork(uuid.New(), c)
	if err := n.Check(tx.config.VLANs); err != nil {
		return n, err
	}
	n, err := n.ResolveMTU(tx.config.PhysicalMTU)
	if err != nil {
		return n, err
	}
	if err := CheckQuota(ctx, tx, network.QuotaNetworks, n.Project, 1); err != nil {
		return n, err
	}
	if err := checkZones(ctx, tx, n.ZoneHints); err != nil {
		return n, err
	}
	n, err = allocateSegment(ctx, tx, n)
	if err != nil {
		return n, err
	}
	_, err = tx.Exec(ctx, `
		insert into network (id, project, name, description, admin_up, shared, external, mtu, port_security, type, physical_network, segment, availability_zone_hints)
		values (@id, @project, @name, @description, @admin_up, @shared, @external, @mtu, @port_security, @type, @physical_network, @segment, @zone_hints)`, pgx.StrictNamedArgs{
		"id":               n.ID,
		"project":          n.Project,
		"name":             n.Name,
		"description":      n.Description,
		"admin_up":         n.AdminUp,
		"shared":           n.Shared,
		"external":         n.External,
		"mtu":              n.MTU,
		"port_security":    n.PortSecurity,
		"type":             n.Type,
		"physical_network": n.PhysicalNetwork,
		"segment":          n.Segment,
		"zone_hints":       n.ZoneHints,
	})
	switch {
	case db.Violates(err, "network_segment"):
		return n, n.SegmentInUseFault()
	case db.Violates(err, "network_flat"):
		return n, network.Faultf(network.FlatInUse,
			"Unable to create the flat network. Physical network %s is in use.", n.PhysicalNetwork)
	case err != nil:
		return n, fmt.Errorf("create network: %w", err)
	}
	if n, err = networkByID(ctx, tx, n.ID); err != nil {
		return n, err
	}
	return n, RecordChanges(ctx, tx, mirrorNetwork(n, journal.Create))
}

// UpdateNetwork changes a network. If `expect` is not nil, UpdateNetwork fails unless the network has the
// revision `expect`.
func (s *Store) UpdateNetwork(
	ctx context.Context,
	id uuid.UUID,
	c network.NetworkChange,
	expect *int64,
) (network.Network, error) {
	var after network.Network
	err := s.inTx(ctx, func(tx *Transaction) error {
		before, err := LockNetwork(ctx, tx, id, LockForChange)
		if err != nil {
			return err
		}
		if err := CheckRevision(before.Revision, expect); err != nil {
			return err
		}
		after = before.With(c)
		if after.MTU != before.MTU {
			if after, err = after.ResolveMTU(tx.config.PhysicalMTU); err != nil {
				return err
			}
		}
		if reflect.DeepEqual(before, after) {
			return nil
		}
		if err := checkNetworkChange(ctx, tx, before, after); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			update network
			set name = @name, description = @description, admin_up = @admin_up, shared = @shared, external = @external, mtu = @mtu, port_security = @port_security, tags = @tags,
				revision = revision + 1, updated_at = now()
			where id = @id and revision = @expected_revision`, pgx.StrictNamedArgs{
			"id":                id,
			"name":              after.Name,
			"description":       after.Description,
			"admin_up":          after.AdminUp,
			"shared":            after.Shared,
			"external":          after.External,
			"mtu":               after.MTU,
			"port_security":     after.PortSecurity,
			"tags":              after.Tags,
			"expected_revision": before.Revision,
		})
		if err := db.CheckFence(tag, err, "update network", id); err != nil {
			return err
		}
		if after, err = networkByID(ctx, tx, id); err != nil {
			return err
		}
		tx.Audit(before, after)
		return RecordChanges(ctx, tx, mirrorNetwork(after, journal.Update))
	})
	return after, err
}

// checkNetworkChange returns an error if the ports or the subnets of the network do not allow the change.
func checkNetworkChange(ctx context.Context, tx *Transaction, before, after network.Network) error {
	if before.OpenToAllProjects() && !after.OpenToAllProjects() {
		if err := checkNoForeignPorts(ctx, tx, after); err != nil {
			return err
		}
	}
	if after.MTU >= before.MTU {
		return nil
	}
	subnets, err := NetworkSubnets(ctx, tx, after.ID)
	if err != nil {
		return err
	}
	return after.CheckMTU(subnets)
}

// checkNoForeignPorts returns an error if a network that is about to become private has ports of other
// projects, because the other projects could no longer change their ports.
func checkNoForeignPorts(ctx context.Context, tx *Transaction, n network.Network) error {
	var inUse bool
	if err := tx.QueryRow(ctx, `select exists (select from port where network_id = $1 and project not in ($2, ''))`, n.ID, n.Project).Scan(&inUse); err != nil {
		return fmt.Errorf("find ports of other projects: %w", err)
	}
	if inUse {
		return network.Faultf(network.InvalidSharedSetting,
			"Unable to reconfigure sharing settings for network %s. Multiple projects are using it.",
			n.ID)
	}
	return nil
}

// bumpNetworkRevision increments the revision of a locked network, one of whose subnets has changed.
func bumpNetworkRevision(ctx context.Context, tx *Transaction, id uuid.UUID) error {
	if _, err := tx.Exec(ctx, `update network set revision = revision + 1, updated_at = now() where id = $1`, id); err != nil {
		return fmt.Errorf("update network: %w", err)
	}
	return nil
}

// DeleteNetwork deletes a locked network without ports, together with the subnets of the network.
func DeleteNetwork(ctx context.Context, tx *Transaction, n network.Network) error {
	subnets, err := NetworkSubnets(ctx, tx, n.ID)
	if err != nil {
		return err
	}
	if _, err := enqueueHostingNotifications(ctx, tx, network.EventDeleted, `
		delete from dhcp_binding d
		using agent a
		where d.network_id = $1 and a.id = d.agent_id
		returning d.network_id, a.host`, n.ID); err != nil {
		return fmt.Errorf("delete network: %w", err)
	}
	var changes []journal.Change
	for _, s := range subnets {
		changes = append(changes, mirrorSubnet(s, journal.Delete))
	}
	changes = append(changes, mirrorNetwork(n, journal.Delete))
	if _, err := tx.Exec(ctx, `delete from subnet where network_id = $1`, n.ID); err != nil {
		return fmt.Errorf("delete network: %w", err)
	}
	if _, err := tx.Exec(ctx, `delete from network where id = $1`, n.ID); err != nil {
		return fmt.Errorf("delete network: %w", err)
	}
	tx.Audit(n, nil)
	return RecordChanges(ctx, tx, changes...)
}
