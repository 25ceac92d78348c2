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

// Object is anything that entities can block: a row of a registered type.
type Object struct {
	Type string
	ID   uuid.UUID
}

// blockable is a type of objects that entities can block.
type blockable struct {
	lock string // takes the row's lock, on which everything about its blocks is decided
	// decide does what a change of an object's blocks means to it, in the transaction of the change and under the row's
	// lock, so that neither can be without the other: it writes the object and leaves its notes. The entity is the one
	// that completed its part, empty for another change.
	decide func(ctx context.Context, tx *transaction, id uuid.UUID, entity string, blocked bool) error
}

// blockables are the registered types. A type is registered by a line here.
var blockables = map[string]blockable{
	"port": {
		lock: `select from port where id = $1 for update`,
		decide: func(ctx context.Context, tx *transaction, id uuid.UUID, entity string, _ bool) error {
			_, after, _, err := settle(ctx, tx, id, nil, entity)
			if err != nil {
				return err
			}
			return outbox.Enqueue(ctx, tx, portNudge(after, false))
		},
	},
}

// AddBlock has an object wait for an entity. Adding twice is adding once. What is not there is not blocked, and no error.
func (s *Store) AddBlock(ctx context.Context, o Object, entity string) error {
	return s.inTx(ctx, func(tx *transaction) error {
		deadline, fatal := tx.config.Policy.Limit(entity)
		_, _, err := alter(ctx, tx, o, "", `
			insert into block (object_id, object_type, entity, host, since, deadline, fatal)
			values ($1, $2, $3, '', clock_timestamp(), clock_timestamp() + nullif($4::interval, interval '0'), $5)
			on conflict do nothing`, o.ID, o.Type, entity, deadline, fatal)
		return err
	})
}

// RemoveBlock lets an object wait for an entity no longer, though it has not done its part, and tells whether it waited.
// That completes nothing, but the object is decided anew.
func (s *Store) RemoveBlock(ctx context.Context, o Object, entity string) (removed bool, err error) {
	err = s.inTx(ctx, func(tx *transaction) (err error) {
		removed, _, err = alter(ctx, tx, o, "", `delete from block where object_id = $1 and object_type = $2 and entity = $3`, o.ID, o.Type, entity)
		return err
	})
	return removed, err
}

// CompleteBlock says that an entity has done its part, on a host or on none in particular. It tells whether the object
// waited for that, and whether anybody still blocks it. Of two last completions at once, the second sees the first.
func (s *Store) CompleteBlock(ctx context.Context, o Object, r network.Report) (completed, blocked bool, err error) {
	err = s.inTx(ctx, func(tx *transaction) (err error) {
		completed, blocked, err = alter(ctx, tx, o, r.Entity, `
			delete from block
			where object_id = $1 and object_type = $2 and entity = $3 and host in ('', $4)`, o.ID, o.Type, r.Entity, r.Host)
		return err
	})
	return completed, blocked, err
}

// Blocked tells whether an object waits for anybody.
func (s *Store) Blocked(ctx context.Context, o Object) (bool, error) {
	if _, ok := blockables[o.Type]; !ok {
		return false, fmt.Errorf("blocks of a %s: no such type is registered", o.Type)
	}
	return blocked(ctx, s.db, o)
}

func blocked(ctx context.Context, q db.Querier, o Object) (bool, error) {
	rows, err := q.Query(ctx, `select exists (select from block where object_id = $1 and object_type = $2)`, o.ID, o.Type)
	if err != nil {
		return false, fmt.Errorf("read blocks: %w", err)
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
}

// alter changes an object's blocks by that statement under the object's lock, and has the object decided if that
// changed something.
func alter(ctx context.Context, tx *transaction, o Object, entity, statement string, args ...any) (changed, left bool, err error) {
	kind, ok := blockables[o.Type]
	if !ok {
		return false, false, fmt.Errorf("blocks of a %s: no such type is registered", o.Type)
	}
	there, err := tx.Exec(ctx, kind.lock, o.ID)
	if err != nil {
		return false, false, fmt.Errorf("lock %s: %w", o.Type, err)
	}
	if there.RowsAffected() == 0 {
		return false, false, nil
	}
	tag, err := tx.Exec(ctx, statement, args...)
	if err != nil {
		return false, false, fmt.Errorf("change blocks: %w", err)
	}
	if left, err = blocked(ctx, tx, o); err != nil || tag.RowsAffected() == 0 {
		return false, left, err
	}
	return true, left, kind.decide(ctx, tx, o.ID, entity, left)
}
