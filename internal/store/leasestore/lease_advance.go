package leasestore

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// advanceAtOnce is how many leases take a step together: enough that what they share costs little, and few enough that none
// of them waits for long between its begin and its end.
const advanceAtOnce = 50

// World is where the steps of leases mean something beyond the rows.
type World interface {
	// Bring brings begun steps there, and returns those of which that went well, with their marks.
	Bring(ctx context.Context, begun []Begun) []Begun
	// Retract takes back what was brought there of leases that were given up meanwhile.
	Retract(ctx context.Context, begun []Begun)
}

// Begun is a step of a lease that has begun.
type Begun struct {
	lease.Lease
	Step   lease.Step
	Claims []lease.CloudReservation     // what its reservations hold; none if nobody has to hear of it
	Marks  map[uuid.UUID]lease.CloudIDs // what the world calls them, by reservation
}

// AdvanceLeases starts or ends together some of the leases of which that is due, ends first: when many are due at one
// instant, whoever wakes first does it for all, in few transactions. An end comes after what should have come shortly
// before it. What somebody else is at work on is left to him.
// Between the begin of the steps and their end they are brought into the world, if there is one. What does not go well is
// left to the lease's own workflow, which is told and takes up what was begun. It returns how many have begun and how many
// have reached the end of their step.
func (s *Store) AdvanceLeases(ctx context.Context, w World) (begun, finished int, err error) {
	all, ready, err := s.beginDue(ctx, w != nil)
	if err != nil || len(all) == 0 {
		return 0, 0, err
	}
	well := ready
	if w != nil && len(ready) > 0 {
		well = w.Bring(ctx, ready)
	}
	finished, givenUp, err := s.finishBegun(ctx, all, well)
	// Some of what did not go well may be there too.
	if back := slices.DeleteFunc(ready, func(b Begun) bool { return !givenUp[b.ID] }); w != nil && len(back) > 0 {
		w.Retract(ctx, back)
	}
	return len(all), finished, err
}

// Until is how long that instant is away by the database's clock, which decides what is due; negative once it is over.
func (s *Store) Until(ctx context.Context, at time.Time) (time.Duration, error) {
	var left time.Duration
	if err := s.db.QueryRow(ctx, `select $1::timestamptz - clock_timestamp()`, at).Scan(&left); err != nil {
		return 0, fmt.Errorf("how long until %s: %w", at.UTC().Format(time.RFC3339Nano), err)
	}
	return left, nil
}

// Ahead counts, for leases of which something is due at an instant, those that have something due at the same instant and
// come first. They are counted as they are now: others may come and go.
func (s *Store) Ahead(ctx context.Context, due map[uuid.UUID]time.Time) (map[uuid.UUID]int, error) {
	if len(due) == 0 {
		return nil, nil
	}
	ids, instants := make([]uuid.UUID, 0, len(due)), make([]time.Time, 0, len(due))
	for id, at := range due {
		ids, instants = append(ids, id), append(instants, at)
	}
	rows, err := s.db.Query(ctx, `
		select lease_id, ahead
		from (
			select lease_id, at, rank() over (partition by at order by lease_id) - 1 as ahead
			from event
			where status = 'UNDONE' and event_type <> 'before_end_lease' and at = any($2::timestamptz[])) e
		join unnest($1::uuid[], $2::timestamptz[]) as due (id, instant) on due.id = lease_id and due.instant = at`, ids, instants)
	if err != nil {
		return nil, fmt.Errorf("who is due at the same instant: %w", err)
	}
	ahead := map[uuid.UUID]int{}
	var id uuid.UUID
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&id, &n}, func() error { ahead[id] = n; return nil }); err != nil {
		return nil, fmt.Errorf("who is due at the same instant: %w", err)
	}
	return ahead, nil
}

// beginDue enters the steps that are due for some leases that nobody else is at work on, and gives those that start what is
// theirs in inventory. Those of which that went well are ready for the world.
func (s *Store) beginDue(ctx context.Context, claimed bool) (begun, ready []Begun, err error) {
	err = s.inTx(ctx, func(tx *transaction) error {
		begun, ready = nil, nil
		ids, now, err := lockDue(ctx, tx)
		if err != nil || len(ids) == 0 {
			return err
		}
		leases, err := readLeases(ctx, tx, `id = any($1)`, ids)
		if err != nil {
			return err
		}
		var all []outcome
		for _, was := range leases {
			due := lease.Next(was, now).Step
			if !slices.Contains([]lease.Step{lease.StepStart, lease.StepBeforeEnd, lease.StepEnd}, due) {
				continue
			}
			is, err := lease.BeginStep(was, due, now)
			if err != nil {
				return stale(err)
			}
			all = append(all, outcome{was: was, is: is, step: due})
			begun = append(begun, Begun{Lease: is, Step: due})
		}
		if len(all) == 0 {
			return nil
		}
		if err := saveLeases(ctx, tx, all...); err != nil {
			return err
		}
		ready, err = together(ctx, tx, begun, wireBegun)
		if err == nil && claimed {
			err = claimBegun(ctx, tx, ready)
		}
		return err
	})
	return begun, ready, err
}

// wireBegun makes inventory say what the leases have that start.
func wireBegun(ctx context.Context, tx *transaction, begun []Begun) error {
	var starting []holder
	for _, b := range begun {
		if b.Step == lease.StepStart {
			starting = append(starting, holders(b.Lease)...)
		}
	}
	return wireAll(ctx, tx, starting...)
}

func claimBegun(ctx context.Context, tx *transaction, begun []Begun) error {
	var all []holder
	for _, b := range begun {
		all = append(all, holders(b.Lease)...)
	}
	claims, err := claimsOf(ctx, tx, all)
	if err != nil {
		return err
	}
	for i := range begun {
		for _, r := range begun[i].Reservations {
			begun[i].Claims = append(begun[i].Claims, claims[r.ID])
		}
	}
	return nil
}

// together does something for all at once. If that fails, it is done for each half alone, and so on, until it is known for
// which it does not go well. It returns the others.
func together[T any](ctx context.Context, tx *transaction, all []T, do func(context.Context, *transaction, []T) error) (well []T, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	err = tx.savepoint(ctx, func(tx *transaction) error { return do(ctx, tx, all) })
	switch {
	case err == nil:
		return all, nil
	case ctx.Err() != nil || db.Transient(err):
		return nil, err
	case len(all) == 1:
		slog.DebugContext(ctx, "a step is left to the lease's own workflow", "error", err)
		return nil, nil
	}
	half := len(all) / 2
	for _, part := range [][]T{all[:half:half], all[half:]} {
		some, err := together(ctx, tx, part, do)
		if err != nil {
			return nil, err
		}
		well = append(well, some...)
	}
	return well, nil
}

// lockDue locks some leases at rest of which the start or the end is due, ends first, and tells what time it is. A start
// that waits for somebody to leave its hosts is not due, nor an end whose warning is on its way.
func lockDue(ctx context.Context, tx *transaction) (ids []uuid.UUID, now time.Time, err error) {
	rows, err := tx.Query(ctx, `
		select l.id, clock_timestamp()
		from event e
		join lease l on l.id = e.lease_id
		where e.status = 'UNDONE' and e.event_type <> 'before_end_lease' and e.at <= now()
			and (e.event_type, l.status) in (('end_lease', 'ACTIVE'), ('end_lease', 'ERROR'), ('start_lease', 'PENDING'))
			and l.delete_requested_at is null
			and not exists (
				select from event b
				where b.lease_id = l.id and b.event_type = 'before_end_lease' and b.status = 'IN_PROGRESS')
			and (l.status <> 'PENDING' or not exists (
				select from reservation r
				join host_allocation mine on mine.reservation_id = r.id
				join host_allocation theirs on theirs.host_id = mine.host_id and theirs.reservation_id <> mine.reservation_id
					and upper(theirs.during) <= lower(mine.during)
				where r.lease_id = l.id))
		order by e.event_type, e.at, l.id
		limit $1
		for update of l skip locked`, advanceAtOnce)
	if err != nil {
		return nil, now, fmt.Errorf("which leases are due: %w", err)
	}
	var id uuid.UUID
	if _, err := pgx.ForEachRow(rows, []any{&id, &now}, func() error { ids = append(ids, id); return nil }); err != nil {
		return nil, now, fmt.Errorf("which leases are due: %w", err)
	}
	return ids, now, nil
}

// finishBegun leaves the steps that are ready, with what the leases are given or leave. One that does not go well stays as
// it is, and its workflow hears of it. It tells which of those that began to start were given up meanwhile.
func (s *Store) finishBegun(ctx context.Context, begun, ready []Begun) (finished int, givenUp map[uuid.UUID]bool, err error) {
	ids := make([]uuid.UUID, len(begun))
	for i, b := range begun {
		ids[i] = b.ID
	}
	err = s.inTx(ctx, func(tx *transaction) error {
		finished, givenUp = 0, map[uuid.UUID]bool{}
		if _, err := tx.Exec(ctx, `select from lease where id = any($1) order by id for update`, ids); err != nil {
			return fmt.Errorf("lock leases: %w", err)
		}
		leases, err := readLeases(ctx, tx, `id = any($1)`, ids)
		if err != nil {
			return err
		}
		now := map[uuid.UUID]lease.Lease{}
		for _, l := range leases {
			now[l.ID] = l
		}
		for _, b := range begun {
			was := now[b.ID]
			givenUp[b.ID] = b.Step == lease.StepStart && (was.DeleteRequested || was.Status != lease.Starting && was.Status != lease.Active)
		}
		var all []ended
		for _, b := range ready {
			was := now[b.ID]
			is, err := lease.FinishStep(was, b.Step, nil)
			if err == nil && !givenUp[b.ID] && (b.Step == lease.StepBeforeEnd || !was.Status.Stable()) {
				all = append(all, ended{outcome{was: was, is: is, step: b.Step}, b.Marks})
			}
		}
		well, err := together(ctx, tx, all, finishAll)
		if err != nil {
			return err
		}
		finished = len(well)
		for _, e := range well {
			delete(now, e.was.ID)
		}
		var left []contract.Nudge
		for _, id := range ids {
			if l, is := now[id]; is {
				left = append(left, nudgeLease(l, false))
			}
		}
		return outbox.Enqueue(ctx, tx, left...)
	})
	return finished, givenUp, err
}

// ended is a step at its end, with what the world calls the lease's reservations.
type ended struct {
	outcome
	marks map[uuid.UUID]lease.CloudIDs
}

func finishAll(ctx context.Context, tx *transaction, all []ended) error {
	batch, outcomes := &pgx.Batch{}, make([]outcome, len(all))
	for i, e := range all {
		outcomes[i] = e.outcome
		for _, r := range e.was.Reservations {
			if m, is := e.marks[r.ID]; is {
				queueMark(batch, r.ID, m)
			}
		}
	}
	if batch.Len() > 0 {
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("mark reservations: %w", err)
		}
	}
	return conclude(ctx, tx, outcomes)
}
