package leasestore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/store/db"
)

// propertyColumns are the columns of a property p of a resource type, in the order of the fields of
// lease.ResourceProperty.
const propertyColumns = `
	p.id, p.name, p.private, p.created_at, p.updated_at,
	array(
		select distinct f.capabilities->>p.name as value
		from reservable_resource f
		where f.resource_type = p.resource_type and f.capabilities ? p.name
		order by value)`

// ResourceProperties returns the names of the capabilities that resources of a type have or had, sorted by
// name, each with its present values. The result contains private properties only if the parameter `private`
// is true.
func (s *Store) ResourceProperties(
	ctx context.Context,
	typ string,
	private bool,
) ([]lease.ResourceProperty, error) {
	all, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[lease.ResourceProperty], `
		select `+propertyColumns+`
		from reservable_resource_property p
		where p.resource_type = $1 and ($2 or not p.private)
		order by p.name`, typ, private)
	if err != nil {
		return nil, fmt.Errorf("read properties of the type %s: %w", typ, err)
	}
	return all, nil
}

// SetResourcePropertyPrivate sets whether a property of a resource type is private.
// SetResourcePropertyPrivate returns db.ErrNotFound if no resource has ever had the property.
func (s *Store) SetResourcePropertyPrivate(
	ctx context.Context,
	typ, name string,
	private bool,
) (lease.ResourceProperty, error) {
	var p lease.ResourceProperty
	err := s.db.InTx(ctx, func(tx db.Tx) (err error) {
		p, err = db.QueryOne(ctx, tx, pgx.RowToStructByPos[lease.ResourceProperty], pgx.ErrNoRows, `
			update reservable_resource_property p
			set private = $3, updated_at = clock_timestamp()
			where p.resource_type = $1 and p.name = $2
			returning `+propertyColumns, typ, name, private)
		return err
	})
	return p, db.NotFoundOr(err, "property %s of the type %s", name, typ)
}
