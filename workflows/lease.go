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
	reporter *statusReporter
	changed  workflow.ReceiveChannel
}

// Lease starts and ends a lease at the second of its start and end dates. A deletion takes precedence over every
// other step. The workflow ends when no further step can become due. A later change of the row starts it again.
func Lease(ctx workflow.Context, in contract.Input) error {
	reporter, err := newStatusReporter(ctx, contract.LeaseID(in.Key))
	if err != nil {
		return err
	}
	r := &leaseRun{reporter: reporter, changed: changedSignals(ctx)}
	for handled := 0; ; handled++ {
		handled += discardAll(r.changed)
		if shouldContinueAsNew(ctx, handled) {
			return workflow.NewContinueAsNewError(ctx, contract.Lease, in)
		}
		var l lease.Lease
		if err := workflow.ExecuteLocalActivity(localDatabase(ctx, "read the lease"), activities.ReadLease, in.Key).Get(ctx, &l); err != nil {
			return ignoreNotFound(err)
		}
		due := lease.Next(l, workflow.Now(ctx))
		if err := reporter.report(ctx, whyLease(l, workflow.Now(ctx))); err != nil {
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

// performStep performs the step that is due. It first runs an activity that performs the due steps of all leases. If
// that activity has advanced no lease, the workflow performs its own lease's step alone.
func (r *leaseRun) performStep(ctx workflow.Context, l lease.Lease, step lease.Step) error {
	if l.Status.Stable() && (step == lease.StepStart || step == lease.StepEnd) {
		if advanced, err := advanceLeases(ctx, string(step), workflow.Now(ctx)); err != nil || advanced > 0 {
			return err
		}
	}
	return r.performStepAlone(ctx, l, step)
}

// advanceLeases performs the steps of all leases that are due at the given time. Temporal fires timers of the same
// instant one after another, so the first workflow that wakes up does the work of the others.
func advanceLeases(ctx workflow.Context, what string, at time.Time) (advanced int, err error) {
	err = workflow.ExecuteLocalActivity(localDatabase(ctx, what+" of all leases that are due"), activities.AdvanceLeases, at).Get(ctx, &advanced)
	return advanced, err
}

// performStepAlone performs one step of one lease: it enters the transitional status, performs the step for each
// reservation, and enters the stable status. If another writer has changed the row first, it returns; the next read
// of the row decides what is due.
func (r *leaseRun) performStepAlone(ctx workflow.Context, l lease.Lease, step lease.Step) error {
	if step == lease.StepResync {
		return r.resync(ctx, l)
	}
	name := displayName(l)
	err := workflow.ExecuteLocalActivity(localDatabase(ctx, fmt.Sprintf("begin %s of %s", step, name)), activities.BeginLease, l.ID, step).Get(ctx, &l)
	if err != nil {
		return r.ignoreConflict(ctx, err)
	}
	failed, err := r.runForEach(ctx, l, reservationTaskFor(l, step, workflow.Now(ctx)))
	if err != nil {
		return r.ignoreConflict(ctx, err)
	}
	err = workflow.ExecuteLocalActivity(localDatabase(ctx, fmt.Sprintf("finish %s of %s", step, name)), activities.FinishLease, l.ID, step, failed).Get(ctx, nil)
	// Before this version, a failed start kept its resources until the lease's end. The history lease-failed.json was
	// recorded before it.
	if err == nil && step == lease.StepStart && len(failed) > 0 && workflow.GetVersion(ctx, "clear a failed start", workflow.DefaultVersion, 1) == 1 {
		_, err = r.runForEach(ctx, l, reservationTaskFor(l, lease.StepEnd, workflow.Now(ctx)))
	}
	return r.ignoreConflict(ctx, err)
}

// resync updates the cloud after the resources of an active lease have changed. If the update fails, it is repeated
// later.
func (r *leaseRun) resync(ctx workflow.Context, l lease.Lease) error {
	failed, err := r.runForEach(ctx, l, reservationTaskFor(l, lease.StepResync, workflow.Now(ctx)))
	if err == nil && len(failed) > 0 {
		err = waitUntil(ctx, lease.NextEventTime(l, workflow.Now(ctx).Add(lease.RecheckInterval)), "retry the update of the cloud", r.changed)
	}
	return r.ignoreConflict(ctx, err)
}

// conflictPause is the pause between a conflict and the next read of the row. A change of the row ends the pause
// earlier.
const conflictPause = time.Second

// ignoreConflict ignores errors which say that the row is no longer in the state in which the step found it. After a
// pause, the workflow reads the row again.
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
		w.Waiting = append(w.Waiting, contract.Waiting{For: wait.For, Since: &wait.Since, Deadline: wait.Deadline})
	}
	return w
}

// displayName returns a lease's name, or its ID if it has no name.
func displayName(l lease.Lease) string {
	if l.Name == "" {
		return l.ID.String()
	}
	return l.Name
}
