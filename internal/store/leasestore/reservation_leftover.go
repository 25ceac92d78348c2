package leasestore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/lease"
	"berth/internal/store/db"
)

// leftoverDelay is how long calls to Nova and Neutron for a lease may still be running after the lease has
// ended or was deleted. leftoverDelay is longer than workflows.CloudAttemptTimeout.
const leftoverDelay = 150 * time.Second

// Leftover is a reservation whose lease has ended or was deleted, and whose objects in Nova and Neutron must
// be removed once more.
type Leftover struct {
	lease.CloudReservation
	Attempts int
	DueAt    time.Time
}

// keepLeftovers stores reservations of a lease that ends or is being deleted, so that their objects in Nova
// and Neutron are removed once more. This is necessary because another process can create an object for the
// lease after the lease's workflow has removed all objects. A transaction that also releases the resources of
// the reservations must call keepLeftovers first.
func keepLeftovers(ctx context.Context, tx *transaction, all ...leaseReservation) error {
	if len(all) == 0 {
		return nil
	}
	claims, err := readCloudReservations(ctx, tx, all)
	if err != nil {
		return err
	}
	for _, r := range all {
		if err := keepLeftover(ctx, tx, claims[r.ID], leftoverDelay); err != nil {
			return err
		}
	}
	return nil
}

// KeepLeftover stores a reservation of an ended lease whose objects could not be removed from Nova and
// Neutron, so that the removal is repeated.
func (s *Store) KeepLeftover(ctx context.Context, c lease.CloudReservation) error {
	return keepLeftover(ctx, s.db, c, 0)
}

// keepLeftover stores a leftover that is due after the given time. If the leftover is stored already,
// keepLeftover adds the Neutron IDs to the stored ones: a reservation has one network, and a later ID is that
// of a network that replaced a deleted one. The later of the two due times counts, because an attempt that
// creates objects may be running until then. The due time always changes, so that FinishLeftover does not
// delete what a removal that is running does not know.
func keepLeftover(ctx context.Context, q executor, c lease.CloudReservation, due time.Duration) error {
	services := make([]string, len(c.ComputeHosts))
	for i, h := range c.ComputeHosts {
		services[i] = h.Service
	}
	if _, err := q.Exec(ctx, `
		insert into reservation_leftover (reservation_id, resource_type, project_id, services, due_at,
			floating_ip_ids, cloud_network_id, network_type, physical_network, segment_id)
		values ($1, $2, $3, $4, clock_timestamp() + $5::interval, coalesce($6::text[], '{}'), $7, $8, $9, $10)
		on conflict (reservation_id) do update
		set due_at = greatest(reservation_leftover.due_at + interval '1 microsecond', excluded.due_at),
			services = array(select unnest(reservation_leftover.services) union select unnest(excluded.services)),
			cloud_network_id = coalesce(nullif(excluded.cloud_network_id, ''), reservation_leftover.cloud_network_id),
			floating_ip_ids = array(
				select unnest(reservation_leftover.floating_ip_ids) union select unnest(excluded.floating_ip_ids)),
			(network_type, physical_network, segment_id) = (
				select s.*
				from (values
					(excluded.network_type, excluded.physical_network, excluded.segment_id),
					(reservation_leftover.network_type, reservation_leftover.physical_network,
						reservation_leftover.segment_id)) s (network_type, physical_network, id)
				order by s.id = 0
				limit 1)`, c.ID, c.Type, c.Project, services, due, c.FloatingIPIDs, c.NetworkID,
		c.Segment.NetworkType, c.Segment.PhysicalNetwork, c.Segment.ID); err != nil {
		return fmt.Errorf("store that a reservation must be removed from Nova and Neutron once more: %w", err)
	}
	return nil
}

// executor is a connection pool or a transaction that can run an SQL statement.
type executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// DueLeftovers returns the leftovers whose removal is due: the projects take turns, and within a turn those
// with fewer failed attempts come first. The hosts of each leftover are only those that are still registered.
func (s *Store) DueLeftovers(ctx context.Context, limit int) ([]Leftover, error) {
	all, err := db.QueryAll(ctx, s.db, func(row pgx.CollectableRow) (f Leftover, err error) {
		var services, former []string
		var leftAt []time.Time
		err = row.Scan(&f.ID, &f.Type, &f.Project, &services, &f.NetworkID, &f.FloatingIPIDs, &f.Attempts,
			&f.DueAt, &f.Segment.NetworkType, &f.Segment.PhysicalNetwork, &f.Segment.ID, &former, &leftAt)
		for _, service := range services {
			f.ComputeHosts = append(f.ComputeHosts, lease.ReservedHost{Service: service})
		}
		for i, service := range former {
			f.FormerHosts = append(f.FormerHosts, lease.FormerHost{Service: service, LeftAt: leftAt[i]})
		}
		return f, err
	}, `
		select f.reservation_id, f.resource_type, f.project_id, array(select service_name from host where service_name = any(f.services)),
			f.cloud_network_id, f.floating_ip_ids, f.attempts, f.due_at, f.network_type, f.physical_network, f.segment_id,
			array(`+leftoverHostsSQL("h.service_name")+`), array(`+leftoverHostsSQL("o.left_at")+`)
		from (
			select *, row_number() over (partition by project_id order by attempts, due_at, reservation_id) as turn
			from reservation_leftover
			where due_at <= clock_timestamp()) f
		order by f.turn, f.attempts, f.due_at, f.reservation_id
		limit $1`, limit)
	if err != nil {
		return nil, fmt.Errorf("read reservations that must be removed once more: %w", err)
	}
	for i := range all {
		c := &all[i].CloudReservation
		if *c, err = s.RereadCloudReservation(ctx, *c); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// leftoverHostsSQL selects a column of the former hosts of the leftover f that are still registered, in a
// fixed order.
func leftoverHostsSQL(column string) string {
	return `
		select ` + column + `
		from reservation_former_host o
		join host h on h.id = o.host_id
		where o.reservation_id = f.reservation_id
		order by o.host_id`
}

// FinishLeftover deletes a leftover that was removed from Nova and Neutron, and its former hosts. If the
// parameter `failure` is not nil, the removal has failed, and FinishLeftover stores the error and the time of
// the next attempt. If the stored leftover has changed since DueLeftovers has read it, FinishLeftover changes
// nothing, so that the removal is repeated when it is due again.
func (s *Store) FinishLeftover(ctx context.Context, f Leftover, failure error) (err error) {
	if failure == nil {
		_, err = s.db.Exec(ctx, `
			with done as (
				delete from reservation_leftover
				where reservation_id = $1 and attempts = $2 and due_at = $3
				returning reservation_id)
			delete from reservation_former_host
			where reservation_id in (select reservation_id from done)`, f.ID, f.Attempts, f.DueAt)
	} else {
		_, err = s.db.Exec(ctx, `
			update reservation_leftover
			set attempts = attempts + 1, last_error = $4, due_at = clock_timestamp() + $5::interval
			where reservation_id = $1 and attempts = $2 and due_at = $3`,
			f.ID, f.Attempts, f.DueAt, failure.Error(), lease.RetryDelay(lease.Error, f.Attempts+1))
	}
	if err != nil {
		return fmt.Errorf("store the result of removing a reservation of an ended lease: %w", err)
	}
	return nil
}
