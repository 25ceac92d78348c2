package networkstore

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// Object identifies a row that entities can block.
type Object struct {
	Type string
	ID   uuid.UUID
}

// blockableType describes an object type that entities can block.
type blockableType struct {
	lockStatement string // locks the object's row; every change of the object's blocks happens under this row lock
	// onChange updates an object after a change of the object's blocks, in the same transaction and under the row's lock, and
	// enqueues the object's notes. The parameter `entity` names the entity that completed its part for the object, or is empty
	// if the blocks changed for another reason.
	onChange func(ctx context.Context, tx *transaction, id uuid.UUID, entity string, blocked bool) error
}

// blockableTypes are the registered object types. To let entities block another object type, add an entry to
// blockableTypes.
var blockableTypes = map[string]blockableType{
	"port": {
		lockStatement: `select from port where id = $1 for update`,
		onChange: func(ctx context.Context, tx *transaction, id uuid.UUID, entity string, _ bool) error {
			_, after, _, err := updatePortStatus(ctx, tx, id, nil, entity)
			if err != nil {
				return err
			}
			return outbox.Enqueue(ctx, tx, portNudge(after, false))
		},
	},
}

// AddBlock makes an object wait for an entity. A second call of AddBlock for the same object and entity does nothing. If
// the object does not exist, AddBlock does nothing and returns no error.
func (s *Store) AddBlock(ctx context.Context, o Object, entity string) error {
	return s.inTx(ctx, func(tx *transaction) error {
		deadline, fatal := tx.config.Policy.Limit(entity)
		_, _, err := changeBlocks(ctx, tx, o, "", `
			insert into block (object_id, object_type, entity, host, since, deadline, fatal)
			values ($1, $2, $3, '', clock_timestamp(), clock_timestamp() + nullif($4::interval, interval '0'), $5)
			on conflict do nothing`, o.ID, o.Type, entity, deadline, fatal)
		return err
	})
}

// RemoveBlock removes an object's block for an entity and updates the object, but does not count the entity's part as
// completed. RemoveBlock returns whether the block existed.
func (s *Store) RemoveBlock(ctx context.Context, o Object, entity string) (removed bool, err error) {
	err = s.inTx(ctx, func(tx *transaction) (err error) {
		removed, _, err = changeBlocks(ctx, tx, o, "", `delete from block where object_id = $1 and object_type = $2 and entity = $3`, o.ID, o.Type, entity)
		return err
	})
	return removed, err
}

// CompleteBlock records that an entity has completed its part for an object. The report's host must equal the block's host,
// unless the block names no host. CompleteBlock returns whether it removed a block, and whether other blocks of the object
// remain. The object's row lock serializes concurrent completions: the second completion sees the result of the first.
func (s *Store) CompleteBlock(ctx context.Context, o Object, r network.Report) (completed, blocked bool, err error) {
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
	rows, err := q.Query(ctx, `select exists (select from block where object_id = $1 and object_type = $2)`, o.ID, o.Type)
	if err != nil {
		return false, fmt.Errorf("read blocks: %w", err)
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
}

// changeBlocks runs a statement that changes an object's blocks under the object's row lock. If the statement changed rows,
// changeBlocks calls the onChange of the object's type.
func changeBlocks(ctx context.Context, tx *transaction, o Object, entity, statement string, args ...any) (changed, left bool, err error) {
	kind, ok := blockableTypes[o.Type]
	if !ok {
		return false, false, fmt.Errorf("object type %q is not registered as a type that entities can block", o.Type)
	}
	locked, err := tx.Exec(ctx, kind.lockStatement, o.ID)
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
