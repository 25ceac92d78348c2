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

// advanceBatchSize is the maximum number of leases per round of the lease sweep. With a larger batch, more
// leases share a transaction; with a smaller batch, the first lease of the batch is finished sooner.
const advanceBatchSize = 50

// StartedStep is a step of a lease (the start, the before-end action or the end) that has begun, together
// with the lease. The database already says that the step is in progress.
type StartedStep struct {
	lease.Lease
	Step lease.Step
	// one per reservation; empty if the parameter `withCloudReservations` of BeginDueLeases is false
	CloudReservations []lease.CloudReservation
	// IDs that Nova assigned, by reservation; set by the caller
	CloudIDs map[uuid.UUID]lease.CloudIDs
}

// BeginDueLeases begins the due steps of at most advanceBatchSize leases in one transaction. If more leases
// are due, their projects take turns, and within a turn ends have priority over starts. BeginDueLeases
// allocates the resources of the starting leases in Placement, and skips leases that another transaction has
// locked. The result `started` contains all steps that BeginDueLeases has begun. The result `ready` contains
// the steps that the caller can now apply at Nova and Neutron and then finish. If a lease's resources cannot
// be allocated in Placement, the lease's step is only in `started`. If `withCloudReservations` is true, each
// step in `ready` also contains the data about its reservations that Nova and Neutron need.
func (s *Store) BeginDueLeases(
	ctx context.Context,
	withCloudReservations bool,
) (started, ready []StartedStep, err error) {
	err = s.inTx(ctx, func(tx *transaction) error {
		started, ready = nil, nil
		ids, now, err := lockDueLeases(ctx, tx)
		if err != nil || len(ids) == 0 {
			return err
		}
		leases, err := readLeases(ctx, tx, `id = any($1)`, ids)
		if err != nil {
			return err
		}
		if started, err = beginDueSteps(ctx, tx, leases, now); err != nil {
			return err
		}
		ready, err = bisect(ctx, tx, started, addStartingToInventory)
		if err == nil && withCloudReservations {
			err = addCloudReservations(ctx, tx, ready)
		}
		return err
	})
	return started, ready, err
}

// beginDueSteps begins the due step of each lease that has one: it saves that the step is in progress.
func beginDueSteps(
	ctx context.Context,
	tx *transaction,
	leases []lease.Lease,
	now time.Time,
) (started []StartedStep, err error) {
	var transitions []transition
	for _, before := range leases {
		step := lease.Next(before, now).Step
		if !slices.Contains([]lease.Step{lease.StepStart, lease.StepBeforeEnd, lease.StepEnd}, step) {
			continue
		}
		after, err := lease.BeginStep(before, step, now)
		if err != nil {
			return nil, asConflict(err)
		}
		transitions = append(transitions, transition{before: before, after: after, step: step})
		started = append(started, StartedStep{Lease: after, Step: step})
	}
	if len(transitions) == 0 {
		return nil, nil
	}
	if err := saveLeases(ctx, tx, transitions...); err != nil {
		return nil, err
	}
	return started, setBatchTimes(ctx, tx, started)
}

// addStartingToInventory allocates the resources of the starting leases in Placement.
func addStartingToInventory(ctx context.Context, tx *transaction, started []StartedStep) error {
	var starting []leaseReservation
	for _, s := range started {
		if s.Step == lease.StepStart {
			starting = append(starting, reservationsOf(s.Lease)...)
		}
	}
	return addToInventory(ctx, tx, starting...)
}

// addCloudReservations reads the data that Nova and Neutron need about the reservations of the steps, and
// sets the field CloudReservations of each step.
func addCloudReservations(ctx context.Context, tx *transaction, steps []StartedStep) error {
	var all []leaseReservation
	for _, s := range steps {
		all = append(all, reservationsOf(s.Lease)...)
	}
	cloud, err := readCloudReservations(ctx, tx, all)
	if err != nil {
		return err
	}
	for i := range steps {
		for _, r := range steps[i].Reservations {
			steps[i].CloudReservations = append(steps[i].CloudReservations, cloud[r.ID])
		}
	}
	return nil
}

// bisect calls `do` once with all items, in a savepoint. If the function `do` fails, bisect rolls back to the
// savepoint and does the same with each half of the items, until it has isolated the items for which `do`
// fails. The result `succeeded` of bisect contains the items for which `do` succeeded. bisect returns an
// error only if the database connection fails or ctx ends.
func bisect[T any](
	ctx context.Context,
	tx *transaction,
	items []T,
	do func(context.Context, *transaction, []T) error,
) (succeeded []T, err error) {
	if len(items) == 0 {
		return nil, nil
	}
	err = tx.savepoint(ctx, func(tx *transaction) error { return do(ctx, tx, items) })
	switch {
	case err == nil:
		return items, nil
	case ctx.Err() != nil || db.Transient(err):
		return nil, err
	case len(items) == 1:
		slog.DebugContext(
			ctx,
			"lease step failed in the sweep; the lease's own workflow retries the step", "error", err,
		)
		return nil, nil
	}
	half := len(items) / 2
	for _, part := range [][]T{items[:half:half], items[half:]} {
		some, err := bisect(ctx, tx, part, do)
		if err != nil {
			return nil, err
		}
		succeeded = append(succeeded, some...)
	}
	return succeeded, nil
}

// dueSQL is an SQL condition that the start or end of the lease l, with the event e, can be due.
const dueSQL = `(e.event_type, l.status) in (('end_lease', 'ACTIVE'), ('end_lease', 'ERROR'), ('start_lease', 'PENDING'))
	and l.delete_requested_at is null`

// undoneSQL is an SQL condition that the event e, a start or an end, is due and has not begun.
const undoneSQL = `e.status = 'UNDONE' and e.event_type <> 'before_end_lease' and e.at <= now()`

// dueLeasesSQL is the query for the leases that can be due, in the order of the turns of their projects.
const dueLeasesSQL = `
	select e.lease_id
	from (
		select e.lease_id, e.event_type, e.at,
			row_number() over (partition by l.project_id order by e.event_type, e.at, e.lease_id) as turn
		from event e
		join lease l on l.id = e.lease_id
		where ` + undoneSQL + ` and ` + dueSQL + `) e
	order by e.turn, e.event_type, e.at, e.lease_id`

// lockDueSQL is the query that locks those of some leases that are due and that no other lease blocks.
var lockDueSQL = blockersSQL(`select id from lease where id = any($1) and status = 'PENDING'`) + `
	select l.id, clock_timestamp()
	from unnest($1::uuid[]) with ordinality as due (id, place)
	join event e on e.lease_id = due.id
	join lease l on l.id = due.id
	where ` + undoneSQL + ` and ` + dueSQL + `
		and not exists (
			select from event b
			where b.lease_id = l.id and b.event_type = 'before_end_lease' and b.status = 'IN_PROGRESS')
		and (l.status <> 'PENDING' or l.id not in (select waiting_id from blocker))
	order by due.place
	limit $2
	for update of l skip locked`

// lockChunk is the number of due leases whose blockers one query looks for.
const lockChunk = 2 * advanceBatchSize

// lockDueLeases locks leases in a stable status whose start or end is due. It returns the database time and
// the IDs of these leases. The projects take turns, so that many due leases of one delay no other; within a
// turn and within a project, leases whose end is due come first. lockDueLeases does not lock a lease whose
// start waits until another lease releases a resource, or a lease whose end waits until its before-end
// action is complete. The search for the blockers of leases costs the most, so lockDueLeases examines the
// due leases in chunks, until it has found enough.
func lockDueLeases(ctx context.Context, tx *transaction) (ids []uuid.UUID, now time.Time, err error) {
	due, err := db.QueryAll(ctx, tx, pgx.RowTo[uuid.UUID], dueLeasesSQL)
	for chunk := range slices.Chunk(due, lockChunk) {
		if err != nil || len(ids) >= advanceBatchSize {
			break
		}
		var id uuid.UUID
		var rows pgx.Rows
		if rows, err = tx.Query(ctx, lockDueSQL, chunk, advanceBatchSize-len(ids)); err == nil {
			_, err = pgx.ForEachRow(rows, []any{&id, &now}, func() error { ids = append(ids, id); return nil })
		}
	}
	if err != nil {
		return nil, now, fmt.Errorf("lock due leases: %w", err)
	}
	return ids, now, nil
}

// FinishStartedLeases finishes the steps in `applied` in one transaction: it sets the leases to their stable
// statuses, releases the resources of ended leases, and saves the IDs of the objects that were created in
// Nova or Neutron. If FinishStartedLeases does not finish the step of a lease in `started`, the lease keeps
// its status, and FinishStartedLeases nudges the workflow of the lease. The result `abandoned` is true for
// the ID of each starting lease that was deleted, ended or failed after BeginDueLeases. If the start of a
// lease is abandoned, the caller must undo the calls to Nova and Neutron that it made for this lease.
func (s *Store) FinishStartedLeases(
	ctx context.Context,
	started, applied []StartedStep,
) (finished int, abandoned map[uuid.UUID]bool, err error) {
	ids := make([]uuid.UUID, len(started))
	for i, step := range started {
		ids[i] = step.ID
	}
	var succeeded []finishedStep
	err = s.inTx(ctx, func(tx *transaction) error {
		finished, abandoned = 0, nil
		current, err := lockLeases(ctx, tx, ids)
		if err != nil {
			return err
		}
		if err := clearBatchTimes(ctx, tx, ids); err != nil {
			return err
		}
		abandoned = abandonedStarts(started, current)
		succeeded, err = bisect(ctx, tx, finishableSteps(applied, current, abandoned), finishSteps)
		if err != nil {
			return err
		}
		finished = len(succeeded)
		for _, f := range succeeded {
			delete(current, f.before.ID)
		}
		var nudges []contract.Nudge
		for _, id := range ids {
			if l, unfinished := current[id]; unfinished {
				nudges = append(nudges, nudgeLease(l, false))
			}
		}
		return outbox.Enqueue(ctx, tx, nudges...)
	})
	if err == nil {
		for _, f := range succeeded {
			s.reportLateness(f.transition)
		}
	}
	return finished, abandoned, err
}

// lockLeases locks leases in the order of their IDs, and returns them by ID. The result of lockLeases does
// not contain IDs of leases that do not exist.
func lockLeases(ctx context.Context, tx *transaction, ids []uuid.UUID) (map[uuid.UUID]lease.Lease, error) {
	if _, err := tx.Exec(ctx, `select from lease where id = any($1) order by id for update`, ids); err != nil {
		return nil, fmt.Errorf("lock leases: %w", err)
	}
	leases, err := readLeases(ctx, tx, `id = any($1)`, ids)
	if err != nil {
		return nil, err
	}
	byID := map[uuid.UUID]lease.Lease{}
	for _, l := range leases {
		byID[l.ID] = l
	}
	return byID, nil
}

// abandonedStarts says, by lease ID, whether the start of the lease is abandoned. A start is abandoned if the
// lease was deleted, has ended or has failed since the start began.
func abandonedStarts(started []StartedStep, current map[uuid.UUID]lease.Lease) map[uuid.UUID]bool {
	abandoned := map[uuid.UUID]bool{}
	for _, s := range started {
		l := current[s.ID]
		abandoned[s.ID] = s.Step == lease.StepStart &&
			(l.DeleteRequested || l.Status != lease.Starting && l.Status != lease.Active)
	}
	return abandoned
}

// finishableSteps returns the transitions of the applied steps that can still be finished, because their
// leases are still in the transitional status.
func finishableSteps(
	applied []StartedStep,
	current map[uuid.UUID]lease.Lease,
	abandoned map[uuid.UUID]bool,
) []finishedStep {
	var all []finishedStep
	for _, s := range applied {
		before := current[s.ID]
		after, err := lease.FinishStep(before, s.Step, nil)
		if err == nil && !abandoned[s.ID] && (s.Step == lease.StepBeforeEnd || !before.Status.Stable()) {
			all = append(all,
				finishedStep{transition{before: before, after: after, step: s.Step}, s.CloudIDs})
		}
	}
	return all
}

// finishedStep is the transition of a lease to a stable status, with the IDs of the objects that were created
// in Nova or Neutron for the reservations of the lease.
type finishedStep struct {
	transition
	cloudIDs map[uuid.UUID]lease.CloudIDs
}

// finishSteps saves the transitions of finished steps, and the IDs of the objects that the steps have created
// in Nova and Neutron.
func finishSteps(ctx context.Context, tx *transaction, all []finishedStep) error {
	batch, transitions := &pgx.Batch{}, make([]transition, len(all))
	for i, f := range all {
		transitions[i] = f.transition
		for _, r := range f.before.Reservations {
			if ids, assigned := f.cloudIDs[r.ID]; assigned {
				queueCloudIDs(batch, r.ID, ids)
			}
		}
	}
	if batch.Len() > 0 {
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf(
				"save the IDs of the objects that reservations have in Nova and Neutron: %w",
				err,
			)
		}
	}
	return finishTransitions(ctx, tx, transitions)
}
