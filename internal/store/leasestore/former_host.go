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

// formerHostsSQL selects the former hosts of the reservations whose leases have not ended. Until the end of
// the lease, no other reservation gets such a host, because it would delete the servers on the host.
const formerHostsSQL = `
	select f.host_id, f.reservation_id, f.left_at, l.end_at
	from reservation_former_host f
	join reservation r on r.id = f.reservation_id
	join lease l on l.id = r.lease_id
	where l.end_at > now()`

// keepFormerHost stores that healing has replaced a host of an active reservation of hosts. The host may be
// down only for a while, so the servers of the reservation on it are deleted at the end of the lease, and no
// other reservation gets the host before (see formerHostsSQL). A reservation of instances has no such rows,
// because its servers are found by its flavor on every host.
func keepFormerHost(ctx context.Context, tx *transaction, reservation uuid.UUID, host int64) error {
	if _, err := tx.Exec(ctx, `
		insert into reservation_former_host (reservation_id, host_id)
		values ($1, $2)
		on conflict (reservation_id, host_id) do update
		set left_at = excluded.left_at`, reservation, host); err != nil {
		return fmt.Errorf("store host %d as a former host of reservation %s: %w", host, reservation, err)
	}
	return nil
}

// formerHostAge is how long ago healing must have replaced a former host that is released: Nova can still
// have been creating a server there.
const formerHostAge = 10 * time.Minute

// ReservationsWithFormerHosts returns the IDs of at most `limit` reservations of running leases, in a random
// order, that have former hosts which can be released if they have no server (see ReleaseFormerHosts).
func (s *Store) ReservationsWithFormerHosts(ctx context.Context, limit int) ([]uuid.UUID, error) {
	all, err := db.QueryAll(ctx, s.db, pgx.RowTo[uuid.UUID], `
		select r.id
		from reservation r
		join lease l on l.id = r.lease_id
		where r.id in (select reservation_id from reservation_former_host where left_at < now() - $1::interval)
			and l.status = 'ACTIVE' and l.delete_requested_at is null
		order by random()
		limit $2`, formerHostAge, limit)
	if err != nil {
		return nil, fmt.Errorf("read the reservations with former hosts: %w", err)
	}
	return all, nil
}

// ReleaseFormerHosts lets other reservations get former hosts of a reservation, on which Nova has no server
// of the reservation. A host that healing has replaced again meanwhile, or lately, stays a former one.
func (s *Store) ReleaseFormerHosts(ctx context.Context, id uuid.UUID, all []lease.FormerHost) error {
	services, leftAt := make([]string, len(all)), make([]time.Time, len(all))
	for i, h := range all {
		services[i], leftAt[i] = h.Service, h.LeftAt
	}
	if _, err := s.db.Exec(ctx, `
		delete from reservation_former_host f
		using host h, unnest($2::text[], $3::timestamptz[]) as e (service, left_at)
		where f.reservation_id = $1 and h.id = f.host_id and h.service_name = e.service and f.left_at = e.left_at
			and f.left_at < now() - $4::interval`, id, services, leftAt, formerHostAge); err != nil {
		return fmt.Errorf("release former hosts of reservation %s: %w", id, err)
	}
	return nil
}
