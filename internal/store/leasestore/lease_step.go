package leasestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// BeginLease sets a lease to the transitional status of a step and the step's event to IN_PROGRESS. If
// BeginLease is called again for the same step, it changes nothing. If the step is not due, BeginLease
// returns db.ErrConflict, and the caller has to read the lease again. The step lease.StepExpire has no
// transitional status: BeginLease performs all of it.
func (s *Store) BeginLease(ctx context.Context, id uuid.UUID, step lease.Step) (lease.Lease, error) {
	return s.changeLease(ctx, id, func(tx *transaction, was lease.Lease) (lease.Lease, error) {
		if step == lease.StepExpire {
			return expireLease(ctx, tx, was)
		}
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

// FinishLease finishes a step of a lease: it sets the lease, the reservations of the lease and the event of
// the step to their stable statuses. The parameter `failed` contains, by reservation, the error text of each
// reservation that failed in the step. If FinishLease is called again for the same step, it changes nothing.
// If the step has not begun, FinishLease returns db.ErrConflict. When FinishLease finishes the end of a
// lease, it releases the resources of the lease and nudges the workflows of the leases that wait for these.
// When FinishLease finishes a deletion without failed reservations, it deletes the row of the lease and
// returns the last state of the lease; if FinishLease is then called again, it returns db.ErrNotFound.
func (s *Store) FinishLease(
	ctx context.Context,
	id uuid.UUID,
	step lease.Step,
	failed map[uuid.UUID]string,
) (lease.Lease, error) {
	var done transition
	l, err := s.changeLease(ctx, id, func(tx *transaction, was lease.Lease) (lease.Lease, error) {
		is, err := lease.FinishStep(was, step, failed)
		if err != nil {
			return was, asConflict(err)
		}
		if step == lease.StepDelete {
			return is, removeLease(ctx, tx, is)
		}
		all := []transition{{was, is, step, failed}}
		err = finishTransitions(ctx, tx, all)
		done = all[0]
		return all[0].after, err
	})
	if err == nil && done.before.Status != done.after.Status {
		s.reportLateness(done)
	}
	return l, err
}

// transition is the change of a lease by a step.
type transition struct {
	before, after lease.Lease
	step          lease.Step
	failed        map[uuid.UUID]string // error texts by reservation
}

// finishTransitions saves the transitions of locked leases to stable statuses. finishTransitions checks that
// Placement contains the resources of started leases, and releases the resources of ended leases. If the
// transition of one lease fails, finishTransitions returns an error, and the caller must roll back the
// transitions of all leases.
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
		case o.step == lease.StepClear && o.before.HasFailedToEnd():
			ended = append(ended, o)
		}
	}
	if err := checkAllocated(ctx, tx, started); err != nil {
		return err
	}
	if err := releaseEnded(ctx, tx, ended); err != nil {
		return err
	}
	if err := clearFailures(ctx, tx, all); err != nil {
		return err
	}
	return saveLeases(ctx, tx, all...)
}

// clearFailures deletes the stored call failures of the leases whose step has succeeded. If the step of a
// lease has failed, clearFailures keeps the call failures of the lease, because they explain the status
// ERROR.
func clearFailures(ctx context.Context, tx *transaction, all []transition) error {
	var succeeded []uuid.UUID
	for _, o := range all {
		for _, r := range o.before.Reservations {
			if len(o.failed) == 0 && r.Failure != nil {
				succeeded = append(succeeded, r.ID)
			}
		}
	}
	if len(succeeded) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, clearFailuresSQL, succeeded); err != nil {
		return fmt.Errorf("delete the failures of reservations' calls: %w", err)
	}
	return nil
}

// checkAllocated returns db.ErrConflict if Placement lacks a resource that a reservation of the starting
// leases needs, for example the inventory of a reserved host.
func checkAllocated(ctx context.Context, tx *transaction, started []*transition) error {
	var all []leaseReservation
	for _, o := range started {
		all = append(all, reservationsOf(o.after)...)
	}
	return forEachType(all, func(res resource, reservations []leaseReservation) error {
		missing, err := res.missingInInventory(ctx, tx, reservations)
		if err == nil && len(missing) > 0 {
			err = fmt.Errorf("%w: Placement does not contain the resources of reservation %s of lease %s",
				db.ErrConflict, missing[0].ID, missing[0].lease.ID)
		}
		return err
	})
}

// DeleteLease requests the deletion of a lease, which has priority over all due steps. If the lease has no
// resources in Nova, Neutron and Placement, DeleteLease deletes the lease immediately and the result `gone`
// is true. If the lease has resources in one of these services, the workflow of the lease later releases the
// resources and deletes the lease.
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
	return gone && err == nil, err // the commit may have failed
}

// changeLease locks a lease, calls f with the lease in the same transaction, and returns the result of f.
func (s *Store) changeLease(
	ctx context.Context,
	id uuid.UUID,
	f func(*transaction, lease.Lease) (lease.Lease, error),
) (is lease.Lease, err error) {
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

// removeLease deletes a lease and the resources of the lease in Placement, and nudges the workflows of other
// leases that wait for resources of the deleted lease.
func removeLease(ctx context.Context, tx *transaction, l lease.Lease) error {
	if err := removeFromInventory(ctx, tx, reservationsOf(l)...); err != nil {
		return err
	}
	if l.Status == lease.Deleting { // the lease has started, so it had objects in Nova or Neutron
		if err := keepLeftovers(ctx, tx, reservationsOf(l)...); err != nil {
			return err
		}
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

// newLeaderNudges returns the nudges for the leases whose rank (see LeaseRanks) falls below lease.LeaderCount
// because the lease `was` is changed or deleted and is no longer due at the same instant. The workflows of
// these leases have computed their wake-up times from the old ranks, and would wake up too late without the
// nudges.
func newLeaderNudges(ctx context.Context, tx *transaction, was, is lease.Lease) ([]contract.Nudge, error) {
	var left []time.Time
	for i, e := range was.Events {
		if e.Status == lease.EventUndone && e.Type != lease.BeforeEndLease &&
			(len(is.Events) == 0 || !is.Events[i].At.Equal(e.At)) {
			left = append(left, e.At)
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	nudges, err := db.QueryAll(ctx, tx, scanNudge, `
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
		return nil, fmt.Errorf(
			"read the leases whose workflows must wake up earlier after a change of lease %s: %w",
			was.ID,
			err,
		)
	}
	return nudges, nil
}

// scanNudge reads a row with the data of a lease into the nudge for the lease's workflow.
func scanNudge(row pgx.CollectableRow) (contract.Nudge, error) {
	var l lease.Lease
	err := row.Scan(&l.ID, &l.Name, &l.Status, &l.Project)
	return nudgeLease(l, false), err
}

// releaseEnded releases the resources of the reservations that have ended without an error, and nudges the
// workflows of the leases that wait for the released resources.
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
				r.Hosts, r.Slots, r.Addresses, r.ResourceIDs = nil, nil, nil, nil
			}
		}
	}
	return freeResources(ctx, tx, leases, released)
}

// freeResources deletes the allocations of reservations of the given leases from Placement and from berth's
// database, and nudges the workflows of the leases that wait for resources of these leases. freeResources
// stores that a reservation must be removed once more if an attempt to provision it may be running, or if
// servers of it may be on its former hosts, for which the end of the lease does not wait.
func freeResources(
	ctx context.Context,
	tx *transaction,
	leases []uuid.UUID,
	released []leaseReservation,
) error {
	former, err := db.QueryAll(ctx, tx, pgx.RowTo[uuid.UUID], `
		select f.reservation_id
		from reservation r
		join reservation_former_host f on f.reservation_id = r.id
		where r.lease_id = any($1)`, leases)
	if err != nil {
		return fmt.Errorf("read which reservations of the leases %s have former hosts: %w", leases, err)
	}
	late := slices.DeleteFunc(slices.Clone(released),
		func(r leaseReservation) bool { return !r.mayBeProvisioned() && !slices.Contains(former, r.ID) })
	if err := keepLeftovers(ctx, tx, late...); err != nil {
		return err
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

// mayBeProvisioned reports whether an attempt to provision the reservation may be running: Nova and Neutron
// do not have its current resources, or its lease is being deleted.
func (r leaseReservation) mayBeProvisioned() bool {
	return r.lease.Status == lease.Deleting || r.CloudOutdated() || !r.lease.HasStarted()
}

// removeUnusedFromInventory removes from Placement the reservations of a lease whose start has failed. If
// servers use the resources of a reservation, removeUnusedFromInventory does not remove this reservation,
// because the servers have to be deleted first.
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

// followersSQL is the query of followerNudges.
var followersSQL = `
	with ` + allocationsSQL("mine", `(select unnest($1::uuid[]) as lease_id)`) + `,
	` + holdersSQL("theirs", "mine", "null") + `
	select f.id, f.name, f.status, f.project_id
	from (` + eachTable(`
		union`, `
		select theirs.lease_id
		from mine_%[1]s mine
		join theirs_%[1]s theirs on theirs.key = mine.key and lower(theirs.during) >= upper(mine.during)`) + `) n
	cross join lateral (
		select id, name, status, project_id
		from lease
		where id = n.lease_id and status = 'PENDING' and start_at <= clock_timestamp() + $2::interval
		offset 0) f
	order by f.id`

// followerNudges returns the nudges for the pending leases whose start is due and that wait for resources of
// the given leases.
func followerNudges(ctx context.Context, tx *transaction, leases ...uuid.UUID) ([]contract.Nudge, error) {
	nudges, err := db.QueryAll(ctx, tx, scanNudge, followersSQL, leases, lease.ClockSkew)
	if err != nil {
		return nil, fmt.Errorf("read leases that wait for resources of the leases %s: %w", leases, err)
	}
	return nudges, nil
}
