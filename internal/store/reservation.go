package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
	"berth/internal/lease"
)

// WireReservation gives the reservation its hosts in inventory: an allocation of the reservation, as consumer,
// on the nested provider of each. What is there already is left alone. ErrConflict means that the lease is not
// being started (any longer); a *lease.Fault of the kind HostInUse that somebody else holds a host, which may pass.
func (s *Store) WireReservation(ctx context.Context, id uuid.UUID) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		l, r, err := lockReservation(ctx, tx, id)
		if err != nil {
			return err
		}
		if l.DeleteRequested || l.Status != lease.Starting && l.Status != lease.Active {
			return fmt.Errorf("%w: lease %s is %s: reservation %s is not given its hosts", ErrConflict, l.ID, l.Status, id)
		}
		return resources[r.Type].wire(ctx, tx, l, r)
	})
}

// UnwireReservation takes the reservation's allocations out of inventory. What is gone is fine. ErrConflict means
// that the lease is neither being ended nor deleted.
func (s *Store) UnwireReservation(ctx context.Context, id uuid.UUID) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		l, r, err := lockReservation(ctx, tx, id)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		switch l.Status {
		case lease.Terminating, lease.Terminated, lease.Deleting, lease.Error:
			return resources[r.Type].unwire(ctx, tx, l, r)
		default:
			return fmt.Errorf("%w: lease %s is %s: reservation %s keeps its hosts", ErrConflict, l.ID, l.Status, id)
		}
	})
}

// Claim is what a reservation holds, as the cloud has to know it. ErrConflict means that its lease neither starts nor is
// active (any longer).
func (s *Store) Claim(ctx context.Context, id uuid.UUID) (lease.Claim, error) {
	return s.claim(ctx, id, lease.Starting, lease.Active)
}

// LeavingClaim is the same of a reservation that is on its way out; ErrConflict means that it is not.
func (s *Store) LeavingClaim(ctx context.Context, id uuid.UUID) (lease.Claim, error) {
	return s.claim(ctx, id, lease.Terminating, lease.Terminated, lease.Deleting, lease.Error)
}

func (s *Store) claim(ctx context.Context, id uuid.UUID, statuses ...lease.Status) (c lease.Claim, err error) {
	all, err := s.leases(ctx, `id = (select lease_id from reservation where id = $1)`, id)
	if err != nil {
		return c, err
	}
	if len(all) == 0 {
		return c, fmt.Errorf("%w: reservation %s", ErrNotFound, id)
	}
	l := all[0]
	if !slices.Contains(statuses, l.Status) || l.DeleteRequested && l.Status != lease.Deleting {
		return c, fmt.Errorf("%w: lease %s is %s: not the time for its reservation %s", ErrConflict, l.ID, l.Status, id)
	}
	i := slices.IndexFunc(l.Reservations, func(r lease.Reservation) bool { return r.ID == id })
	c = lease.Claim{Reservation: l.Reservations[i], Project: l.Project}
	rows, err := s.pool.Query(ctx, `
		select h.service_name, a.slots
		from host_allocation a
		join host h on h.id = a.host_id
		where a.reservation_id = $1
		order by h.id`, id)
	if err == nil {
		c.Servers, err = pgx.CollectRows(rows, pgx.RowToStructByPos[lease.ClaimedHost])
	}
	if err == nil {
		c.Floating, err = readAddresses(ctx, s.pool, `f.id in (select floatingip_id from floatingip_allocation where reservation_id = $1)`, id)
	}
	if err != nil {
		return c, fmt.Errorf("claim of reservation %s: %w", id, err)
	}
	return c, nil
}

// MarkReservation remembers what the cloud calls a reservation, and which shape of it the cloud was told. ErrConflict
// means that its lease was given up meanwhile. An older mark than the one that is there changes nothing.
func (s *Store) MarkReservation(ctx context.Context, id uuid.UUID, m lease.Mark) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		l, r, err := lockReservation(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case l.DeleteRequested || l.Status != lease.Starting && l.Status != lease.Active:
			return fmt.Errorf("%w: lease %s is %s: reservation %s is not provided any more", ErrConflict, l.ID, l.Status, id)
		case m.Shape < r.Shaped:
			return nil
		}
		if _, err := tx.Exec(ctx, `
			update reservation
			set shaped = $2, aggregate_id = $3, server_group_id = $4
			where id = $1 and shape >= $2`, id, m.Shape, m.AggregateID, m.ServerGroupID); err != nil {
			return fmt.Errorf("mark reservation %s: %w", id, err)
		}
		return nil
	})
}

// lockReservation locks the lease that a reservation belongs to.
func lockReservation(ctx context.Context, tx pgx.Tx, id uuid.UUID) (lease.Lease, lease.Reservation, error) {
	var of uuid.UUID
	err := tx.QueryRow(ctx, `select lease_id from reservation where id = $1`, id).Scan(&of)
	if err := found(err, "reservation %s", id); err != nil {
		return lease.Lease{}, lease.Reservation{}, err
	}
	l, err := lockLease(ctx, tx, of)
	if err != nil {
		return l, lease.Reservation{}, err
	}
	i := slices.IndexFunc(l.Reservations, func(r lease.Reservation) bool { return r.ID == id })
	if i < 0 {
		return l, lease.Reservation{}, fmt.Errorf("%w: reservation %s", ErrNotFound, id)
	}
	return l, l.Reservations[i], nil
}

// wire makes the reservation hold exactly its hosts in inventory.
func (wholeHosts) wire(ctx context.Context, tx pgx.Tx, l lease.Lease, r lease.Reservation) error {
	want, err := share(ctx, tx, r)
	if err != nil {
		return err
	}
	have, generation, err := holding(ctx, tx, r.ID)
	if err != nil {
		return err
	}
	if maps.EqualFunc(want, have, func(a, b map[string]int64) bool { return maps.Equal(a, b) }) {
		return nil
	}
	return give(ctx, tx, l, r, want, generation)
}

// unwire makes the reservation hold nothing in inventory.
func (wholeHosts) unwire(ctx context.Context, tx pgx.Tx, l lease.Lease, r lease.Reservation) error {
	_, generation, err := holding(ctx, tx, r.ID)
	if err != nil || generation == nil {
		return err
	}
	return give(ctx, tx, l, r, nil, generation)
}

func unwireAll(ctx context.Context, tx pgx.Tx, l lease.Lease) error {
	for _, r := range l.Reservations {
		if err := resources[r.Type].unwire(ctx, tx, l, r); err != nil {
			return err
		}
	}
	return nil
}

// unwireUnused does it for the reservations of a lease whose start failed, but for what somebody uses: that has to be
// cleared first.
func unwireUnused(ctx context.Context, tx pgx.Tx, l lease.Lease) error {
	for _, r := range l.Reservations {
		var fault *lease.Fault
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return resources[r.Type].unwire(ctx, tx, l, r) })
		if err != nil && !errors.As(err, &fault) {
			return err
		}
	}
	return nil
}

// give replaces what the reservation holds, if its generation is the one that was read.
func give(ctx context.Context, tx pgx.Tx, l lease.Lease, r lease.Reservation, what inventory.Allocations, generation *int64) error {
	expect := inventory.Absent()
	if generation != nil {
		expect = inventory.At(*generation)
	}
	err := replaceAllocations(As(ctx, "lease "+l.ID.String()), tx, []inventory.ConsumerWrite{{
		Consumer: r.ID.String(), Project: l.Project, User: l.User, Expect: expect, Allocations: what}})
	var problem *inventory.Problem
	if !errors.As(err, &problem) {
		return err
	}
	if problem.Kind == inventory.Concurrent {
		return fmt.Errorf("reservation %s in inventory: another writer was faster: %w", r.ID, err)
	}
	return lease.Refuse(lease.HostInUse, "reservation %s cannot have its hosts: %s", r.ID, problem.Message)
}

// share is what a reservation shall hold in inventory.
func share(ctx context.Context, tx pgx.Tx, r lease.Reservation) (inventory.Allocations, error) {
	rows, err := tx.Query(ctx, `
		select h.nested::text
		from host_allocation a
		join host h on h.id = a.host_id
		where a.reservation_id = $1`, r.ID)
	if err != nil {
		return nil, fmt.Errorf("hosts of reservation %s: %w", r.ID, err)
	}
	nested, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("hosts of reservation %s: %w", r.ID, err)
	}
	want := inventory.Allocations{}
	for _, provider := range nested {
		want[provider] = map[string]int64{lease.HostClass: 1}
	}
	return want, nil
}

// holding is what a reservation holds in inventory, and its generation as a consumer: nil if it holds nothing.
func holding(ctx context.Context, tx pgx.Tx, reservation uuid.UUID) (inventory.Allocations, *int64, error) {
	rows, err := tx.Query(ctx, `
		select k.generation, p.uuid, c.name, a.amount
		from consumer k
		join allocation a on a.consumer_id = k.id
		join provider p on p.id = a.provider_id
		join resource_class c on c.id = a.class_id
		where k.uuid = $1`, reservation.String())
	if err != nil {
		return nil, nil, fmt.Errorf("what reservation %s holds: %w", reservation, err)
	}
	have := inventory.Allocations{}
	var generation, amount int64
	var provider, class string
	tag, err := pgx.ForEachRow(rows, []any{&generation, &provider, &class, &amount}, func() error {
		if have[provider] == nil {
			have[provider] = map[string]int64{}
		}
		have[provider][class] = amount
		return nil
	})
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("what reservation %s holds: %w", reservation, err)
	case tag.RowsAffected() == 0:
		return have, nil, nil
	}
	return have, &generation, nil
}

// wired tells whether the reservation holds exactly its hosts in inventory.
func (wholeHosts) wired(ctx context.Context, tx pgx.Tx, r lease.Reservation) (bool, error) {
	want, err := share(ctx, tx, r)
	if err != nil {
		return false, err
	}
	have, _, err := holding(ctx, tx, r.ID)
	return maps.EqualFunc(want, have, func(a, b map[string]int64) bool { return maps.Equal(a, b) }), err
}

// placed makes sure that no lease is called active whose reservations do not have in inventory what they hold.
func placed(ctx context.Context, tx pgx.Tx, l lease.Lease) error {
	for _, r := range l.Reservations {
		wired, err := resources[r.Type].wired(ctx, tx, r)
		if err != nil {
			return err
		}
		if !wired {
			return fmt.Errorf("%w: reservation %s of lease %s does not hold what is its own", ErrConflict, r.ID, l.ID)
		}
	}
	return nil
}
