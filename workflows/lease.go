package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/lease"
)

// leaseRun is one run of a Lease workflow.
type leaseRun struct {
	in       contract.Input
	reporter *statusReporter
	changed  workflow.ReceiveChannel
	handled  int // number of messages and reads of this run, except during steps
	// handledInSteps is the number of messages that the run has received while it retried a step.
	handledInSteps int
}

// Lease starts a lease at its start date and ends the lease at its end date, to the second. The
// deletion of a lease takes precedence over every other step. The workflow Lease ends when no further
// step of the lease can become due. A later change of the lease's row starts the workflow Lease again.
func Lease(ctx workflow.Context, in contract.Input) error {
	reporter, err := newStatusReporter(ctx, contract.LeaseID(in.Key))
	if err != nil {
		return err
	}
	r := &leaseRun{in: in, reporter: reporter, changed: changedSignals(ctx)}
	for ; ; r.handled++ {
		r.handled += discardAll(r.changed)
		if shouldContinueAsNew(ctx, r.handled) {
			return r.continueAsNew(ctx)
		}
		var l lease.Lease
		if err := r.runDatabaseWork(ctx, "read the lease", &l, activities.ReadLease, in.Key); err != nil {
			return ignoreNotFound(err)
		}
		due := lease.Next(l, workflow.Now(ctx))
		if err := reporter.report(ctx, whyLease(l, workflow.Now(ctx)), leaseAttributes(ctx, l)); err != nil {
			return err
		}
		switch due.Step {
		case lease.StepStop:
			if r.changed.Len() == 0 {
				return nil
			}
		case lease.StepWait:
			err = r.waitForStep(ctx, l, due.At)
		default:
			err = r.performStep(ctx, l, due.Step)
		}
		if err != nil {
			return err
		}
	}
}

func (r *leaseRun) continueAsNew(ctx workflow.Context) error {
	return workflow.NewContinueAsNewError(ctx, contract.Lease, r.in)
}

// isFull reports whether the run has received so many messages that it should interrupt the activity or timer
// for which it waits.
func (r *leaseRun) isFull(ctx workflow.Context) bool {
	return deliveryIsFull(ctx, r.handled+r.handledInSteps+r.changed.Len())
}

// runDatabaseWork runs an activity that needs only the database. If the run receives many messages while the
// database is unavailable, the workflow continues as new, and the new run reads the lease's row.
func (r *leaseRun) runDatabaseWork(
	ctx workflow.Context,
	summary string,
	result any,
	activity string,
	args ...any,
) error {
	err := runDatabaseWork(ctx, r.reporter,
		func() bool { return r.isFull(ctx) }, summary, result, activity, args...)
	if errors.Is(err, errInterrupted) {
		return r.continueAsNew(ctx)
	}
	return err
}

// performStep performs the step of the lease that is due. For a start or an end, performStep first runs the
// activity AdvanceLeases, which performs the due steps of all leases. If AdvanceLeases has performed no step,
// performStep performs the step of its own lease alone.
func (r *leaseRun) performStep(ctx workflow.Context, l lease.Lease, step lease.Step) error {
	if l.Status.Stable() && (step == lease.StepStart || step == lease.StepEnd || step == lease.StepExpire) {
		if advanced, err := r.advanceLeases(ctx, string(step), workflow.Now(ctx)); err != nil ||
			advanced > 0 {
			return err
		}
	}
	return r.performStepAlone(ctx, l, step)
}

// advanceLeases performs the steps of all leases that are due at the given time. Temporal fires timers of the
// same instant one after another, so the workflow whose timer fires first performs the steps of all leases
// that are due at this instant.
func (r *leaseRun) advanceLeases(ctx workflow.Context, what string, at time.Time) (advanced int, err error) {
	err = r.runDatabaseWork(ctx, what+" of all leases that are due", &advanced, activities.AdvanceLeases, at)
	return advanced, err
}

// performStepAlone performs one step of one lease: it sets the transitional status (for example STARTING),
// performs the step for each reservation, and sets the stable status (for example ACTIVE). If another writer
// has changed the lease's row first, performStepAlone returns, and the workflow reads the row again to find
// the step that is due.
func (r *leaseRun) performStepAlone(ctx workflow.Context, l lease.Lease, step lease.Step) error {
	switch step {
	case lease.StepResync:
		return r.resync(ctx, l)
	case lease.StepClear:
		return r.clear(ctx, l)
	}
	name := displayName(l)
	err := r.runDatabaseWork(ctx,
		fmt.Sprintf("begin %s of %s", step, name), &l, activities.BeginLease, l.ID, step)
	if err != nil {
		return r.ignoreConflict(ctx, err)
	}
	if step == lease.StepExpire {
		return nil // the activity has performed the whole step
	}
	failed, err := r.runForEach(ctx, l, r.resumedTask(l, step, workflow.Now(ctx)))
	if err != nil {
		return r.ignoreConflict(ctx, err)
	}
	err = r.runDatabaseWork(ctx,
		fmt.Sprintf("finish %s of %s", step, name), nil, activities.FinishLease, l.ID, step, failed)
	// a failed start must not keep resources until the end of the lease
	if err == nil && step == lease.StepStart && len(failed) > 0 {
		_, err = r.runForEach(ctx, l, reservationTaskFor(l, lease.StepEnd, workflow.Now(ctx)))
	}
	return r.ignoreConflict(ctx, err)
}

// resync updates Nova and Neutron after the resources of an active lease have changed. If the update fails,
// the workflow repeats the update later.
func (r *leaseRun) resync(ctx workflow.Context, l lease.Lease) error {
	failed, err := r.runForEach(ctx, l, r.resumedTask(l, lease.StepResync, workflow.Now(ctx)))
	if err == nil && len(failed) > 0 {
		err = waitUntil(ctx, lease.NextEventTime(l, workflow.Now(ctx).Add(lease.RecheckInterval)),
			"retry the update of Nova and Neutron", r.changed)
	}
	return r.ignoreConflict(ctx, err)
}

// clear removes the resources of a lease in ERROR from Nova, Neutron and Placement. The number of retries is
// not limited: after the time clearRound, the workflow reads the lease's row again and continues the removal.
func (r *leaseRun) clear(ctx workflow.Context, l lease.Lease) error {
	failed, err := r.runForEach(ctx, l, r.resumedTask(l, lease.StepClear, workflow.Now(ctx)))
	if err != nil {
		return r.ignoreConflict(ctx, err)
	}
	err = r.runDatabaseWork(ctx, "release the resources of "+displayName(l),
		nil, activities.FinishLease, l.ID, lease.StepClear, failed)
	if err == nil && len(failed) > 0 {
		err = waitUntil(ctx, lease.NextEventTime(l, workflow.Now(ctx).Add(lease.RecheckInterval)),
			"retry the removal of the resources", r.changed)
	}
	return r.ignoreConflict(ctx, err)
}

// conflictPause is the pause between a conflict and the next read of the row. A change of the lease's row
// ends the pause earlier.
const conflictPause = time.Second

// ignoreConflict ignores an error which says that another writer has changed the lease's row during the step.
// After a conflict, ignoreConflict waits for conflictPause, and then the workflow reads the lease's row
// again.
func (r *leaseRun) ignoreConflict(ctx workflow.Context, err error) error {
	if errors.Is(err, errSuperseded) {
		return nil
	}
	if hasType(err, activities.Conflict) {
		return waitUntil(ctx, workflow.Now(ctx).Add(conflictPause), "read the lease again", r.changed)
	}
	return ignoreNotFound(err)
}

// ignoreNotFound ignores the error that the row is deleted, because then no work is left.
func ignoreNotFound(err error) error {
	if hasType(err, activities.NotFound) {
		return nil
	}
	return err
}

func whyLease(l lease.Lease, now time.Time) contract.Why {
	sentence, waits := lease.Explain(l, now)
	w := contract.Why{State: string(l.Status), Sentence: "Lease " + displayName(l) + " is " + sentence}
	for _, wait := range waits {
		w.Waiting = append(w.Waiting,
			contract.Waiting{For: wait.For, Since: &wait.Since, Deadline: wait.Deadline})
	}
	return w
}

// leaseAttributes returns the search attributes of the lease. leaseAttributes returns nil if the workflow has
// them already.
func leaseAttributes(ctx workflow.Context, l lease.Lease) *contract.Attributes {
	a := &contract.Attributes{Project: l.Project, Resource: "lease"}
	if len(objectUpdates(workflow.GetTypedSearchAttributes(ctx), a)) == 0 {
		return nil
	}
	return a
}

// displayName returns the name of the lease, or the ID of the lease if the lease has no name.
func displayName(l lease.Lease) string {
	if l.Name == "" {
		return l.ID.String()
	}
	return l.Name
}
