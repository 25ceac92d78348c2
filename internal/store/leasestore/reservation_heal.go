package leasestore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// UnhealthyReservations returns the reservations with a failed host or with missing resources, and the
// pending reservations of hosts that another lease has not released in time (see lateHoldersSQL), sorted by
// start date. UnhealthyReservations returns only reservations of pending or active leases that have started
// or will start within the duration `horizon`, because the hosts of a later reservation may recover before
// its start. If `horizon` is 0, there is no limit.
func (s *Store) UnhealthyReservations(
	ctx context.Context,
	horizon time.Duration,
	limit int,
) ([]lease.UnhealthyReservation, error) {
	all, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[lease.UnhealthyReservation], unhealthySQL,
		horizon, limit, lease.RecheckInterval)
	if err != nil {
		return nil, fmt.Errorf("read unhealthy reservations: %w", err)
	}
	return all, nil
}

// unhealthySQL is the query of UnhealthyReservations. A host can have thousands of allocations that leases
// hold past their end, and hundreds of later ones, so `held` has one row for a host and an owner.
const unhealthySQL = `
	with held as materialized (
		select host_id, owner, failed, min(upper(during)) as until
		from (` + lateHoldersSQL + `) h
		group by host_id, owner, failed)
	select r.id, coalesce(a.host_id, 0)
	from (
		select a.reservation_id, a.host_id
		from host h
		join host_allocation a on a.host_id = h.id
		where h.failed
		union all
		select id, null
		from reservation
		where missing_resources
		union
		select next.reservation_id, next.host_id
		from held
		join host_allocation next on next.host_id = held.host_id and next.owner <> held.owner and lower(next.during) >= held.until
		join reservation r on r.id = next.reservation_id
		join lease l on l.id = r.lease_id
		where l.status = 'PENDING' and (held.failed or l.start_at <= now())) as a (reservation_id, host_id)
	join reservation r on r.id = a.reservation_id
	join lease l on l.id = r.lease_id
	where l.status in ('PENDING', 'ACTIVE') and l.delete_requested_at is null and l.end_at > now()
		and ($1::interval = interval '0' or l.start_at <= now() + $1::interval)
	order by l.start_at, r.id, a.host_id
	limit $2`

// HealReservation replaces the failed host of a reservation, or allocates the reservation's missing
// resources, as far as resources are free. HealReservation then updates the flags of the reservation and its
// lease that say whether resources are missing or have changed. If the reservation is already healthy, or if
// its lease is in a transitional status, HealReservation does nothing.
func (s *Store) HealReservation(ctx context.Context, a lease.UnhealthyReservation) error {
	return s.inTx(ctx, func(tx *transaction) error {
		was, r, err := lockReservation(ctx, tx, a.Reservation)
		if errors.Is(err, db.ErrNotFound) {
			return nil
		}
		if err != nil || was.DeleteRequested || was.Status != lease.Pending && was.Status != lease.Active {
			return err
		}
		now, err := databaseTime(ctx, tx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(was.Reservations, func(o lease.Reservation) bool { return o.ID == r.ID })
		is, err := s.restoreResources(ctx, tx, was, i, a.Host, now)
		if err != nil || is == nil {
			return err
		}
		if is.Status == lease.Active {
			if err := tryUpdateInventory(ctx, tx, *is, is.Reservations[i]); err != nil {
				return err
			}
		}
		if err := saveLease(ctx, tx, was, *is); err != nil {
			return err
		}
		if is.Degraded && len(lease.NotificationsFor(was, *is)) == 0 {
			// no flag changes if a host is replaced that was itself a replacement
			if err := enqueueNotifications(ctx, tx, notificationSet{*is, []string{lease.NotificationHealth}}); err != nil {
				return err
			}
		}
		return outbox.Enqueue(ctx, tx, nudgeLease(*is, false))
	})
}

// tryUpdateInventory updates the resources of an active reservation in Placement. If servers still have
// allocations from the failed host, tryUpdateInventory does not update Placement, and the workflow of the
// lease updates Placement later.
func tryUpdateInventory(ctx context.Context, tx *transaction, l lease.Lease, r lease.Reservation) error {
	var fault *lease.Fault
	err := tx.savepoint(ctx, func(tx *transaction) error { return updateInventory(ctx, tx, l, r) })
	if !errors.As(err, &fault) {
		return err
	}
	return incrementRevision(ctx, tx, r)
}

// restoreResources replaces the failed host `host` of the i-th reservation of a lease. If `host` is 0,
// restoreResources allocates the missing resources of the reservation instead. restoreResources returns the
// changed lease, or nil if the lease does not change.
func (s *Store) restoreResources(
	ctx context.Context,
	tx *transaction,
	was lease.Lease,
	i int,
	host int64,
	now time.Time,
) (*lease.Lease, error) {
	r := was.Reservations[i]
	if host == 0 {
		return s.restoreMissing(ctx, tx, was, i, now)
	}
	var lost bool
	if err := tx.QueryRow(ctx, `select exists (select from host where id = $1 and failed)`, host).Scan(&lost); err != nil {
		return nil, fmt.Errorf("read host %d of reservation: %w", host, err)
	}
	if !slices.Contains(r.Hosts, host) {
		return nil, nil
	}
	if !lost {
		return s.moveOffHeldHost(ctx, tx, was, i, host, now)
	}
	whole := false
	err := retryTaken(ctx, tx, func(tx *transaction) (err error) {
		whole, err = resources[r.Type].replaceHost(ctx, tx,
			s.newAllocationRequest(was, r, withOwnSlots(r), now), host)
		return err
	})
	is := lease.WithHostReplaced(was, i, whole)
	return &is, err
}

// lateHoldersSQL selects the allocations of hosts that leases hold past their end: the end of the lease has
// failed (`failed`), or the lease has needed longer than $3 to end.
const lateHoldersSQL = `
	select a.host_id, a.reservation_id, a.owner, a.during, e.status = 'ERROR' as failed
	from host_allocation a
	join reservation r on r.id = a.reservation_id
	join lease l on l.id = r.lease_id
	join event e on e.lease_id = l.id and e.event_type = 'end_lease'
	where a.during << tstzrange(now(), null) and l.status <> 'PENDING'
		and (e.status = 'ERROR' or a.during << tstzrange(now() - $3::interval, null))`

// moveOffHeldHost moves the i-th reservation of a pending lease from a host that another lease has not
// released in time to a free host. If no other host is free, the reservation keeps the host, because the host
// can still be released before the lease starts. moveOffHeldHost returns the lease if it has moved the
// reservation, or nil if the reservation keeps the host.
func (s *Store) moveOffHeldHost(
	ctx context.Context,
	tx *transaction,
	was lease.Lease,
	i int,
	host int64,
	now time.Time,
) (*lease.Lease, error) {
	r := was.Reservations[i]
	var held bool
	err := tx.QueryRow(ctx, `
		select exists (
			select from (`+lateHoldersSQL+`) held
			join host_allocation own on own.reservation_id = $1 and own.host_id = held.host_id and lower(own.during) >= upper(held.during)
				and own.owner <> held.owner
			where held.host_id = $2)`, r.ID, host, lease.RecheckInterval).Scan(&held)
	if err != nil {
		return nil, fmt.Errorf("read holders of host %d: %w", host, err)
	}
	if !held || was.Status != lease.Pending {
		return nil, nil
	}
	err = tx.savepoint(ctx, func(tx *transaction) error {
		return retryTaken(ctx, tx, func(tx *transaction) error {
			request := s.newAllocationRequest(was, r, withOwnSlots(r), now)
			request.avoid = host
			whole, err := resources[r.Type].replaceHost(ctx, tx, request, host)
			if err == nil && !whole {
				err = errNoOtherHost
			}
			return err
		})
	})
	if errors.Is(err, errNoOtherHost) {
		return nil, nil
	}
	return &was, err
}

// errNoOtherHost means that no other host is free for a reservation.
var errNoOtherHost = errors.New("no other host is free")

// restoreMissing allocates the missing resources of a reservation, if enough resources have become free.
func (s *Store) restoreMissing(
	ctx context.Context,
	tx *transaction,
	was lease.Lease,
	i int,
	now time.Time,
) (*lease.Lease, error) {
	r := was.Reservations[i]
	err := retryTaken(ctx, tx, func(tx *transaction) error {
		return resources[r.Type].reallocate(ctx, tx, s.newAllocationRequest(was, r, withOwnSlots(r), now))
	})
	var fault *lease.Fault
	if errors.As(err, &fault) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	had, has := 0, 0
	for _, n := range r.Slots {
		had += n
	}
	if err := tx.QueryRow(ctx, `select coalesce(sum(slots), 0) from host_allocation where reservation_id = $1`, r.ID).Scan(&has); err != nil {
		return nil, fmt.Errorf("count the allocated resources of reservation %s: %w", r.ID, err)
	}
	if has <= had {
		return nil, nil
	}
	is := lease.WithResourcesRestored(was, i)
	return &is, nil
}

// withOwnSlots returns the reservation with a copy of its map of slots, because the functions that allocate
// resources may change this map.
func withOwnSlots(r lease.Reservation) lease.Reservation {
	r.Slots = maps.Clone(r.Slots)
	return r
}
