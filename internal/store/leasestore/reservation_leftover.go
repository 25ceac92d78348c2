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

// leftoverDelay is how long calls to Nova and Neutron for a lease may still be running after the lease was
// deleted. leftoverDelay is longer than workflows.CloudAttemptTimeout.
const leftoverDelay = 150 * time.Second

// Leftover is a reservation of a deleted lease whose objects in Nova and Neutron must be removed once more.
type Leftover struct {
	lease.CloudReservation
	Attempts int
}

// mergedNeutronIDs are the assignments that add Neutron IDs to those of a stored leftover. A reservation has
// one network, and a later ID is that of a network that replaced a deleted one.
const mergedNeutronIDs = `
	cloud_network_id = coalesce(nullif(excluded.cloud_network_id, ''), reservation_leftover.cloud_network_id),
	floating_ip_ids = array(
		select unnest(reservation_leftover.floating_ip_ids) union select unnest(excluded.floating_ip_ids))`

// keepLeftovers stores reservations of a lease that is being deleted, so that their objects in Nova and
// Neutron are removed once more. This is necessary because another process can have created an object for the
// lease after the lease's workflow removed all objects.
func keepLeftovers(
	ctx context.Context,
	tx *transaction,
	l lease.Lease,
	due time.Duration,
	reservations ...lease.Reservation,
) error {
	for _, r := range reservations {
		if _, err := tx.Exec(ctx, `
			insert into reservation_leftover (reservation_id, resource_type, project_id, services, due_at, cloud_network_id, floating_ip_ids)
			values ($1, $2, $3, array(select service_name from host where id = any($4)), clock_timestamp() + $5::interval,
				$6, coalesce((select floating_ip_ids from reservation where id = $1), '{}'))
			on conflict (reservation_id) do update
			set due_at = least(reservation_leftover.due_at, excluded.due_at), `+mergedNeutronIDs, r.ID, r.Type, l.Project, r.Hosts, due, r.NetworkID); err != nil {
			return fmt.Errorf(
				"store that a reservation of a deleted lease must be removed from Nova and Neutron: %w",
				err,
			)
		}
	}
	return nil
}

// KeepLeftover stores a reservation of a deleted lease whose objects could not be removed from Nova and
// Neutron, so that the removal is repeated.
func (s *Store) KeepLeftover(ctx context.Context, c lease.CloudReservation) error {
	services := make([]string, len(c.ComputeHosts))
	for i, h := range c.ComputeHosts {
		services[i] = h.Service
	}
	if _, err := s.db.Exec(ctx, `
		insert into reservation_leftover (reservation_id, resource_type, project_id, services, due_at, floating_ip_ids, cloud_network_id)
		values ($1, $2, $3, $4, clock_timestamp(), coalesce($5::text[], '{}'), $6)
		on conflict (reservation_id) do update
		set due_at = least(reservation_leftover.due_at, excluded.due_at), `+mergedNeutronIDs, c.ID, c.Type, c.Project, services, c.FloatingIPIDs, c.NetworkID); err != nil {
		return fmt.Errorf(
			"store that a reservation of a deleted lease must be removed from Nova and Neutron: %w",
			err,
		)
	}
	return nil
}

// DueLeftovers returns the leftovers whose removal is due, oldest first. The hosts of each leftover are only
// those that are still registered.
func (s *Store) DueLeftovers(ctx context.Context, limit int) ([]Leftover, error) {
	all, err := db.QueryAll(ctx, s.db, func(row pgx.CollectableRow) (f Leftover, err error) {
		var services []string
		err = row.Scan(&f.ID, &f.Type, &f.Project, &services, &f.NetworkID, &f.FloatingIPIDs, &f.Attempts)
		for _, service := range services {
			f.ComputeHosts = append(f.ComputeHosts, lease.ReservedHost{Service: service})
		}
		return f, err
	}, `
		select f.reservation_id, f.resource_type, f.project_id, array(select service_name from host where service_name = any(f.services)),
			f.cloud_network_id, f.floating_ip_ids, f.attempts
		from reservation_leftover f
		where f.due_at <= clock_timestamp()
		order by f.due_at
		limit $1`, limit)
	if err != nil {
		return nil, fmt.Errorf("read reservations of deleted leases that must be removed: %w", err)
	}
	return all, nil
}

// FinishLeftover deletes a leftover that was removed from Nova and Neutron. If the parameter `failure` is
// not nil, the removal has failed, and FinishLeftover stores the error and the time of the next attempt.
func (s *Store) FinishLeftover(
	ctx context.Context,
	reservation uuid.UUID,
	attempts int,
	failure error,
) (err error) {
	if failure == nil {
		_, err = s.db.Exec(ctx, `delete from reservation_leftover where reservation_id = $1`, reservation)
	} else {
		_, err = s.db.Exec(ctx, `
			update reservation_leftover
			set attempts = $2, last_error = $3, due_at = clock_timestamp() + $4::interval
			where reservation_id = $1`, reservation, attempts+1, failure.Error(), lease.RetryDelay(lease.Error, attempts+1))
	}
	if err != nil {
		return fmt.Errorf("store the result of removing a reservation of a deleted lease: %w", err)
	}
	return nil
}
