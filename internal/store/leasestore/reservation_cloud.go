package leasestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/store/db"
)

// AddToInventory adds the resources of a reservation to Placement. For a reservation of hosts, AddToInventory
// adds allocations from the nested providers of the hosts; for a reservation of instances, it adds
// inventories of the reservation's resource class. If AddToInventory is called again for the same
// reservation, it changes nothing. If the lease of the reservation is not starting or active, AddToInventory
// returns db.ErrConflict. If another consumer has allocations from one of the hosts, AddToInventory returns a
// *lease.Fault of kind HostInUse. A later attempt may succeed.
func (s *Store) AddToInventory(ctx context.Context, id uuid.UUID) error {
	return s.inTx(ctx, func(tx *transaction) error {
		l, r, err := lockReservation(ctx, tx, id)
		if err != nil {
			return err
		}
		if l.DeleteRequested || l.Status != lease.Starting && l.Status != lease.Active {
			return fmt.Errorf("%w: lease %s is %s: reservation %s cannot be added to Placement",
				db.ErrConflict, l.ID, l.Status, id)
		}
		return addToInventory(ctx, tx, leaseReservation{r, l})
	})
}

// ReleaseReservation removes the resources of a reservation from Placement. If its lease ends or is being
// deleted, or if the end of its lease has failed, ReleaseReservation also frees the resources for other
// leases, even if other reservations of the lease cannot be released. If ReleaseReservation is called again
// for the same reservation, it changes nothing. If the lease of the reservation is not ending, ended, failed
// or being deleted, ReleaseReservation returns db.ErrConflict.
func (s *Store) ReleaseReservation(ctx context.Context, id uuid.UUID) error {
	return s.inTx(ctx, func(tx *transaction) error {
		l, r, err := lockReservation(ctx, tx, id)
		switch {
		case errors.Is(err, db.ErrNotFound):
			return nil
		case err != nil:
			return err
		case !slices.Contains(endingStatuses, l.Status):
			return fmt.Errorf("%w: lease %s is %s: reservation %s cannot be released",
				db.ErrConflict, l.ID, l.Status, id)
		case l.Status == lease.Error && !l.HasFailedToEnd() || !r.HoldsResources():
			return removeFromInventory(ctx, tx, leaseReservation{r, l})
		}
		return freeResources(ctx, tx, []uuid.UUID{l.ID}, []leaseReservation{{r, l}})
	})
}

// CloudReservation returns the data that Nova and Neutron need about a reservation. If the lease of the
// reservation is not starting or active, CloudReservation returns db.ErrConflict.
func (s *Store) CloudReservation(ctx context.Context, id uuid.UUID) (lease.CloudReservation, error) {
	return s.readCloudReservation(ctx, id, lease.Starting, lease.Active)
}

// EndingCloudReservation returns the same data about a reservation as CloudReservation, but for a lease that
// ends. If the lease of the reservation is not ending, ended, failed or being deleted, EndingCloudReservation
// returns db.ErrConflict.
func (s *Store) EndingCloudReservation(ctx context.Context, id uuid.UUID) (lease.CloudReservation, error) {
	return s.readCloudReservation(ctx, id, endingStatuses...)
}

// endingStatuses are the statuses of a lease that ends, has ended or failed, or is being deleted.
var endingStatuses = []lease.Status{lease.Terminating, lease.Terminated, lease.Deleting, lease.Error}

func (s *Store) readCloudReservation(
	ctx context.Context,
	id uuid.UUID,
	statuses ...lease.Status,
) (c lease.CloudReservation, err error) {
	all, err := s.leases(ctx, `id = (select lease_id from reservation where id = $1)`, id)
	if err != nil {
		return c, err
	}
	if len(all) == 0 {
		return c, fmt.Errorf("%w: reservation %s", db.ErrNotFound, id)
	}
	l := all[0]
	if !slices.Contains(statuses, l.Status) || l.DeleteRequested && l.Status != lease.Deleting {
		return c, fmt.Errorf(
			"%w: lease %s is %s: its reservation %s cannot be changed in Nova and Neutron",
			db.ErrConflict, l.ID, l.Status, id,
		)
	}
	i := slices.IndexFunc(l.Reservations, func(r lease.Reservation) bool { return r.ID == id })
	claims, err := readCloudReservations(ctx, s.db, []leaseReservation{{l.Reservations[i], l}})
	return claims[id], err
}

// readCloudReservations reads the hosts, former hosts, floating IPs and network segments of reservations. It
// returns, by reservation ID, the reservations with these data.
func readCloudReservations(
	ctx context.Context,
	q batchSender,
	all []leaseReservation,
) (map[uuid.UUID]lease.CloudReservation, error) {
	claims, ids := map[uuid.UUID]lease.CloudReservation{}, make([]uuid.UUID, len(all))
	for i, h := range all {
		claims[h.ID], ids[i] = lease.CloudReservation{
			Reservation:   h.Reservation,
			Lease:         h.lease.ID,
			Project:       h.lease.Project,
			BeforeEndAt:   h.lease.RunningBeforeEnd(),
			BeforeEndRuns: h.lease.BeforeEndRuns(),
		}, h.ID
	}
	batch := &pgx.Batch{}
	var id uuid.UUID
	batch.Queue(`
		select a.reservation_id, h.service_name, a.slots, a.left_at
		from (
			select reservation_id, host_id, slots, null::timestamptz as left_at
			from host_allocation
			where reservation_id = any($1)
			union all
			select reservation_id, host_id, 0, left_at
			from reservation_former_host
			where reservation_id = any($1)) a
		join host h on h.id = a.host_id
		order by h.id`, ids).Query(func(rows pgx.Rows) error {
		var h lease.ReservedHost
		var leftAt *time.Time
		_, err := pgx.ForEachRow(rows, []any{&id, &h.Service, &h.Slots, &leftAt}, func() error {
			c := claims[id]
			if leftAt == nil {
				c.ComputeHosts = append(c.ComputeHosts, h)
			} else {
				c.FormerHosts = append(c.FormerHosts, lease.FormerHost{Service: h.Service, LeftAt: *leftAt})
			}
			claims[id] = c
			return nil
		})
		return err
	})
	batch.Queue(`
		select a.reservation_id, f.id, f.network_id, f.subnet_id, f.address, f.reservable, f.created_at, f.updated_at
		from floatingip_allocation a
		join floatingip f on f.id = a.floatingip_id
		where a.reservation_id = any($1)
		order by f.address, f.id`, ids).Query(func(rows pgx.Rows) error {
		return addFloatingIPs(rows, claims, func(c *lease.CloudReservation, a lease.ReservableFloatingIP) {
			c.FloatingIPs = append(c.FloatingIPs, a)
		})
	})
	queueCreatedFloatingIPs(batch, claims)
	queueSegments(batch, ids, claims)
	if err := q.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("read resources of reservations: %w", err)
	}
	return claims, nil
}

// queueCreatedFloatingIPs adds to a batch the queries for the Neutron IDs and the addresses of the floating
// IPs that were created for reservations. Reservations of other types need no query.
func queueCreatedFloatingIPs(batch *pgx.Batch, claims map[uuid.UUID]lease.CloudReservation) {
	var ids []uuid.UUID
	for id, c := range claims {
		if c.Type == lease.FloatingIP {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	batch.Queue(`
		select id, floating_ip_ids
		from reservation
		where id = any($1)`, ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var id uuid.UUID
			var stored []string
			if err := rows.Scan(&id, &stored); err != nil {
				return err
			}
			c := claims[id]
			c.FloatingIPIDs = stored
			claims[id] = c
		}
		return rows.Err()
	})
	batch.Queue(`
		select creator_id, id, network_id, subnet_id, address, reservable, created_at, updated_at
		from floatingip
		where creator_id = any($1)
		order by address, id`, ids).Query(func(rows pgx.Rows) error {
		return addFloatingIPs(rows, claims, func(c *lease.CloudReservation, a lease.ReservableFloatingIP) {
			c.Created = append(c.Created, a)
		})
	})
}

// addFloatingIPs calls `add` for the reservation and the floating IP of each row.
func addFloatingIPs(
	rows pgx.Rows,
	claims map[uuid.UUID]lease.CloudReservation,
	add func(*lease.CloudReservation, lease.ReservableFloatingIP),
) error {
	for rows.Next() {
		var id uuid.UUID
		var a lease.ReservableFloatingIP
		if err := rows.Scan(&id, &a.ID, &a.Network, &a.Subnet, &a.IP, &a.Reservable, &a.CreatedAt, &a.UpdatedAt); err != nil {
			return err
		}
		c := claims[id]
		add(&c, a)
		claims[id] = c
	}
	return rows.Err()
}

// queueSegments adds to a batch the query for the network segments of reservations.
func queueSegments(batch *pgx.Batch, ids []uuid.UUID, claims map[uuid.UUID]lease.CloudReservation) {
	batch.Queue(`
		select a.reservation_id, f.attributes, coalesce(f.creator_id = a.reservation_id, false)
		from resource_allocation a
		join reservable_resource f on f.id = a.resource_id
		where f.resource_type = 'network' and a.reservation_id = any($1)`, ids).Query(func(rows pgx.Rows) error {
		var id uuid.UUID
		for rows.Next() {
			// a new variable for each row, because Scan would add the attributes to those of the previous row
			var f lease.ReservableResource
			var begun bool
			if err := rows.Scan(&id, &f.Attributes, &begun); err != nil {
				return err
			}
			c := claims[id]
			c.Segment, c.NetworkBegun = f.Segment(), begun
			claims[id] = c
		}
		return rows.Err()
	})
}

// batchSender is a connection pool or a transaction that can send a batch of SQL statements.
type batchSender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// SaveCloudIDs stores the IDs of the objects that were created in Nova or Neutron for a reservation, and the
// revision of the reservation that was applied at Nova and Neutron. If the lease of the reservation is no
// longer starting or active, SaveCloudIDs returns db.ErrConflict. If the given revision is older than the
// stored one, or newer than the current revision of the reservation, SaveCloudIDs changes nothing.
func (s *Store) SaveCloudIDs(ctx context.Context, id uuid.UUID, m lease.CloudIDs) error {
	return s.inTx(ctx, func(tx *transaction) error {
		l, r, err := lockReservation(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case l.DeleteRequested || l.Status != lease.Starting && l.Status != lease.Active:
			return fmt.Errorf(
				"%w: lease %s is %s: the IDs of the objects that reservation %s has in Nova and Neutron can no longer be saved",
				db.ErrConflict, l.ID, l.Status, id,
			)
		}
		batch := &pgx.Batch{}
		queueCloudIDs(batch, r.ID, m)
		// A host that the reservation has got back is a former one until Nova has it in the aggregate again.
		// The start of the reservation has deleted the servers of other reservations there.
		batch.Queue(`
			delete from reservation_former_host f
			using host_allocation a, reservation r
			where r.id = $1 and r.resource_type = $2 and r.shaped = r.shape and a.reservation_id = r.id and a.host_id = f.host_id`,
			r.ID, lease.PhysicalHost)
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf(
				"save the IDs of the objects that reservation %s has in Nova and Neutron: %w", id, err,
			)
		}
		return nil
	})
}

func queueCloudIDs(batch *pgx.Batch, reservation uuid.UUID, m lease.CloudIDs) {
	batch.Queue(`
		update reservation
		set shaped = $2, aggregate_id = $3, server_group_id = $4, cloud_network_id = $5
		where id = $1 and $2 between shaped and shape`, reservation, m.Revision, m.AggregateID, m.ServerGroupID, m.NetworkID)
}

// NeutronIDs are the Neutron IDs by which berth finds what it has created for a reservation.
type NeutronIDs struct {
	Network            string // "": the stored ID stays
	CreatedFloatingIPs []string
	DeletedFloatingIPs []string
}

// SaveNeutronIDs stores the ID of the network that was created for a reservation. It adds the IDs of floating
// IPs that were created to the stored ones, and removes the IDs of those that were deleted. It does so in
// every status of the lease, because the objects exist in every status. If the lease was deleted or has ended
// meanwhile, nothing else would remove the objects, so SaveNeutronIDs also stores that the reservation must
// be removed once more (see keepLeftovers).
func (s *Store) SaveNeutronIDs(ctx context.Context, c lease.CloudReservation, ids NeutronIDs) error {
	return s.inTx(ctx, func(tx *transaction) error {
		l, _, err := lockReservation(ctx, tx, c.ID)
		gone := errors.Is(err, db.ErrNotFound)
		if err != nil && !gone {
			return err
		}
		if _, err := tx.Exec(ctx, `
			update reservation
			set cloud_network_id = coalesce(nullif($4, ''), cloud_network_id),
				floating_ip_ids = array(
					select unnest(floating_ip_ids)
					union select unnest($2::text[])
					except select unnest($3::text[]))
			where id = $1`, c.ID, ids.CreatedFloatingIPs, ids.DeletedFloatingIPs, ids.Network); err != nil {
			return fmt.Errorf("store the network and the floating IPs of reservation %s: %w", c.ID, err)
		}
		if !gone && (l.Status == lease.Starting || l.Status == lease.Active) {
			return nil
		}
		c.NetworkID, c.FloatingIPIDs = ids.Network, ids.CreatedFloatingIPs
		return keepLeftover(ctx, tx, c, leftoverDelay)
	})
}

// BeginFloatingIPs stores that berth begins to create the floating IPs of a reservation in Neutron. From then
// on, a floating IP with one of these addresses in the reservation's project is the reservation's own. It is
// no longer that of a reservation that has given up the address. If the lease of the reservation is no longer
// starting or active, BeginFloatingIPs returns db.ErrConflict. If the reservation has given up one of the
// addresses meanwhile, BeginFloatingIPs returns an error, and the next attempt has the new addresses.
func (s *Store) BeginFloatingIPs(
	ctx context.Context,
	reservation uuid.UUID,
	all []lease.ReservableFloatingIP,
) error {
	ids := make([]uuid.UUID, len(all))
	for i, f := range all {
		ids[i] = f.ID
	}
	return s.inTx(ctx, func(tx *transaction) error {
		if err := lockForCreation(ctx, tx, reservation); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			with held as (
				select id
				from floatingip
				where id = any($2)
					and id in (select floatingip_id from floatingip_allocation where reservation_id = $1)
				order by id
				for no key update)
			update floatingip
			set creator_id = $1
			where id in (select id from held)`, reservation, ids)
		if err != nil {
			return fmt.Errorf("store that the floating IPs of reservation %s are created: %w", reservation, err)
		}
		if tag.RowsAffected() < int64(len(ids)) {
			return fmt.Errorf("the floating IPs of reservation %s have changed", reservation)
		}
		return nil
	})
}

// BeginNetwork stores that berth begins to create the network of a reservation in Neutron. From then on, a
// network of the reservation's project on the reserved segment is the reservation's own. If the lease of the
// reservation is no longer starting or active, BeginNetwork returns db.ErrConflict.
func (s *Store) BeginNetwork(ctx context.Context, reservation uuid.UUID) error {
	return s.inTx(ctx, func(tx *transaction) error {
		if err := lockForCreation(ctx, tx, reservation); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			update reservable_resource
			set creator_id = $1
			where resource_type = 'network'
				and id in (select resource_id from resource_allocation where reservation_id = $1)`, reservation); err != nil {
			return fmt.Errorf("store that the network of reservation %s is created: %w", reservation, err)
		}
		return nil
	})
}

// lockForCreation locks the lease of a reservation for which berth begins to create something in Neutron. If
// the lease is no longer starting or active, lockForCreation returns db.ErrConflict.
func lockForCreation(ctx context.Context, tx *transaction, reservation uuid.UUID) error {
	l, _, err := lockReservation(ctx, tx, reservation)
	if err == nil && (l.DeleteRequested || l.Status != lease.Starting && l.Status != lease.Active) {
		err = fmt.Errorf("%w: lease %s is %s: nothing can be created in Neutron for its reservation %s",
			db.ErrConflict, l.ID, l.Status, reservation)
	}
	return err
}

// RereadCloudReservation reads again what can have changed since a reservation was read: its revision if it
// is one of hosts or instances, and what berth has begun to create in Neutron for it and for other
// reservations. A caller that was paused would otherwise take objects of newer reservations for those of this
// one.
func (s *Store) RereadCloudReservation(
	ctx context.Context,
	c lease.CloudReservation,
) (lease.CloudReservation, error) {
	var err error
	switch c.Type {
	case lease.PhysicalHost, lease.VirtualInstance, lease.FlavorInstance:
		c.Revision, err = db.QueryOne(ctx, s.db, pgx.RowTo[int64], nil,
			`select coalesce((select shape from reservation where id = $1), -1)`, c.ID)
	case lease.NetworkSegment:
		c.NetworkBegun, err = db.QueryOne(ctx, s.db, pgx.RowTo[bool], nil, `
			select exists (
				select from reservable_resource
				where creator_id = $1 and resource_type = 'network' and attributes->>'network_type' = $2
					and coalesce(attributes->>'physical_network', '') = $3
					and attributes->>'segment_id' = $4::integer::text)`,
			c.ID, c.Segment.NetworkType, c.Segment.PhysicalNetwork, c.Segment.ID)
	case lease.FloatingIP:
		if c.Created, err = readFloatingIPs(ctx, s.db, `f.creator_id = $1`, c.ID); err != nil {
			break
		}
		c.CreatedByOthers, err = readFloatingIPs(ctx, s.db, `f.creator_id in (
			select r.id
			from lease l
			join reservation r on r.lease_id = l.id
			where l.project_id = $1 and r.id <> $2 and l.status <> 'TERMINATED')`, c.Project, c.ID)
	}
	if err != nil {
		return c, fmt.Errorf("read again what belongs to reservation %s: %w", c.ID, err)
	}
	return c, nil
}

// lockReservation locks the lease of a reservation, and reads the lease and the reservation.
func lockReservation(
	ctx context.Context,
	tx *transaction,
	id uuid.UUID,
) (lease.Lease, lease.Reservation, error) {
	var of uuid.UUID
	err := tx.QueryRow(ctx, `select lease_id from reservation where id = $1`, id).Scan(&of)
	if err := db.NotFoundOr(err, "reservation %s", id); err != nil {
		return lease.Lease{}, lease.Reservation{}, err
	}
	l, err := lockLease(ctx, tx, of)
	if err != nil {
		return l, lease.Reservation{}, err
	}
	i := slices.IndexFunc(l.Reservations, func(r lease.Reservation) bool { return r.ID == id })
	if i < 0 {
		return l, lease.Reservation{}, fmt.Errorf("%w: reservation %s", db.ErrNotFound, id)
	}
	return l, l.Reservations[i], nil
}
