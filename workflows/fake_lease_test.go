package workflows_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/lease"
)

var leaseID = uuid.MustParse("0d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e2222")

// fakeLease replaces the activities of a lease. fakeLease applies the rules of package lease to one lease in
// memory, stores which reservations are provisioned, and logs each change with the time of the change in
// seconds.
type fakeLease struct {
	mu            sync.Mutex
	now           func() time.Time
	created       time.Time
	lease         lease.Lease
	deleted       bool
	reads         int // number of reads of the lease's row
	databaseDown  bool
	provisioned   map[uuid.UUID]bool
	conflicts     int   // number of BeginLease calls that still return a conflict
	provisionErr  error // if set, provisioning fails with this error, which is not retried
	realClock     bool  // the test uses the real clock, so AdvanceLeases waits
	cloudFailures int   // number of calls to Nova that still fail
	cloudAttempts int   // number of calls to Nova so far
	hangs         bool  // provisioning blocks until it is cancelled
	releaseFails  int   // number of calls to release a reservation that still fail
	log           []string
}

func newFakeLease(now func() time.Time, startIn, endIn time.Duration) *fakeLease {
	began := now()
	event := func(typ lease.EventType, in time.Duration) lease.Event {
		return lease.Event{
			ID:     uuid.New(),
			Type:   typ,
			At:     began.Add(in),
			Status: lease.EventUndone,
		}
	}
	return &fakeLease{
		now:         now,
		created:     began,
		provisioned: map[uuid.UUID]bool{},
		lease: lease.Lease{
			ID:      leaseID,
			Name:    "gold",
			Status:  lease.Pending,
			StartAt: began.Add(startIn),
			EndAt:   began.Add(endIn),
			Reservations: []lease.Reservation{
				{
					ReservationDraft: lease.ReservationDraft{Type: lease.PhysicalHost},
					ID:               uuid.New(),
					Status:           lease.ReservationPending,
				},
			},
			Events: []lease.Event{event(lease.StartLease, startIn), event(lease.EndLease, endIn)},
		},
	}
}

// steppedLease contains a fake lease and a test environment that skips the time between two events.
type steppedLease struct {
	*fakeLease
	env *testsuite.TestWorkflowEnvironment
}

func newSteppedLease(startIn, endIn time.Duration) steppedLease {
	env := newTestEnvironment()
	w := newFakeLease(env.Now, startIn, endIn)
	activities.Register(env, w.functions())
	return steppedLease{w, env}
}

func (w steppedLease) run(t *testing.T) {
	t.Helper()
	w.env.ExecuteWorkflow(contract.Lease, contract.Input{Key: leaseID.String()})
	if err := w.env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}

// expectLog compares the fake lease's log with the expected lines.
func (w *fakeLease) expectLog(t *testing.T, want []string) {
	t.Helper()
	if d := cmp.Diff(want, w.log); d != "" {
		t.Error(d)
	}
}

func (w *fakeLease) logf(format string, args ...any) {
	w.log = append(w.log,
		fmt.Sprintf("%s: ", w.now().Sub(w.created).Round(time.Second))+fmt.Sprintf(format, args...))
}

func (w *fakeLease) ReadLease(context.Context, string) (lease.Lease, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	if w.databaseDown {
		return lease.Lease{}, errDatabaseAway
	}
	if w.deleted {
		return lease.Lease{}, temporal.NewNonRetryableApplicationError("the row is deleted",
			activities.NotFound, nil)
	}
	return w.lease, nil
}

// AdvanceLeases performs a whole start or end of the lease: AdvanceLeases begins the step, provisions or
// releases the reservations, and finishes the step. If the test has set a fault, AdvanceLeases performs no
// step, so the workflow performs the step with separate activities. If the test uses the real clock,
// AdvanceLeases first waits until the time `at`.
func (w *fakeLease) AdvanceLeases(ctx context.Context, at time.Time) (int, error) {
	if w.realClock {
		time.Sleep(at.Sub(w.now()))
	}
	w.mu.Lock()
	faulty := w.releaseFails > 0 || w.conflicts > 0 || w.provisionErr != nil || w.cloudFailures > 0 || w.hangs
	due, l := lease.Next(w.lease, w.now()), w.lease
	w.mu.Unlock()
	if faulty || due.Step != lease.StepStart && due.Step != lease.StepEnd {
		return 0, nil
	}
	if _, err := w.BeginLease(ctx, l.ID, due.Step); err != nil {
		return 0, err
	}
	for _, r := range l.Reservations {
		call := w.ProvisionReservation
		if due.Step == lease.StepEnd {
			call = w.ReleaseReservation
		}
		if err := call(ctx, r.ID); err != nil {
			return 0, err
		}
	}
	return 1, w.FinishLease(ctx, l.ID, due.Step, nil)
}

func (w *fakeLease) BeginLease(_ context.Context, _ uuid.UUID, step lease.Step) (lease.Lease, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conflicts > 0 {
		w.conflicts--
		return w.lease, temporal.NewNonRetryableApplicationError("another writer was faster",
			activities.Conflict, nil)
	}
	if step == lease.StepExpire {
		l, err := lease.Expire(w.lease, w.now())
		if err != nil {
			return l, temporal.NewNonRetryableApplicationError(err.Error(), activities.Conflict, nil)
		}
		w.lease = l
		w.logf("expired")
		return l, nil
	}
	l, err := lease.BeginStep(w.lease, step, w.now())
	if err != nil {
		return l, temporal.NewNonRetryableApplicationError(err.Error(), activities.Conflict, nil)
	}
	w.lease = l
	w.logf("%s", l.Status)
	return l, nil
}

// callCloud simulates one call to Nova. If Nova hangs and the parameter `mayHang` is true, callCloud blocks
// in a regular activity but fails in a local activity, because a local activity that blocks would block the
// workflow task.
func (w *fakeLease) callCloud(ctx context.Context, mayHang bool) error {
	w.mu.Lock()
	w.cloudAttempts++
	hangs := mayHang && w.hangs
	hang := hangs && !activity.GetInfo(ctx).IsLocalActivity
	w.cloudFailures--
	fails := w.cloudFailures >= 0 || hangs
	w.mu.Unlock()
	if hang {
		for ctx.Err() == nil && w.cloudHangs() {
			activity.RecordHeartbeat(ctx)
			time.Sleep(10 * time.Millisecond)
		}
		return ctx.Err()
	}
	if fails {
		return temporal.NewApplicationError("Nova answered 503", activities.BackendError)
	}
	return nil
}

func (w *fakeLease) cloudHangs() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hangs
}

func (w *fakeLease) ProvisionReservation(ctx context.Context, id uuid.UUID) error {
	if err := w.callCloud(ctx, true); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.provisionErr != nil {
		return w.provisionErr
	}
	w.provisioned[id] = true
	if r := &w.lease.Reservations[0]; r.CloudOutdated() {
		w.lease.Reservations = slices.Clone(w.lease.Reservations)
		w.lease.Reservations[0].CloudRevision = r.Revision
		w.logf("Nova has revision %d", r.Revision)
	}
	return nil
}

func (w *fakeLease) ReleaseReservation(ctx context.Context, id uuid.UUID) error {
	w.mu.Lock()
	w.releaseFails--
	fails := w.releaseFails >= 0
	w.mu.Unlock()
	if fails {
		return temporal.NewApplicationErrorWithOptions("Nova answered 500", activities.BackendError,
			temporal.ApplicationErrorOptions{Details: []any{lease.PartyNova}})
	}
	if err := w.callCloud(ctx, false); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.provisioned, id)
	return nil
}

func (w *fakeLease) RunBeforeEndAction(ctx context.Context, _ uuid.UUID) error {
	if err := w.callCloud(ctx, false); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logf("snapshots are created")
	return nil
}

func (w *fakeLease) FinishLease(
	_ context.Context,
	_ uuid.UUID,
	step lease.Step,
	reasons map[string]string,
) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	failed := map[uuid.UUID]string{}
	for id, reason := range reasons {
		failed[uuid.MustParse(id)] = reason
	}
	l, err := lease.FinishStep(w.lease, step, failed)
	if err != nil {
		return temporal.NewNonRetryableApplicationError(err.Error(), activities.Conflict, nil)
	}
	if step == lease.StepClear || step == lease.StepEnd {
		l.Reservations = slices.Clone(l.Reservations)
		for i := range l.Reservations {
			if r := &l.Reservations[i]; lease.ReleasesHosts(step, r.ID, failed) {
				r.Hosts = nil
			}
		}
	}
	w.lease = l
	if step == lease.StepDelete {
		w.deleted = true
		w.logf("deleted with %d provisioned", len(w.provisioned))
		return nil
	}
	w.logf("%s with %d provisioned", l.Status, len(w.provisioned))
	return nil
}

// functions returns the fake activities by registered name.
func (w *fakeLease) functions() map[string]any {
	return map[string]any{
		activities.ReadLease:            w.ReadLease,
		activities.AdvanceLeases:        w.AdvanceLeases,
		activities.BeginLease:           w.BeginLease,
		activities.FinishLease:          w.FinishLease,
		activities.ProvisionReservation: w.ProvisionReservation,
		activities.ReleaseReservation:   w.ReleaseReservation,
		activities.RunBeforeEndAction:   w.RunBeforeEndAction,
	}
}
