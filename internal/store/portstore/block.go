package portstore

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/notificationstore"
)

// Object identifies a row that entities can block. As in Neutron's provisioning blocks, an entity is the name
// of a party, for example L2 or DHCP, that must complete its part before the object is ready. A block says
// that an object still waits for an entity.
type Object struct {
	Type string
	ID   uuid.UUID
}

// blockableType describes an object type that entities can block.
type blockableType struct {
	// the table with the object's row; every change of the object's blocks happens under the lock of this row
	table string
	// onChange updates an object after a change of the object's blocks, in the same transaction and under the
	// row's lock, and enqueues the object's notes. The parameter `entity` names the entity that completed its
	// part for the object, or is empty if the blocks changed for another reason.
	onChange func(ctx context.Context, tx *transaction, id uuid.UUID, entity string, blocked bool) error
}

// blockableTypes are the registered object types. To let entities block another object type, add an entry to
// blockableTypes.
var blockableTypes = map[string]blockableType{
	"port": {
		table: "port",
		onChange: func(ctx context.Context, tx *transaction, id uuid.UUID, entity string, blocked bool) error {
			_, _, _, err := updatePortStatus(ctx, tx, id, nil,
				network.PortCause{Entity: entity, BlocksChanged: true})
			return err
		},
	},
	"trunk": {
		table: "trunk",
		// a trunk's status is not stored
		onChange: func(ctx context.Context, tx *transaction, id uuid.UUID, entity string, blocked bool) error {
			if blocked || !tx.config.NotifyWebhook {
				return nil
			}
			t, err := trunkByID(ctx, tx, id)
			if err != nil {
				return err
			}
			return notificationstore.AppendProvisioning(ctx, tx, t.ProvisioningNotification(entity))
		},
	},
}

// AddBlock makes an object wait for the entity that the report names. The event of the report is
// network.ReportBlock. A second call to AddBlock for the same object and entity does nothing. If the object
// does not exist or has network.MaxBlocks blocks, AddBlock does nothing. AddBlock returns whether it added
// the block.
func (s *Store) AddBlock(ctx context.Context, o Object, r network.Report) (added bool, err error) {
	err = s.inTx(ctx, func(tx *transaction) (err error) {
		b := network.NewOwnedBlock(r, time.Time{})
		added, _, err = changeBlocks(ctx, tx, o, "", `
			insert into block (object_id, object_type, entity, host, since, deadline, fatal, owner)
			select $1, $2, $3, $4, clock_timestamp(), clock_timestamp() + nullif($5, 0) * interval '1 second', $6, $7
			where (select count(*) from block where object_id = $1) < $8
			on conflict do nothing`, o.ID, o.Type, b.Entity, b.Host, r.TimeoutSeconds, b.Fatal, b.Owner, network.MaxBlocks)
		return err
	})
	return added, err
}

// Blocks lists the blocks of an object by entity. Blocks returns db.ErrNotFound if the object does not exist,
// or if entities cannot block objects of its type.
func (s *Store) Blocks(ctx context.Context, o Object) ([]network.Block, error) {
	kind, ok := blockableTypes[o.Type]
	if !ok {
		return nil, db.ErrNotFound
	}
	type found struct{ Blocks []network.Block }
	f, err := db.QueryOne(ctx, s.db, pgx.RowToStructByName[found], db.ErrNotFound, `
		select (select coalesce(jsonb_agg(to_jsonb(b) order by entity), '[]') from block b where object_id = $1) as blocks
		from `+kind.table+` where id = $1`, o.ID)
	return f.Blocks, err
}

// RemoveBlock removes an object's block for an entity and updates the object, but does not record that the
// entity has completed its part. RemoveBlock returns whether the block existed.
func (s *Store) RemoveBlock(ctx context.Context, o Object, entity string) (removed bool, err error) {
	err = s.inTx(ctx, func(tx *transaction) (err error) {
		removed, _, err = changeBlocks(
			ctx, tx, o, "",
			`delete from block where object_id = $1 and object_type = $2 and entity = $3`,
			o.ID, o.Type, entity,
		)
		return err
	})
	return removed, err
}

// CompleteBlock records that an entity has completed its part for an object. The report's host must equal the
// block's host, unless the block names no host. CompleteBlock returns whether it removed a block, and whether
// other blocks of the object remain. The object's row lock serializes concurrent completions: the second
// completion sees the result of the first.
func (s *Store) CompleteBlock(
	ctx context.Context,
	o Object,
	r network.Report,
) (completed, blocked bool, err error) {
	err = s.inTx(ctx, func(tx *transaction) (err error) {
		completed, blocked, err = changeBlocks(ctx, tx, o, r.Entity, `
			delete from block
			where object_id = $1 and object_type = $2 and entity = $3 and host in ('', $4)`, o.ID, o.Type, r.Entity, r.Host)
		return err
	})
	return completed, blocked, err
}

// Blocked reports whether an object has at least one block.
func (s *Store) Blocked(ctx context.Context, o Object) (bool, error) {
	if _, ok := blockableTypes[o.Type]; !ok {
		return false, fmt.Errorf("object type %q is not registered as a type that entities can block", o.Type)
	}
	return hasBlocks(ctx, s.db, o)
}

func hasBlocks(ctx context.Context, q db.Querier, o Object) (bool, error) {
	rows, err := q.Query(ctx,
		`select exists (select from block where object_id = $1 and object_type = $2)`, o.ID, o.Type)
	if err != nil {
		return false, fmt.Errorf("read blocks: %w", err)
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
}

// changeBlocks runs a statement that changes an object's blocks under the object's row lock. If the statement
// changed rows, changeBlocks calls the function onChange of the object's type.
func changeBlocks(
	ctx context.Context,
	tx *transaction,
	o Object,
	entity, statement string,
	args ...any,
) (changed, left bool, err error) {
	kind, ok := blockableTypes[o.Type]
	if !ok {
		return false, false, fmt.Errorf(
			"object type %q is not registered as a type that entities can block",
			o.Type,
		)
	}
	locked, err := tx.Exec(ctx, `select from `+kind.table+` where id = $1 for update`, o.ID)
	if err != nil {
		return false, false, fmt.Errorf("lock %s: %w", o.Type, err)
	}
	if locked.RowsAffected() == 0 {
		return false, false, nil
	}
	tag, err := tx.Exec(ctx, statement, args...)
	if err != nil {
		return false, false, fmt.Errorf("change blocks: %w", err)
	}
	if left, err = hasBlocks(ctx, tx, o); err != nil || tag.RowsAffected() == 0 {
		return false, left, err
	}
	return true, left, kind.onChange(ctx, tx, o.ID, entity, left)
}
