package leasestore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// BeginLease enters the transitional status of a step and sets its event to IN_PROGRESS. A repetition changes nothing. It returns
// ErrConflict if the step is not due: the caller has to read the lease again.
func (s *Store) BeginLease(ctx context.Context, id uuid.UUID, step lease.Step) (lease.Lease, error) {
	return s.changeLease(ctx, id, func(tx *transaction, was lease.Lease) (lease.Lease, error) {
		now, err := databaseTime(ctx, tx)
		if err != nil {
			return was, err
		}
		is, err := lease.BeginStep(was, step, now)
		if err != nil {
			return was, asConflict(err)
		}
		return is, saveLease(ctx, tx, was, is)
	})
}

// FinishLease enters the stable statuses of a step for reservations, event and lease. Failed contains the error text of each failed
// reservation. A repetition changes nothing; a step that the lease is not in returns ErrConflict. The end of a lease releases
// its hosts and nudges the leases that wait for them. A deletion without failed reservations deletes the row and returns the last
// state; its repetition returns ErrNotFound.
func (s *Store) FinishLease(ctx context.Context, id uuid.UUID, step lease.Step, failed map[uuid.UUID]string) (lease.Lease, error) {
	return s.changeLease(ctx, id, func(tx *transaction, was lease.Lease) (lease.Lease, error) {
		is, err := lease.FinishStep(was, step, failed)
		if err != nil {
			return was, asConflict(err)
		}
		if step == lease.StepDelete {
			return is, removeLease(ctx, tx, is)
		}
		all := []transition{{was, is, step, failed}}
		err = finishTransitions(ctx, tx, all)
		return all[0].after, err
	})
}

// transition is the change of a lease by a step.
type transition struct {
	before, after lease.Lease
	step          lease.Step
	failed        map[uuid.UUID]string // error texts by reservation
}

// finishTransitions saves the transitions of locked leases to stable statuses, and allocates or releases their resources. It fails for
// all leases if it fails for one.
func finishTransitions(ctx context.Context, tx *transaction, all []transition) error {
	var started, ended []*transition
	for i := range all {
		o := &all[i]
		switch {
		case o.before.Status == lease.Starting && o.after.Status == lease.Active:
			started = append(started, o)
		case o.before.Status == lease.Starting:
			if err := removeUnusedFromInventory(ctx, tx, o.after); err != nil {
				return err
			}
		case o.before.Status == lease.Terminating:
			ended = append(ended, o)
		}
	}
	if err := checkAllocated(ctx, tx, started); err != nil {
		return err
	}
	if err := releaseEnded(ctx, tx, ended); err != nil {
		return err
	}
	return saveLeases(ctx, tx, all...)
}

// checkAllocated returns ErrConflict if inventory does not contain all resources of the starting leases' reservations.
func checkAllocated(ctx context.Context, tx *transaction, started []*transition) error {
	var all []leaseReservation
	for _, o := range started {
		all = append(all, reservationsOf(o.after)...)
	}
	return forEachType(all, func(res resource, reservations []leaseReservation) error {
		missing, err := res.missingInInventory(ctx, tx, reservations)
		if err == nil && len(missing) > 0 {
			err = fmt.Errorf("%w: inventory does not contain the resources of reservation %s of lease %s", db.ErrConflict, missing[0].ID, missing[0].lease.ID)
		}
		return err
	})
}

// DeleteLease requests the deletion of a lease, which has priority over all due steps. A lease without resources in Nova, Neutron
// and inventory is deleted at once, and gone is true. Otherwise its workflow releases the resources and deletes it.
func (s *Store) DeleteLease(ctx context.Context, id uuid.UUID) (gone bool, err error) {
	err = s.inTx(ctx, func(tx *transaction) error {
		gone = false
		l, err := lockLease(ctx, tx, id)
		if err != nil {
			return err
		}
		if l.HoldsNothing() {
			gone = true
			return removeLease(ctx, tx, l)
		}
		if l.DeleteRequested {
			return outbox.Enqueue(ctx, tx, nudgeLease(l, false))
		}
		if _, err := tx.Exec(ctx, `
			update lease
			set delete_requested_at = clock_timestamp(), updated_at = clock_timestamp()
			where id = $1`, id); err != nil {
			return fmt.Errorf("delete lease %s: %w", id, err)
		}
		return outbox.Enqueue(ctx, tx, nudgeLease(l, false))
	})
	return gone, err
}

// changeLease calls f with the locked lease and returns the result of f.
func (s *Store) changeLease(ctx context.Context, id uuid.UUID, f func(*transaction, lease.Lease) (lease.Lease, error)) (is lease.Lease, err error) {
	err = s.inTx(ctx, func(tx *transaction) error {
		was, err := lockLease(ctx, tx, id)
		if err != nil {
			return err
		}
		is, err = f(tx, was)
		return err
	})
	return is, err
}

func asConflict(err error) error {
	if errors.Is(err, lease.ErrTransition) {
		return fmt.Errorf("%w: %w", db.ErrConflict, err)
	}
	return err
}

// removeLease deletes a lease with its resources in inventory, and nudges the leases that wait for its hosts.
func removeLease(ctx context.Context, tx *transaction, l lease.Lease) error {
	if err := removeFromInventory(ctx, tx, reservationsOf(l)...); err != nil {
		return err
	}
	followers, err := followerNudges(ctx, tx, l.ID)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `delete from lease where id = $1`, l.ID); err != nil {
		return fmt.Errorf("delete lease %s: %w", l.ID, err)
	}
	leaders, err := newLeaderNudges(ctx, tx, l, lease.Lease{})
	if err != nil {
		return err
	}
	l.Status = lease.Deleting // the status in the notification
	if err := enqueueNotifications(ctx, tx, notificationSet{l, []string{lease.NotificationDelete}}); err != nil {
		return err
	}
	return outbox.Enqueue(ctx, tx, append(append(followers, leaders...), nudgeLease(l, false))...)
}

// newLeaderNudges returns the notes for leases that become leaders of an instant (rank below lease.LeaderCount) because a change or
// deletion removes a lease with a lower rank. A lease computes its wake-up time from its rank; without a nudge it wakes up too late.
func newLeaderNudges(ctx context.Context, tx *transaction, was, is lease.Lease) ([]contract.Nudge, error) {
	var left []time.Time
	for i, e := range was.Events {
		if e.Status == lease.EventUndone && e.Type != lease.BeforeEndLease && (len(is.Events) == 0 || !is.Events[i].At.Equal(e.At)) {
			left = append(left, e.At)
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `
		select f.id, f.name, f.status, f.project_id
		from unnest($1::timestamptz[]) as at (instant)
		cross join lateral (
			select e.lease_id
			from event e
			where e.status = 'UNDONE' and e.event_type <> 'before_end_lease' and e.at = instant and e.lease_id <> $2
			order by e.lease_id
			offset $3 - 1
			limit 1) e
		join lease f on f.id = e.lease_id
		where (
			select count(*)
			from (
				select from event b
				where b.status = 'UNDONE' and b.event_type <> 'before_end_lease' and b.at = instant and b.lease_id < $2
				limit $3) b) < $3
		order by f.id`, left, was.ID, lease.LeaderCount)
	if err != nil {
		return nil, fmt.Errorf("read new leaders after lease %s: %w", was.ID, err)
	}
	nudges, err := pgx.CollectRows(rows, scanNudge)
	if err != nil {
		return nil, fmt.Errorf("read new leaders after lease %s: %w", was.ID, err)
	}
	return nudges, nil
}

// scanNudge reads the note for the workflow of a lease.
func scanNudge(row pgx.CollectableRow) (contract.Nudge, error) {
	var l lease.Lease
	err := row.Scan(&l.ID, &l.Name, &l.Status, &l.Project)
	return nudgeLease(l, false), err
}

// releaseEnded releases the resources of the reservations that ended without an error, and nudges the leases that wait for them.
func releaseEnded(ctx context.Context, tx *transaction, ended []*transition) error {
	if len(ended) == 0 {
		return nil
	}
	var leases []uuid.UUID
	var released []leaseReservation
	for _, o := range ended {
		leases = append(leases, o.after.ID)
		for i := range o.after.Reservations {
			if r := &o.after.Reservations[i]; lease.ReleasesHosts(o.step, r.ID, o.failed) {
				released = append(released, leaseReservation{*r, o.after})
				r.Hosts, r.Slots, r.Addresses = nil, nil, nil
			}
		}
	}
	followers, err := followerNudges(ctx, tx, leases...)
	if err != nil {
		return err
	}
	err = forEachType(released, func(res resource, reservations []leaseReservation) error {
		if err := res.removeFromInventory(ctx, tx, reservations); err != nil {
			return err
		}
		ids := make([]uuid.UUID, len(reservations))
		for i, h := range reservations {
			ids[i] = h.ID
		}
		return res.release(ctx, tx, ids...)
	})
	if err != nil {
		return err
	}
	return outbox.Enqueue(ctx, tx, followers...)
}

// removeUnusedFromInventory removes the reservations of a lease whose start failed from inventory. It keeps resources that servers
// use: the servers have to be deleted first.
func removeUnusedFromInventory(ctx context.Context, tx *transaction, l lease.Lease) error {
	for _, h := range reservationsOf(l) {
		var fault *lease.Fault
		err := tx.savepoint(ctx, func(tx *transaction) error { return removeFromInventory(ctx, tx, h) })
		if err != nil && !errors.As(err, &fault) {
			return err
		}
	}
	return nil
}

// followerNudges returns the notes for the pending leases whose start is due and that wait for hosts of the given leases.
func followerNudges(ctx context.Context, tx *transaction, leases ...uuid.UUID) ([]contract.Nudge, error) {
	rows, err := tx.Query(ctx, `
		select distinct f.id, f.name, f.status, f.project_id
		from reservation r
		join host_allocation mine on mine.reservation_id = r.id
		join host_allocation next on next.host_id = mine.host_id and lower(next.during) >= upper(mine.during)
		join reservation n on n.id = next.reservation_id
		join lease f on f.id = n.lease_id
		where r.lease_id = any($1) and f.status = 'PENDING' and f.start_at <= clock_timestamp() + $2::interval
		order by f.id`, leases, lease.ClockSkew)
	if err != nil {
		return nil, fmt.Errorf("read leases that wait for leases %s: %w", leases, err)
	}
	nudges, err := pgx.CollectRows(rows, scanNudge)
	if err != nil {
		return nil, fmt.Errorf("read leases that wait for leases %s: %w", leases, err)
	}
	return nudges, nil
}
