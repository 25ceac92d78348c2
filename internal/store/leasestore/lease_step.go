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

// BeginLease enters a step: the transitional status and the event's IN_PROGRESS. Where the lease is already,
// nothing changes. ErrConflict means that the step is not due there (any longer): look again.
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

// FinishLease leaves a step: reservations, event and lease reach their stable statuses. The failed reservations
// come with their reasons. A repeated finish changes nothing, one from another time is ErrConflict. An end
// frees the hosts as its last act and nudges who waits for them. A deletion of which nothing failed makes the
// row disappear and returns its last state; finished again it is ErrNotFound.
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

// transition is what a step makes of a lease.
type transition struct {
	before, after lease.Lease
	step          lease.Step
	failed        map[uuid.UUID]string // why, by reservation
}

// finishTransitions brings leases, each of which is locked, to where their steps leave them, with all that they hold; or none of them.
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

// checkAllocated makes sure that no lease is called active whose reservations do not have in inventory what they hold.
func checkAllocated(ctx context.Context, tx *transaction, started []*transition) error {
	var all []leaseReservation
	for _, o := range started {
		all = append(all, reservationsOf(o.after)...)
	}
	return forEachType(all, func(of resource, those []leaseReservation) error {
		unwired, err := of.missingInInventory(ctx, tx, those)
		if err == nil && len(unwired) > 0 {
			err = fmt.Errorf("%w: reservation %s of lease %s does not hold what is its own", db.ErrConflict, unwired[0].ID, unwired[0].lease.ID)
		}
		return err
	})
}

// DeleteLease asks for a lease's deletion, which wins over everything else that is due. A lease that holds nothing in
// the world goes at once; gone tells so. Else its workflow sees to it.
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

// changeLease runs f on the locked lease and returns what it made of it.
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

// removeLease makes a lease disappear with all that it held and nudges who waits for its hosts.
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
	behind, err := newLeaderNudges(ctx, tx, l, lease.Lease{})
	if err != nil {
		return err
	}
	l.Status = lease.Deleting // as those who listen know it
	if err := enqueueNotifications(ctx, tx, notificationSet{l, []string{lease.NotificationDelete}}); err != nil {
		return err
	}
	return outbox.Enqueue(ctx, tx, append(append(followers, behind...), nudgeLease(l, false))...)
}

// newLeaderNudges are the notes for those who have come to be among the first at an instant because a lease that was one of them is
// not due there any more. Each counts who comes before it when it looks, and one that had counted enough would come late.
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
		return nil, fmt.Errorf("who moves up behind lease %s: %w", was.ID, err)
	}
	nudges, err := pgx.CollectRows(rows, scanNudge)
	if err != nil {
		return nil, fmt.Errorf("who moves up behind lease %s: %w", was.ID, err)
	}
	return nudges, nil
}

// scanNudge reads whom a note is for.
func scanNudge(row pgx.CollectableRow) (contract.Nudge, error) {
	var l lease.Lease
	err := row.Scan(&l.ID, &l.Name, &l.Status, &l.Project)
	return nudgeLease(l, false), err
}

// releaseEnded frees what the reservations that ended well have: the last act of an end.
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
	err = forEachType(released, func(of resource, those []leaseReservation) error {
		if err := of.removeFromInventory(ctx, tx, those); err != nil {
			return err
		}
		ids := make([]uuid.UUID, len(those))
		for i, h := range those {
			ids[i] = h.ID
		}
		return of.release(ctx, tx, ids...)
	})
	if err != nil {
		return err
	}
	return outbox.Enqueue(ctx, tx, followers...)
}

// removeUnusedFromInventory makes inventory say that the reservations of a lease whose start failed have nothing, but for what somebody
// uses: that has to be cleared first.
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

// followerNudges are the notes for the leases whose start is due and that wait for those leases' hosts.
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
		return nil, fmt.Errorf("who waits for leases %s: %w", leases, err)
	}
	nudges, err := pgx.CollectRows(rows, scanNudge)
	if err != nil {
		return nil, fmt.Errorf("who waits for leases %s: %w", leases, err)
	}
	return nudges, nil
}
