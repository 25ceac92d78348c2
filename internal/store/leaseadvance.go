package store

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/lease"
)

// How many leases begin a step in one transaction: fewer where the world has to hear of each before it ends, so that none
// of them waits in between for long.
const (
	advanceAtOnce = 50
	tellAtOnce    = 16
)

// AdvanceLeases starts or ends every lease of which that is due, ends first, until none is left or the time is over:
// when many are due at one instant, whoever wakes first does it for all, in few transactions. What somebody else is at
// work on is left to him. Between the begin of steps and their end, tell, if it is not nil, brings them into the world,
// and returns those of which that went well. What does not go well is left to its own workflow, which is told and takes up
// what was begun. It returns how many have reached the end of their step.
func (s *Store) AdvanceLeases(ctx context.Context, tell func(context.Context, []Begun) []Begun, within time.Duration) (advanced int, err error) {
	atOnce := advanceAtOnce
	if tell != nil {
		atOnce = tellAtOnce
	}
	for begin := time.Now(); time.Since(begin) < within; {
		begun, err := s.beginDue(ctx, atOnce)
		if err != nil || len(begun) == 0 {
			return advanced, err
		}
		told := begun
		if tell != nil {
			told = tell(ctx, begun)
		}
		n, err := s.finishBegun(ctx, begun, told)
		advanced += n
		if err != nil {
			return advanced, err
		}
	}
	return advanced, nil
}

// Begun is a step of a lease that has begun.
type Begun struct {
	lease.Lease
	Step lease.Step
}

// Until is how long that instant is away by the database's clock, which decides what is due; negative once it is over.
func (s *Store) Until(ctx context.Context, at time.Time) (time.Duration, error) {
	var left time.Duration
	if err := s.pool.QueryRow(ctx, `select $1::timestamptz - clock_timestamp()`, at).Scan(&left); err != nil {
		return 0, fmt.Errorf("how long until %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	return left, nil
}

// Ahead counts the leases that have something due at the same instant as that lease, and come first. They are counted
// as they are now: others may come and go.
func (s *Store) Ahead(ctx context.Context, id uuid.UUID, at time.Time) (int, error) {
	n := 0
	err := s.pool.QueryRow(ctx, `
		select count(*)
		from event
		where status = 'UNDONE' and event_type <> 'before_end_lease' and at = $1 and lease_id < $2`, at, id).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("who is due at the same instant as lease %s: %w", id, err)
	}
	return n, nil
}

// beginDue enters the steps that are due for some leases that nobody else is at work on.
func (s *Store) beginDue(ctx context.Context, atOnce int) (begun []Begun, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		begun = nil
		ids, err := lockDue(ctx, tx, atOnce)
		if err != nil || len(ids) == 0 {
			return err
		}
		leases, err := readLeases(ctx, tx, `id = any($1)`, ids)
		if err != nil {
			return err
		}
		now, err := clock(ctx, tx)
		if err != nil {
			return err
		}
		for _, was := range leases {
			due := lease.Next(was, now).Step
			if due != lease.Start && due != lease.End {
				continue
			}
			is, err := lease.Begin(was, due, now)
			if err != nil {
				return stale(err)
			}
			if err := saveLease(ctx, tx, was, is); err != nil {
				return err
			}
			begun = append(begun, Begun{is, due})
		}
		return nil
	})
	return begun, err
}

// lockDue locks leases at rest of which the start or the end is due, ends first. A start that waits for somebody to
// leave its hosts is not due.
func lockDue(ctx context.Context, tx pgx.Tx, atOnce int) ([]uuid.UUID, error) {
	rows, err := tx.Query(ctx, `
		select l.id
		from event e
		join lease l on l.id = e.lease_id
		where e.status = 'UNDONE' and e.event_type <> 'before_end_lease' and e.at <= now()
			and (e.event_type, l.status) in (('end_lease', 'ACTIVE'), ('start_lease', 'PENDING'))
			and l.delete_requested_at is null
			and (l.status = 'ACTIVE' or not exists (
				select from reservation r
				join host_allocation mine on mine.reservation_id = r.id
				join host_allocation theirs on theirs.host_id = mine.host_id and theirs.reservation_id <> mine.reservation_id
					and upper(theirs.during) <= lower(mine.during)
				where r.lease_id = l.id))
		order by e.event_type, e.at, l.id
		limit $1
		for update of l skip locked`, atOnce)
	if err != nil {
		return nil, fmt.Errorf("which leases are due: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("which leases are due: %w", err)
	}
	return ids, nil
}

// finishBegun gives the leases of which all is told what is theirs, or takes it, and leaves their steps. One that does not
// go well stays as it is, and its workflow hears of it.
func (s *Store) finishBegun(ctx context.Context, begun, told []Begun) (finished int, err error) {
	ids, steps := make([]uuid.UUID, len(begun)), map[uuid.UUID]lease.Step{}
	for i, b := range begun {
		ids[i] = b.ID
	}
	for _, b := range told {
		steps[b.ID] = b.Step
	}
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		finished = 0
		if _, err := tx.Exec(ctx, `select from lease where id = any($1) order by id for update`, ids); err != nil {
			return fmt.Errorf("lock leases: %w", err)
		}
		leases, err := readLeases(ctx, tx, `id = any($1)`, ids)
		if err != nil {
			return err
		}
		var left []contract.Nudge
		for _, was := range leases {
			err := fmt.Errorf("%w: not all is told about lease %s", ErrConflict, was.ID)
			if step, ok := steps[was.ID]; ok {
				err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return finishOne(ctx, tx, was, step) })
			}
			switch {
			case err == nil:
				finished++
			case ctx.Err() != nil:
				return err
			default:
				slog.DebugContext(ctx, "a step is left to the lease's own workflow", "lease", was.ID, "status", was.Status, "error", err)
				left = append(left, nudgeLease(was, false))
			}
		}
		return nudge(ctx, tx, left...)
	})
	return finished, err
}

func finishOne(ctx context.Context, tx pgx.Tx, was lease.Lease, step lease.Step) error {
	if was.Status.Stable() {
		return fmt.Errorf("%w: lease %s is %s already", ErrConflict, was.ID, was.Status)
	}
	for _, r := range was.Reservations {
		change := resources[r.Type].wire
		if step == lease.End {
			change = resources[r.Type].unwire
		}
		if err := change(ctx, tx, was, r); err != nil {
			return err
		}
	}
	_, err := finish(ctx, tx, was, step, nil)
	return err
}
