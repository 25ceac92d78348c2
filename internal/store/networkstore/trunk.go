package networkstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
)

// A trunk and which ports are on it change under the lock of its parent's row, so that its subports are where its
// parent is. The rows of subports are locked after that, in the order of their IDs.

func trunkByID(ctx context.Context, q db.Querier, id uuid.UUID) (network.Trunk, error) {
	missing := missing(network.NotFound(network.TrunkNotFound, "Trunk", id))
	return db.QueryOne(ctx, q, scanTrunk, missing, trunkSelect+` where id = $1`, id)
}

// lockTrunk takes the row lock of a trunk's parent, and reads both under it.
func lockTrunk(ctx context.Context, tx *transaction, id uuid.UUID) (network.Trunk, held, error) {
	t, err := trunkByID(ctx, tx, id)
	if err != nil {
		return t, held{}, err
	}
	parent, err := lockPort(ctx, tx, t.Port)
	if err != nil {
		return t, parent, err
	}
	t, err = trunkByID(ctx, tx, id)
	return t, parent, err
}

// CreateTrunks makes trunks, all or none.
func (s *Store) CreateTrunks(ctx context.Context, drafts []network.TrunkChange) ([]network.Trunk, error) {
	return createAll(ctx, s, drafts, createTrunk)
}

func createTrunk(ctx context.Context, tx *transaction, c network.TrunkChange) (network.Trunk, error) {
	t := network.NewTrunk(uuid.New(), c)
	if err := admit(ctx, tx, network.QuotaTrunks, t.Project); err != nil {
		return t, err
	}
	parent, err := lockPort(ctx, tx, t.Port)
	if err != nil {
		return t, err
	}
	if parent.Bound() {
		return t, network.Faultf(network.ParentInUse, "Port %s is currently in use and is not eligible for use as a parent port.", t.Port)
	}
	if err := onNoTrunk(ctx, tx, []uuid.UUID{t.Port}); err != nil {
		return t, err
	}
	if _, err := tx.Exec(ctx, `
		insert into trunk (id, project, name, description, admin_up, port_id, tags)
		values ($1, $2, $3, $4, $5, $6, $7)`, t.ID, t.Project, t.Name, t.Description, t.AdminUp, t.Port, t.Tags); err != nil {
		return t, fmt.Errorf("create trunk: %w", err)
	}
	if c.Subports != nil {
		if err := board(ctx, tx, t, parent.Port, *c.Subports); err != nil {
			return t, err
		}
	}
	return mirrorOf(ctx, tx, t.ID, journal.Create)
}

// mirrorOf records what became of a trunk.
func mirrorOf(ctx context.Context, tx *transaction, id uuid.UUID, op journal.Operation) (network.Trunk, error) {
	t, err := trunkByID(ctx, tx, id)
	if err != nil {
		return t, err
	}
	return t, keepAndRecord(ctx, tx, mirrorTrunk(t, op))
}

func keepAndRecord(ctx context.Context, tx *transaction, c journal.Change) error {
	changes, err := journalstore.SaveObject(ctx, tx, c)
	if err != nil {
		return err
	}
	return record(ctx, tx, changes...)
}

// onNoTrunk refuses ports, whose rows are locked, that are on a trunk, as parent or subport.
func onNoTrunk(ctx context.Context, tx *transaction, ports []uuid.UUID) error {
	var parent, subport *uuid.UUID
	if err := tx.QueryRow(ctx, `
		select (select min(port_id::text) from trunk where port_id = any($1))::uuid,
			(select min(port_id::text) from subport where port_id = any($1))::uuid`, ports).Scan(&parent, &subport); err != nil {
		return fmt.Errorf("look for trunks: %w", err)
	}
	switch {
	case parent != nil:
		return network.Faultf(network.ParentInUse, "Port %s is currently in use and is not eligible for use as a parent port.", *parent)
	case subport != nil:
		return network.Faultf(network.TrunkPortInUse, "Port %s is in use by another trunk.", *subport)
	default:
		return nil
	}
}

// board puts ports on a trunk and where its parent is.
func board(ctx context.Context, tx *transaction, t network.Trunk, parent network.Port, subports []network.Subport) error {
	ids := make([]uuid.UUID, len(subports))
	for i, s := range subports {
		ids[i] = s.Port
	}
	members, err := lockPorts(ctx, tx, ids)
	if err != nil {
		return err
	}
	if subports, err = toldApart(ctx, tx, t, parent, subports, members); err != nil {
		return err
	}
	if err := t.CheckAddSubports(subports); err != nil {
		return err
	}
	if err := onNoTrunk(ctx, tx, ids); err != nil {
		return err
	}
	for _, m := range members {
		if m.DeviceID != "" || m.Host != "" {
			return network.Faultf(network.PortInUse, "Unable to complete operation on port %s for network %s. Port already has an attached device %s.", m.ID, m.Network, m.DeviceID)
		}
		if err := settleAt(ctx, tx, m, parent.SubportHost(), network.DeviceOwnerSubport); err != nil {
			return err
		}
	}
	for _, s := range subports {
		if _, err := tx.Exec(ctx, `
			insert into subport (port_id, trunk_id, segmentation_type, segmentation_id)
			values ($1, $2, $3, $4)`, s.Port, t.ID, s.Type, s.Segment); err != nil {
			return fmt.Errorf("add subport: %w", err)
		}
	}
	return nil
}

// toldApart are the subports as they are told apart on the trunk, which their networks decide with.
func toldApart(ctx context.Context, tx *transaction, t network.Trunk, parent network.Port, subports []network.Subport, members []held) ([]network.Subport, error) {
	on := map[uuid.UUID]uuid.UUID{}
	ids := []uuid.UUID{parent.Network}
	for _, m := range members {
		on[m.ID] = m.Network
		ids = append(ids, m.Network)
	}
	rows, err := tx.Query(ctx, networkSelect+` where id = any($1)`, ids)
	if err != nil {
		return nil, fmt.Errorf("read the networks of subports: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanNetwork)
	if err != nil {
		return nil, fmt.Errorf("read the networks of subports: %w", err)
	}
	networks := map[uuid.UUID]network.Network{}
	for _, n := range found {
		networks[n.ID] = n
	}
	told := make([]network.Subport, len(subports))
	for i, s := range subports {
		if told[i], err = s.ForTrunk(t.ID, networks[on[s.Port]], networks[parent.Network]); err != nil {
			return nil, err
		}
	}
	return told, nil
}

// lockPorts locks ports, each once, all of which have to be there.
func lockPorts(ctx context.Context, tx *transaction, ids []uuid.UUID) ([]held, error) {
	all, err := holdPorts(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if !slices.ContainsFunc(all, func(h held) bool { return h.ID == id }) {
			return nil, missingPort(id)
		}
	}
	return all, nil
}

// settleAt binds a locked port to a host, or to none, under that owner.
func settleAt(ctx context.Context, tx *transaction, h held, host, owner string) error {
	_, err := changePort(ctx, tx, h, network.PortChange{Host: &host, DeviceOwner: &owner})
	return err
}

// follow binds the subports of a locked port's trunk to where it is, or unbinds them with it.
func follow(ctx context.Context, tx *transaction, parent network.Port) error {
	rows, err := tx.Query(ctx, `
		select s.port_id
		from trunk t
		join subport s on s.trunk_id = t.id
		where t.port_id = $1`, parent.ID)
	if err != nil {
		return fmt.Errorf("look for subports: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return err
	}
	return moveTo(ctx, tx, ids, parent.SubportHost(), network.DeviceOwnerSubport)
}

// moveTo binds ports to a host, or to none, under that owner.
func moveTo(ctx context.Context, tx *transaction, ports []uuid.UUID, host, owner string) error {
	members, err := lockPorts(ctx, tx, ports)
	if err != nil {
		return err
	}
	for _, m := range members {
		if err := settleAt(ctx, tx, m, host, owner); err != nil {
			return err
		}
	}
	return nil
}

// UpdateTrunk changes a trunk. If expect is not nil, it is the only revision that is changed.
func (s *Store) UpdateTrunk(ctx context.Context, id uuid.UUID, c network.TrunkChange, expect *int64) (network.Trunk, error) {
	return s.alterTrunk(ctx, id, expect, func(tx *transaction, t network.Trunk, _ network.Port) (bool, error) {
		after := t.With(c)
		if same(t, after) {
			return false, nil
		}
		_, err := tx.Exec(ctx, `
			update trunk
			set name = $2, description = $3, admin_up = $4, tags = $5
			where id = $1`, id, after.Name, after.Description, after.AdminUp, after.Tags)
		return true, err
	})
}

// AddSubports puts ports on a trunk. They are bound where its parent is, and are its subports from then on.
func (s *Store) AddSubports(ctx context.Context, id uuid.UUID, subports []network.Subport) (network.Trunk, error) {
	return s.alterTrunk(ctx, id, nil, func(tx *transaction, t network.Trunk, parent network.Port) (bool, error) {
		return len(subports) > 0, board(ctx, tx, t, parent, subports)
	})
}

// RemoveSubports takes ports from a trunk. They are not bound any more.
func (s *Store) RemoveSubports(ctx context.Context, id uuid.UUID, ports []uuid.UUID) (network.Trunk, error) {
	return s.alterTrunk(ctx, id, nil, func(tx *transaction, t network.Trunk, _ network.Port) (bool, error) {
		if err := t.CheckRemoveSubports(ports); err != nil {
			return false, err
		}
		return len(ports) > 0, alight(ctx, tx, ports)
	})
}

// alight takes ports from their trunk.
func alight(ctx context.Context, tx *transaction, ports []uuid.UUID) error {
	if _, err := tx.Exec(ctx, `delete from subport where port_id = any($1)`, ports); err != nil {
		return fmt.Errorf("remove subports: %w", err)
	}
	return moveTo(ctx, tx, ports, "", "")
}

// alterTrunk changes a trunk under its parent's lock; what changed gets a new revision.
func (s *Store) alterTrunk(ctx context.Context, id uuid.UUID, expect *int64,
	change func(tx *transaction, t network.Trunk, parent network.Port) (changed bool, err error)) (network.Trunk, error) {
	var after network.Trunk
	err := s.inTx(ctx, func(tx *transaction) error {
		t, parent, err := lockTrunk(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := revisionIs(t.Revision, expect); err != nil {
			return err
		}
		after = t
		if changed, err := change(tx, t, parent.Port); err != nil || !changed {
			return err
		}
		if _, err := tx.Exec(ctx, `update trunk set revision = revision + 1, updated_at = now() where id = $1`, id); err != nil {
			return fmt.Errorf("update trunk: %w", err)
		}
		after, err = mirrorOf(ctx, tx, id, journal.Update)
		return err
	})
	return after, err
}

// DeleteTrunk deletes a trunk whose parent is not bound; its ports stay, on their own.
func (s *Store) DeleteTrunk(ctx context.Context, id uuid.UUID, expect *int64) error {
	return s.inTx(ctx, func(tx *transaction) error {
		t, parent, err := lockTrunk(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := revisionIs(t.Revision, expect); err != nil {
			return err
		}
		if parent.Bound() {
			return network.Faultf(network.TrunkInUse, "Trunk %s is currently in use.", id)
		}
		ports := make([]uuid.UUID, len(t.Subports))
		for i, s := range t.Subports {
			ports[i] = s.Port
		}
		if err := alight(ctx, tx, ports); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from trunk where id = $1`, id); err != nil {
			return fmt.Errorf("delete trunk: %w", err)
		}
		return keepAndRecord(ctx, tx, mirrorTrunk(t, journal.Delete))
	})
}

// keptByTrunk is why a port could not be deleted.
func keptByTrunk(err error, port uuid.UUID) error {
	switch {
	case db.Violates(err, "trunk_parent"):
		return network.Faultf(network.PortIsParent, "Port %s is currently a parent port for a trunk.", port)
	case db.Violates(err, "subport_member"):
		return network.Faultf(network.PortIsSubport, "Port %s is currently a subport for a trunk.", port)
	default:
		return fmt.Errorf("delete port: %w", err)
	}
}
