package leasestore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/store/db"
)

// resourceColumns are the columns of a SQL query that scanResource reads.
const resourceColumns = `f.id, f.resource_type, f.attributes, f.capabilities, f.created_at, f.updated_at`

// ReservableResources returns the resources of a type, in the order of their registration. The parameter
// `typ` is lease.NetworkSegment or lease.Device.
func (s *Store) ReservableResources(ctx context.Context, typ string) ([]lease.ReservableResource, error) {
	return readResources(ctx, s.db, `f.resource_type = $1`, typ)
}

// ResourcePage returns at most `limit` resources of a type that come after a position, in the order of their
// registration.
func (s *Store) ResourcePage(
	ctx context.Context,
	typ string,
	after lease.Position,
	limit int,
) ([]lease.ReservableResource, error) {
	return readResources(ctx, s.db, `f.id in (
		select id
		from reservable_resource
		where resource_type = $1 and (created_at, id) > ($2, $3)
		order by created_at, id
		limit $4)`, typ, after.CreatedAt, after.ID, limit)
}

// ReservableResource returns the resource of a type with the given ID. ReservableResource returns
// db.ErrNotFound if there is none.
func (s *Store) ReservableResource(
	ctx context.Context,
	typ string,
	id uuid.UUID,
) (lease.ReservableResource, error) {
	return readResource(ctx, s.db, typ, id)
}

func readResource(
	ctx context.Context,
	q db.Querier,
	typ string,
	id uuid.UUID,
) (lease.ReservableResource, error) {
	all, err := readResources(ctx, q, `f.resource_type = $1 and f.id = $2`, typ, id)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%w: %s %s", db.ErrNotFound, typ, id)
	}
	if err != nil {
		return lease.ReservableResource{}, err
	}
	return all[0], nil
}

func readResources(
	ctx context.Context,
	q db.Querier,
	where string,
	args ...any,
) ([]lease.ReservableResource, error) {
	all, err := db.QueryAll(ctx, q, func(row pgx.CollectableRow) (lease.ReservableResource, error) { return scanResource(row) }, `
		select `+resourceColumns+`
		from reservable_resource f
		where `+where+`
		order by f.created_at, f.id`, args...)
	if err != nil {
		return nil, fmt.Errorf("read reservable resources: %w", err)
	}
	return all, nil
}

// scanResource reads the columns resourceColumns of a row into a resource, and the columns after them into
// the pointers in `more`.
func scanResource(row pgx.CollectableRow, more ...any) (r lease.ReservableResource, err error) {
	err = row.Scan(
		append([]any{&r.ID, &r.Type, &r.Attributes, &r.Capabilities, &r.CreatedAt, &r.UpdatedAt}, more...)...)
	return r, err
}

// RegisterResource makes a network segment or a device reservable. The parameter `values` contains the
// attributes that the type defines and the capabilities of the resource. RegisterResource returns a
// *lease.Fault if the values are not valid or if the resource is registered already.
func (s *Store) RegisterResource(
	ctx context.Context,
	typ string,
	values map[string]string,
) (r lease.ReservableResource, err error) {
	r, err = lease.ReservableResource{ID: uuid.New(), Type: typ}.With(values, nil)
	if err != nil {
		return r, err
	}
	err = s.inTx(ctx, func(tx *transaction) error {
		_, err := tx.Exec(ctx, `
			insert into reservable_resource (id, resource_type, attributes, capabilities)
			values ($1, $2, $3, $4)`, r.ID, r.Type, r.Attributes, r.Capabilities)
		if err := registeredOr(err, r); err != nil {
			return err
		}
		if err := insertResourceProperties(ctx, tx, r); err != nil {
			return err
		}
		tx.Changed(db.Change{Type: typ, ID: r.ID.String()})
		r, err = readResource(ctx, tx, typ, r.ID)
		return err
	})
	return r, err
}

// registeredOr returns the fault that the resource is registered already if the unique index for the
// resource's type rejected the write. registeredOr wraps any other error.
func registeredOr(err error, r lease.ReservableResource) error {
	switch {
	case db.Violates(err, "reservable_resource_segment") || db.Violates(err, "reservable_resource_device"):
		return r.RegisteredFault()
	case err != nil:
		return fmt.Errorf("write %s %s: %w", r.Type, r.ID, err)
	}
	return nil
}

func insertResourceProperties(ctx context.Context, tx *transaction, r lease.ReservableResource) error {
	names := slices.Sorted(maps.Keys(r.Capabilities))
	ids := make([]uuid.UUID, len(names))
	for i := range ids {
		ids[i] = uuid.New()
	}
	if _, err := tx.Exec(ctx, `
		insert into reservable_resource_property (id, resource_type, name)
		select id, $1, name
		from unnest($2::uuid[], $3::text[]) as p (id, name)
		on conflict (resource_type, name) do nothing`, r.Type, ids, names); err != nil {
		return fmt.Errorf("store the properties of %s %s: %w", r.Type, r.ID, err)
	}
	return nil
}

// UpdateResource sets the attributes and capabilities in `set` of a network segment or device, and removes
// the attributes and capabilities that `unset` names. UpdateResource returns a *lease.Fault if a reservation
// requires a value that would change.
func (s *Store) UpdateResource(
	ctx context.Context,
	typ string,
	id uuid.UUID,
	set map[string]string,
	unset []string,
) (r lease.ReservableResource, err error) {
	err = s.inTx(ctx, func(tx *transaction) error {
		if _, err := tx.Exec(ctx, `select from reservable_resource where id = $1 for update`, id); err != nil {
			return fmt.Errorf("lock %s %s: %w", typ, id, err)
		}
		was, err := readResource(ctx, tx, typ, id)
		if err != nil {
			return err
		}
		if r, err = was.With(set, unset); err != nil {
			return err
		}
		if err := checkResourceChange(ctx, tx, was, r); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			update reservable_resource
			set attributes = $2, capabilities = $3, updated_at = clock_timestamp()
			where id = $1`, id, r.Attributes, r.Capabilities)
		if err := registeredOr(err, r); err != nil {
			return err
		}
		if err := insertResourceProperties(ctx, tx, r); err != nil {
			return err
		}
		r, err = readResource(ctx, tx, typ, id)
		return err
	})
	return r, err
}

// checkResourceChange returns a *lease.Fault if a reservation does not allow the change of a locked resource.
func checkResourceChange(ctx context.Context, tx *transaction, was, is lease.ReservableResource) error {
	drafts, err := db.QueryAll(ctx, tx, func(row pgx.CollectableRow) (d lease.ReservationDraft, err error) {
		return d, row.Scan(&d.Type, &d.NetworkProperties, &d.ResourceProperties)
	}, `
		select r.resource_type, r.network_properties, r.resource_properties
		from resource_allocation a
		join reservation r on r.id = a.reservation_id
		where a.resource_id = $1`, was.ID)
	if err != nil {
		return fmt.Errorf("read reservations of %s %s: %w", was.Type, was.ID, err)
	}
	for _, d := range drafts {
		requirements, err := d.Requirements()
		if err != nil {
			return err
		}
		if err := was.CheckChange(is, requirements); err != nil {
			return err
		}
	}
	return nil
}

// DeleteResource makes a network segment or device no longer reservable. DeleteResource returns a
// *lease.Fault if a current or future reservation has the resource.
func (s *Store) DeleteResource(ctx context.Context, typ string, id uuid.UUID) error {
	tag, err := s.db.ExecInTx(ctx,
		`delete from reservable_resource where resource_type = $1 and id = $2`, typ, id)
	switch {
	case db.Violates(err, "resource_allocation_resource"):
		return lease.ReservableResource{ID: id, Type: typ}.ReservedFault()
	case err != nil:
		return fmt.Errorf("delete %s %s: %w", typ, id, err)
	case tag.RowsAffected() == 0:
		return fmt.Errorf("%w: %s %s", db.ErrNotFound, typ, id)
	}
	return nil
}

// ResourceAllocations returns a page of the resources of a type with their reservations. If `id` is not the
// zero UUID, ResourceAllocations returns only the resource with this ID. As in HostAllocations, reservations
// of ended leases are in the result only if the filter names a lease or a reservation.
func (s *Store) ResourceAllocations(
	ctx context.Context,
	typ string,
	id uuid.UUID,
	f lease.AllocationFilter,
) ([]lease.ResourceAllocation, error) {
	var all []lease.ResourceAllocation
	var resource lease.Position
	var reservation, leaseID *uuid.UUID
	var start, end *time.Time
	rows, err := s.db.Query(ctx, `
		select f.id, f.created_at, x.id, x.lease_id, x.start_at, x.end_at
		from (
			select id, created_at
			from reservable_resource
			where resource_type = $1 and ($2::uuid = '00000000-0000-0000-0000-000000000000' or id = $2) and (created_at, id) > ($5, $6)
			order by created_at, id
			limit nullif($7::bigint, 0)) f
		left join lateral (
			select r.id, r.lease_id, l.start_at, l.end_at
			from resource_allocation a
			join reservation r on r.id = a.reservation_id
			join lease l on l.id = r.lease_id
			where a.resource_id = f.id
				and ($3 = '' or l.id::text = $3)
				and ($4 = '' or r.id::text = $4)
				and ($3 <> '' or $4 <> '' or l.end_at > now())) x on true
		order by f.created_at, f.id, x.start_at, x.id`, typ, id, f.Lease, f.Reservation, f.AfterResource.CreatedAt, f.AfterResource.ID, f.Limit)
	if err == nil {
		_, err = pgx.ForEachRow(
			rows,
			[]any{&resource.ID, &resource.CreatedAt, &reservation, &leaseID, &start, &end},
			func() error {
				if len(all) == 0 || all[len(all)-1].Resource != resource.ID {
					all = append(all,
						lease.ResourceAllocation{Resource: resource.ID, CreatedAt: resource.CreatedAt})
				}
				if reservation != nil {
					u := &all[len(all)-1]
					u.Reservations = append(u.Reservations, lease.AllocatedReservation{
						ID:      *reservation,
						Lease:   *leaseID,
						StartAt: *start,
						EndAt:   *end,
					})
				}
				return nil
			},
		)
	}
	if err != nil {
		return nil, fmt.Errorf("read allocations of the type %s: %w", typ, err)
	}
	return all, nil
}
