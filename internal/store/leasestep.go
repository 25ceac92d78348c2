package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/lease"
)

// BeginLease enters a step: the transitional status and the event's IN_PROGRESS. Where the lease is already,
// nothing changes. ErrConflict means that the step is not due there (any longer): look again.
func (s *Store) BeginLease(ctx context.Context, id uuid.UUID, step lease.Step) (lease.Lease, error) {
	return s.changeLease(ctx, id, func(tx pgx.Tx, was lease.Lease) (lease.Lease, error) {
		now, err := clock(ctx, tx)
		if err != nil {
			return was, err
		}
		is, err := lease.Begin(was, step, now)
		if err != nil {
			return was, stale(err)
		}
		return is, saveLease(ctx, tx, was, is)
	})
}

// FinishLease leaves a step: reservations, event and lease reach their stable statuses. The failed reservations
// come with their reasons. A repeated finish changes nothing, one from another time is ErrConflict. An end
// frees the hosts as its last act and nudges who waits for them. A deletion of which nothing failed makes the
// row disappear and returns its last state; finished again it is ErrNotFound.
func (s *Store) FinishLease(ctx context.Context, id uuid.UUID, step lease.Step, failed map[uuid.UUID]string) (lease.Lease, error) {
	return s.changeLease(ctx, id, func(tx pgx.Tx, was lease.Lease) (lease.Lease, error) {
		return finish(ctx, tx, was, step, failed)
	})
}

func finish(ctx context.Context, tx pgx.Tx, was lease.Lease, step lease.Step, failed map[uuid.UUID]string) (lease.Lease, error) {
	is, err := lease.Finish(was, step, failed)
	switch {
	case err != nil:
		return was, stale(err)
	case step == lease.Delete:
		return is, removeLease(ctx, tx, is)
	case was.Status == lease.Starting && is.Status == lease.Active:
		err = placed(ctx, tx, is)
	case was.Status == lease.Starting:
		err = unwireUnused(ctx, tx, is)
	case was.Status == lease.Terminating:
		err = leaveAll(ctx, tx, &is, step, failed)
	}
	if err != nil {
		return was, err
	}
	return is, saveLease(ctx, tx, was, is)
}

// DeleteLease asks for a lease's deletion, which wins over everything else that is due. A lease that holds nothing in
// the world goes at once; gone tells so. Else its workflow sees to it.
func (s *Store) DeleteLease(ctx context.Context, id uuid.UUID) (gone bool, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
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
			return nudge(ctx, tx, nudgeLease(l, false))
		}
		if _, err := tx.Exec(ctx, `
			update lease
			set delete_requested_at = clock_timestamp(), updated_at = clock_timestamp()
			where id = $1`, id); err != nil {
			return fmt.Errorf("delete lease %s: %w", id, err)
		}
		return nudge(ctx, tx, nudgeLease(l, false))
	})
	return gone, err
}

// changeLease runs f on the locked lease and returns what it made of it.
func (s *Store) changeLease(ctx context.Context, id uuid.UUID, f func(pgx.Tx, lease.Lease) (lease.Lease, error)) (is lease.Lease, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		was, err := lockLease(ctx, tx, id)
		if err != nil {
			return err
		}
		is, err = f(tx, was)
		return err
	})
	return is, err
}

func stale(err error) error {
	if errors.Is(err, lease.ErrTransition) {
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return err
}

// removeLease makes a lease disappear with all that it held and nudges who waits for its hosts.
func removeLease(ctx context.Context, tx pgx.Tx, l lease.Lease) error {
	if err := unwireAll(ctx, tx, l); err != nil {
		return err
	}
	followers, err := followersOf(ctx, tx, l)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `delete from lease where id = $1`, l.ID); err != nil {
		return fmt.Errorf("delete lease %s: %w", l.ID, err)
	}
	l.Status = lease.Deleting // as those who listen know it
	if err := tellLease(ctx, tx, l, lease.NoticeDelete); err != nil {
		return err
	}
	return nudge(ctx, tx, append(followers, nudgeLease(l, false))...)
}

// leaveAll frees what the reservations that ended well have: the last act of an end.
func leaveAll(ctx context.Context, tx pgx.Tx, l *lease.Lease, step lease.Step, failed map[uuid.UUID]string) error {
	followers, err := followersOf(ctx, tx, *l)
	if err != nil {
		return err
	}
	for i := range l.Reservations {
		r := &l.Reservations[i]
		if !lease.Released(step, r.ID, failed) {
			continue
		}
		of := resources[r.Type]
		if err := of.unwire(ctx, tx, *l, *r); err != nil {
			return err
		}
		if err := of.leave(ctx, tx, *r); err != nil {
			return err
		}
		r.Hosts, r.Slots, r.Addresses = nil, nil, nil
	}
	return nudge(ctx, tx, followers...)
}

// followersOf are the notes for the leases whose start is due and that wait for this one's hosts.
func followersOf(ctx context.Context, tx pgx.Tx, l lease.Lease) ([]contract.Nudge, error) {
	rows, err := tx.Query(ctx, `
		select distinct f.id, f.name, f.status, f.project_id
		from reservation r
		join host_allocation mine on mine.reservation_id = r.id
		join host_allocation next on next.host_id = mine.host_id and lower(next.during) >= upper(mine.during)
		join reservation n on n.id = next.reservation_id
		join lease f on f.id = n.lease_id
		where r.lease_id = $1 and f.status = 'PENDING' and f.start_at <= clock_timestamp() + $2::interval
		order by f.id`, l.ID, lease.Skew)
	if err != nil {
		return nil, fmt.Errorf("who waits for lease %s: %w", l.ID, err)
	}
	nudges, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (contract.Nudge, error) {
		var f lease.Lease
		err := row.Scan(&f.ID, &f.Name, &f.Status, &f.Project)
		return nudgeLease(f, false), err
	})
	if err != nil {
		return nil, fmt.Errorf("who waits for lease %s: %w", l.ID, err)
	}
	return nudges, nil
}
