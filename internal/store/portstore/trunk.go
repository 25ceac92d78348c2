package portstore

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
)

// A transaction that changes a trunk or its subports holds the row lock of the parent port, so that the
// subports always have the host of the parent port. After the row of the parent port, the transaction locks
// the rows of the subports, in the order of their IDs.

func trunkByID(ctx context.Context, q db.Querier, id uuid.UUID) (network.Trunk, error) {
	missing := networkstore.NotFound(network.NotFound(network.TrunkNotFound, "Trunk", id))
	return db.QueryOne(ctx, q, scanTrunk, missing, trunkSelect+` where id = $1`, id)
}

// lockTrunk locks the row of a trunk's parent port, and reads the trunk and the parent port.
func lockTrunk(ctx context.Context, tx *transaction, id uuid.UUID) (network.Trunk, lockedPort, error) {
	t, err := trunkByID(ctx, tx, id)
	if err != nil {
		return t, lockedPort{}, err
	}
	parent, err := lockPort(ctx, tx, t.Port)
	if err != nil {
		return t, parent, err
	}
	t, err = trunkByID(ctx, tx, id)
	return t, parent, err
}

// CreateTrunks creates trunks in one transaction.
func (s *Store) CreateTrunks(ctx context.Context, drafts []network.TrunkChange) ([]network.Trunk, error) {
	return networkstore.CreateAll(ctx, s.inPreparedTx, drafts, createTrunk)
}

func createTrunk(ctx context.Context, tx *transaction, c network.TrunkChange) (network.Trunk, error) {
	t := network.NewTrunk(uuid.New(), c)
	if err := networkstore.CheckQuota(ctx, tx.Transaction, network.QuotaTrunks, t.Project, 1); err != nil {
		return t, err
	}
	parent, err := lockPort(ctx, tx, t.Port)
	if err != nil {
		return t, err
	}
	if parent.Bound() {
		return t, network.Faultf(network.ParentInUse,
			"Port %s is currently in use and is not eligible for use as a parent port.", t.Port)
	}
	if err := checkNotOnTrunk(ctx, tx, []uuid.UUID{t.Port}); err != nil {
		return t, err
	}
	if _, err := tx.Exec(ctx, `
		insert into trunk (id, project, name, description, admin_up, port_id, tags)
		values (@id, @project, @name, @description, @admin_up, @port_id, @tags)`, pgx.StrictNamedArgs{
		"id":          t.ID,
		"project":     t.Project,
		"name":        t.Name,
		"description": t.Description,
		"admin_up":    t.AdminUp,
		"port_id":     t.Port,
		"tags":        t.Tags,
	}); err != nil {
		return t, fmt.Errorf("create trunk: %w", err)
	}
	if c.Subports != nil {
		if err := addSubports(ctx, tx, t, parent.Port, *c.Subports); err != nil {
			return t, err
		}
	}
	return recordTrunk(ctx, tx, t.ID, journal.Create)
}

// recordTrunk reads a trunk and writes the journal entry of a change of the trunk.
func recordTrunk(
	ctx context.Context,
	tx *transaction,
	id uuid.UUID,
	op journal.Operation,
) (network.Trunk, error) {
	t, err := trunkByID(ctx, tx, id)
	if err != nil {
		return t, err
	}
	return t, networkstore.RecordWithReferences(ctx, tx.Transaction, mirrorTrunk(t, op))
}

// checkNotOnTrunk fails if one of the locked ports is a parent or subport of a trunk.
func checkNotOnTrunk(ctx context.Context, tx *transaction, ports []uuid.UUID) error {
	var parent, subport *uuid.UUID
	if err := tx.QueryRow(ctx, `
		select (select min(port_id::text) from trunk where port_id = any($1))::uuid,
			(select min(port_id::text) from subport where port_id = any($1))::uuid`, ports).Scan(&parent, &subport); err != nil {
		return fmt.Errorf("find trunks of ports: %w", err)
	}
	switch {
	case parent != nil:
		return network.Faultf(network.ParentInUse,
			"Port %s is currently in use and is not eligible for use as a parent port.", *parent)
	case subport != nil:
		return network.Faultf(network.TrunkPortInUse, "Port %s is in use by another trunk.", *subport)
	default:
		return nil
	}
}

// addSubports adds ports to a trunk and binds these ports to the host of the trunk's parent port.
func addSubports(
	ctx context.Context,
	tx *transaction,
	t network.Trunk,
	parent network.Port,
	subports []network.Subport,
) error {
	ids := make([]uuid.UUID, len(subports))
	for i, s := range subports {
		ids[i] = s.Port
	}
	members, err := lockMembers(ctx, tx, ids)
	if err != nil {
		return err
	}
	if subports, err = resolveSegmentation(ctx, tx, t, parent, subports, members); err != nil {
		return err
	}
	if err := t.CheckAddSubports(subports); err != nil {
		return err
	}
	if err := checkNotOnTrunk(ctx, tx, ids); err != nil {
		return err
	}
	for _, m := range members {
		if m.DeviceID != "" { // a host alone is no use: the port gets the host of the parent
			return network.Faultf(
				network.PortInUse,
				"Unable to complete operation on port %s for network %s. Port already has an attached device %s.",
				m.ID, m.Network, m.DeviceID,
			)
		}
	}
	if err := bindMembers(ctx, tx, members, parent.SubportHost(), network.DeviceOwnerSubport); err != nil {
		return err
	}
	return insertSubports(ctx, tx, t.ID, subports)
}

func insertSubports(ctx context.Context, tx *transaction, trunk uuid.UUID, subports []network.Subport) error {
	ports, types := make([]uuid.UUID, len(subports)), make([]string, len(subports))
	segments := make([]int, len(subports))
	for i, s := range subports {
		ports[i], types[i], segments[i] = s.Port, s.Type, s.Segment
	}
	if _, err := tx.Exec(ctx, `
		insert into subport (port_id, trunk_id, segmentation_type, segmentation_id)
		select s.port_id, $1, s.type, s.segment
		from unnest($2::uuid[], $3::text[], $4::integer[]) as s (port_id, type, segment)`,
		trunk, ports, types, segments); err != nil {
		return fmt.Errorf("add subports: %w", err)
	}
	return nil
}

// resolveSegmentation returns the subports with explicit segmentation. A subport with the segmentation type
// "inherit" gets the segmentation type and ID of the network of the subport.
func resolveSegmentation(
	ctx context.Context,
	tx *transaction,
	t network.Trunk,
	parent network.Port,
	subports []network.Subport,
	members []member,
) ([]network.Subport, error) {
	networkOf := map[uuid.UUID]uuid.UUID{}
	ids := []uuid.UUID{parent.Network}
	for _, m := range members {
		networkOf[m.ID] = m.Network
		ids = append(ids, m.Network)
	}
	found, err := networkstore.NetworksByID(ctx, tx, ids)
	if err != nil {
		return nil, fmt.Errorf("read networks of subports: %w", err)
	}
	networks := map[uuid.UUID]network.Network{}
	for _, n := range found {
		networks[n.ID] = n
	}
	resolved := make([]network.Subport, len(subports))
	for i, s := range subports {
		if resolved[i], err = s.ForTrunk(t.ID, networks[networkOf[s.Port]], networks[parent.Network]); err != nil {
			return nil, err
		}
	}
	return resolved, nil
}

// member is what the rules about the subports of a trunk need of a port.
type member struct {
	ID       uuid.UUID
	Network  uuid.UUID
	DeviceID string
}

// lockMembers locks several ports in the order of the ports' IDs. lockMembers returns an error if a port does
// not exist.
func lockMembers(ctx context.Context, tx *transaction, ids []uuid.UUID) (all []member, err error) {
	batch := &pgx.Batch{}
	batch.Queue(`select from port where id = any($1) order by id for update`, ids)
	batch.Queue(`select id, network_id, device_id from port where id = any($1) order by id`, ids).
		Query(func(rows pgx.Rows) (err error) {
			all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[member])
			return err
		})
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("lock ports: %w", err)
	}
	exists := make(map[uuid.UUID]bool, len(all))
	for _, m := range all {
		exists[m.ID] = true
	}
	for _, id := range ids {
		if !exists[id] {
			return nil, portNotFound(id)
		}
	}
	return all, nil
}

// membersAtOnce is the number of ports that bindMembers reads at once. With its tags and DHCP options, a port
// can have more than 100 kB, and a trunk can have all ports of a project.
const membersAtOnce = 20

// bindMembers binds locked ports to the host, or unbinds them if `host` is empty, and sets their device
// owner.
func bindMembers(ctx context.Context, tx *transaction, all []member, host, owner string) error {
	for part := range slices.Chunk(all, membersAtOnce) {
		ids := make([]uuid.UUID, len(part))
		for i, m := range part {
			ids[i] = m.ID
		}
		ports, err := lockExistingPorts(ctx, tx, ids)
		if err != nil {
			return err
		}
		for _, p := range ports {
			c := network.PortChange{Host: &host, DeviceOwner: &owner}
			if _, err := changePort(ctx, tx, p, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveSubports binds the subports of a trunk to the host of the trunk's parent port, or unbinds the subports
// if the parent port has no host.
func moveSubports(ctx context.Context, tx *transaction, parent network.Port) error {
	rows, err := tx.Query(ctx, `
		select s.port_id
		from trunk t
		join subport s on s.trunk_id = t.id
		where t.port_id = $1`, parent.ID)
	if err != nil {
		return fmt.Errorf("find subports: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return err
	}
	return bindPortsTo(ctx, tx, ids, parent.SubportHost(), network.DeviceOwnerSubport)
}

// bindPortsTo binds the ports to the host, or unbinds the ports if `host` is empty, and sets the device owner
// of the ports.
func bindPortsTo(ctx context.Context, tx *transaction, ports []uuid.UUID, host, owner string) error {
	members, err := lockMembers(ctx, tx, ports)
	if err != nil {
		return err
	}
	return bindMembers(ctx, tx, members, host, owner)
}

// UpdateTrunk changes a trunk. If `expect` is not nil, UpdateTrunk fails unless the trunk has the revision
// `expect`.
func (s *Store) UpdateTrunk(
	ctx context.Context,
	id uuid.UUID,
	c network.TrunkChange,
	expect *int64,
) (network.Trunk, error) {
	return s.changeTrunk(
		ctx,
		id,
		expect,
		func(tx *transaction, t network.Trunk, _ network.Port) (bool, error) {
			after := t.With(c)
			if reflect.DeepEqual(t, after) {
				return false, nil
			}
			_, err := tx.Exec(ctx, `
			update trunk
			set name = @name, description = @description, admin_up = @admin_up, tags = @tags
			where id = @id`, pgx.StrictNamedArgs{
				"id":          id,
				"name":        after.Name,
				"description": after.Description,
				"admin_up":    after.AdminUp,
				"tags":        after.Tags,
			})
			return true, err
		},
	)
}

// AddSubports adds subports to a trunk and binds the subports to the host of the trunk's parent port.
func (s *Store) AddSubports(
	ctx context.Context,
	id uuid.UUID,
	subports []network.Subport,
) (network.Trunk, error) {
	return s.changeTrunk(
		ctx,
		id,
		nil,
		func(tx *transaction, t network.Trunk, parent network.Port) (bool, error) {
			if err := t.CheckEnabled(); err != nil {
				return false, err
			}
			return len(subports) > 0, addSubports(ctx, tx, t, parent, subports)
		},
	)
}

// RemoveSubports removes subports from a trunk and unbinds the removed ports.
func (s *Store) RemoveSubports(ctx context.Context, id uuid.UUID, ports []uuid.UUID) (network.Trunk, error) {
	return s.changeTrunk(ctx, id, nil, func(tx *transaction, t network.Trunk, _ network.Port) (bool, error) {
		if err := t.CheckRemoveSubports(ports); err != nil {
			return false, err
		}
		return len(ports) > 0, removeSubports(ctx, tx, ports)
	})
}

// removeSubports removes subports from their trunk, and unbinds the removed ports.
func removeSubports(ctx context.Context, tx *transaction, ports []uuid.UUID) error {
	if _, err := tx.Exec(ctx, `delete from subport where port_id = any($1)`, ports); err != nil {
		return fmt.Errorf("remove subports: %w", err)
	}
	return bindPortsTo(ctx, tx, ports, "", "")
}

// changeTrunk changes a trunk while the transaction holds the row lock of the parent port, and increments the
// trunk's revision if the trunk changed.
func (s *Store) changeTrunk(
	ctx context.Context,
	id uuid.UUID,
	expect *int64,
	change func(tx *transaction, t network.Trunk, parent network.Port) (changed bool, err error),
) (network.Trunk, error) {
	var after network.Trunk
	err := s.inTx(ctx, func(tx *transaction) error {
		t, parent, err := lockTrunk(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := networkstore.CheckRevision(t.Revision, expect); err != nil {
			return err
		}
		after = t
		if changed, err := change(tx, t, parent.Port); err != nil || !changed {
			return err
		}
		if _, err := tx.Exec(ctx, `update trunk set revision = revision + 1, updated_at = now() where id = $1`, id); err != nil {
			return fmt.Errorf("update trunk: %w", err)
		}
		after, err = recordTrunk(ctx, tx, id, journal.Update)
		tx.Audit(t, after)
		return err
	})
	return after, err
}

// DeleteTrunk deletes an enabled trunk whose parent port is not bound. DeleteTrunk does not delete the parent
// port and the subports.
func (s *Store) DeleteTrunk(ctx context.Context, id uuid.UUID, expect *int64) error {
	return s.inTx(ctx, func(tx *transaction) error {
		t, parent, err := lockTrunk(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := networkstore.CheckRevision(t.Revision, expect); err != nil {
			return err
		}
		if err := t.CheckEnabled(); err != nil {
			return err
		}
		if parent.Bound() {
			return network.Faultf(network.TrunkInUse, "Trunk %s is currently in use.", id)
		}
		ports := make([]uuid.UUID, len(t.Subports))
		for i, s := range t.Subports {
			ports[i] = s.Port
		}
		if err := removeSubports(ctx, tx, ports); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `with blocks as (delete from block where object_id = $1) delete from trunk where id = $1`, id); err != nil {
			return fmt.Errorf("delete trunk: %w", err)
		}
		tx.Audit(t, nil)
		return networkstore.RecordWithReferences(ctx, tx.Transaction, mirrorTrunk(t, journal.Delete))
	})
}
