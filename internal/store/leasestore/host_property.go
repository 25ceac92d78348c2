package leasestore

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/store/db"
)

// HostAllocations returns a page of the hosts that match the filter with their reservations, sorted by host
// ID and start date. HostAllocations also returns hosts without reservations. The result of HostAllocations
// contains reservations of leases that have ended only if the filter names a lease or a reservation.
func (s *Store) HostAllocations(
	ctx context.Context,
	f lease.AllocationFilter,
) ([]lease.HostAllocation, error) {
	var all []lease.HostAllocation
	var host int64
	var id, leaseID *uuid.UUID
	var start, end *time.Time
	rows, err := s.db.Query(ctx, `
		select h.id, x.id, x.lease_id, x.start_at, x.end_at
		from (select id from host where id > $4 and ($3::bigint = 0 or id = $3::bigint) order by id limit nullif($5::bigint, 0)) h
		left join lateral (
			select r.id, r.lease_id, l.start_at, l.end_at
			from host_allocation a
			join reservation r on r.id = a.reservation_id
			join lease l on l.id = r.lease_id
			where a.host_id = h.id
				and ($1 = '' or l.id::text = $1)
				and ($2 = '' or r.id::text = $2)
				and ($1 <> '' or $2 <> '' or l.end_at > now())) x on true
		order by h.id, x.start_at, x.id`, f.Lease, f.Reservation, f.Host, f.AfterHost, f.Limit)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&host, &id, &leaseID, &start, &end}, func() error {
			if len(all) == 0 || all[len(all)-1].Host != host {
				all = append(all, lease.HostAllocation{Host: host})
			}
			if id != nil {
				u := &all[len(all)-1]
				u.Reservations = append(u.Reservations, lease.AllocatedReservation{
					ID:      *id,
					Lease:   *leaseID,
					StartAt: *start,
					EndAt:   *end,
				})
			}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read host allocations: %w", err)
	}
	return all, nil
}

// HostProperties returns the host properties, sorted by name, each with the values that hosts have. The
// result of HostProperties contains private properties only if the parameter `private` is true.
func (s *Store) HostProperties(ctx context.Context, private bool) ([]lease.ResourceProperty, error) {
	all, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[lease.ResourceProperty], `
		select p.id, p.name, p.private, p.created_at, p.updated_at,
			array(select distinct c.value from host_capability c where c.property_id = p.id order by c.value)
		from host_property p
		where $1 or not p.private
		order by p.name`, private)
	if err != nil {
		return nil, fmt.Errorf("read host properties: %w", err)
	}
	return all, nil
}

// SetHostPropertyPrivate sets whether a host property is private. HostProperties returns a private host
// property only if its caller requests private properties.
func (s *Store) SetHostPropertyPrivate(
	ctx context.Context,
	name string,
	private bool,
) (lease.ResourceProperty, error) {
	var p lease.ResourceProperty
	err := s.db.InTx(ctx, func(tx db.Tx) (err error) {
		p, err = db.QueryOne(ctx, tx, pgx.RowToStructByPos[lease.ResourceProperty], pgx.ErrNoRows, `
			update host_property p
			set private = $2, updated_at = clock_timestamp()
			where p.name = $1
			returning p.id, p.name, p.private, p.created_at, p.updated_at,
				array(select distinct c.value from host_capability c where c.property_id = p.id order by c.value)`, name, private)
		return err
	})
	return p, db.NotFoundOr(err, "host property %s", name)
}
