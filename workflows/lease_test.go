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
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/lease"
)

var leaseID = uuid.MustParse("0d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e2222")

// leaseWorld is the rows behind a lease: the pure rules over one lease, a calendar of what is wired, and a log of
// what happened on which second.
type leaseWorld struct {
	mu        sync.Mutex
	now       func() time.Time
	began     time.Time
	lease     lease.Lease
	gone      bool
	wired     map[uuid.UUID]bool
	conflicts int   // so many begins are refused
	wireErr   error // wiring fails for good
	awake     bool  // on a real clock
	log       []string
}

func newLeaseWorld(now func() time.Time, startIn, endIn time.Duration) *leaseWorld {
	began := now()
	event := func(typ lease.EventType, in time.Duration) lease.Event {
		return lease.Event{ID: uuid.New(), Type: typ, At: began.Add(in), Status: lease.Undone}
	}
	return &leaseWorld{now: now, began: began, wired: map[uuid.UUID]bool{}, lease: lease.Lease{
		ID: leaseID, Name: "gold", Status: lease.Pending, StartAt: began.Add(startIn), EndAt: began.Add(endIn),
		Reservations: []lease.Reservation{{ReservationDraft: lease.ReservationDraft{Type: lease.PhysicalHost}, ID: uuid.New(), Status: lease.ReservationPending}},
		Events:       []lease.Event{event(lease.StartLease, startIn), event(lease.EndLease, endIn)},
	}}
}

// leaseStory is a lease's world and the stepped clock on which its workflow runs.
type leaseStory struct {
	*leaseWorld
	env *testsuite.TestWorkflowEnvironment
}

func newLeaseStory(startIn, endIn time.Duration) leaseStory {
	env := steppedClock()
	w := newLeaseWorld(env.Now, startIn, endIn)
	env.RegisterActivity(w)
	return leaseStory{w, env}
}

func (w leaseStory) run(t *testing.T) {
	t.Helper()
	w.env.ExecuteWorkflow(contract.Lease, contract.Input{Key: leaseID.String()})
	if err := w.env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}

func (w *leaseWorld) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%s: ", w.now().Sub(w.began).Round(time.Second))+fmt.Sprintf(format, args...))
}

func (w *leaseWorld) Lease(context.Context, string) (lease.Lease, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return lease.Lease{}, temporal.NewNonRetryableApplicationError("gone", activities.NotFound, nil)
	}
	return w.lease, nil
}

// AdvanceLeases takes a whole step, unless the first begins are refused or wiring fails. On a real clock it waits for
// the instant; a stepped one stands still meanwhile.
func (w *leaseWorld) AdvanceLeases(ctx context.Context, at time.Time) (int, error) {
	if w.awake {
		time.Sleep(at.Sub(w.now()))
	}
	w.mu.Lock()
	apart, due, l := w.conflicts > 0 || w.wireErr != nil, lease.Next(w.lease, w.now()), w.lease
	w.mu.Unlock()
	if apart || due.Step != lease.Start && due.Step != lease.End {
		return 0, nil
	}
	if _, err := w.BeginLease(ctx, l.ID, due.Step); err != nil {
		return 0, err
	}
	for _, r := range l.Reservations {
		wire := w.WireReservation
		if due.Step == lease.End {
			wire = w.UnwireReservation
		}
		if err := wire(ctx, r.ID); err != nil {
			return 0, err
		}
	}
	return 1, w.FinishLease(ctx, l.ID, due.Step, nil)
}

func (w *leaseWorld) BeginLease(_ context.Context, _ uuid.UUID, step lease.Step) (lease.Lease, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conflicts > 0 {
		w.conflicts--
		return w.lease, temporal.NewNonRetryableApplicationError("somebody was faster", activities.Conflict, nil)
	}
	l, err := lease.Begin(w.lease, step, w.now())
	if err != nil {
		return l, temporal.NewNonRetryableApplicationError(err.Error(), activities.Conflict, nil)
	}
	w.lease = l
	w.note("%s", l.Status)
	return l, nil
}

func (w *leaseWorld) WireReservation(_ context.Context, id uuid.UUID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wireErr == nil {
		w.wired[id] = true
	}
	return w.wireErr
}

func (w *leaseWorld) UnwireReservation(_ context.Context, id uuid.UUID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.wired, id)
	return nil
}

func (w *leaseWorld) FinishLease(_ context.Context, _ uuid.UUID, step lease.Step, reasons map[string]string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	failed := map[uuid.UUID]string{}
	for id, reason := range reasons {
		failed[uuid.MustParse(id)] = reason
	}
	l, err := lease.Finish(w.lease, step, failed)
	if err != nil {
		return temporal.NewNonRetryableApplicationError(err.Error(), activities.Conflict, nil)
	}
	w.lease = l
	if step == lease.Delete {
		w.gone = true
		w.note("deleted with %d wired", len(w.wired))
		return nil
	}
	w.note("%s with %d wired", l.Status, len(w.wired))
	return nil
}

func TestLeaseStartsAndEndsOnItsSecond(t *testing.T) {
	t.Parallel()
	w := newLeaseStory(time.Hour, 48*time.Hour)

	w.run(t)

	want := []string{"1h0m0s: STARTING", "1h0m0s: ACTIVE with 1 wired", "48h0m0s: TERMINATING", "48h0m0s: TERMINATED with 0 wired"}
	if d := cmp.Diff(want, w.log); d != "" {
		t.Error(d)
	}
}

func TestProlongedLeaseEndsAtItsNewTime(t *testing.T) {
	t.Parallel()
	w := newLeaseStory(time.Hour, 2*time.Hour)
	after(w.env, 90*time.Minute, func() {
		w.mu.Lock()
		w.lease.Events = slices.Clone(w.lease.Events)
		w.lease.Events[1].At = w.began.Add(5 * time.Hour)
		w.mu.Unlock()
		w.env.SignalWorkflow(contract.SignalChanged, nil)
	})

	w.run(t)

	want := []string{"1h0m0s: STARTING", "1h0m0s: ACTIVE with 1 wired", "5h0m0s: TERMINATING", "5h0m0s: TERMINATED with 0 wired"}
	if d := cmp.Diff(want, w.log); d != "" {
		t.Error(d)
	}
}

func TestDeletionWinsOverWaiting(t *testing.T) {
	t.Parallel()
	w := newLeaseStory(time.Hour, 48*time.Hour)
	after(w.env, 2*time.Hour, func() {
		w.mu.Lock()
		w.lease.DeleteRequested = true
		w.mu.Unlock()
		w.env.SignalWorkflow(contract.SignalChanged, nil)
	})

	w.run(t)

	want := []string{"1h0m0s: STARTING", "1h0m0s: ACTIVE with 1 wired", "2h0m0s: DELETING", "2h0m0s: deleted with 0 wired"}
	if d := cmp.Diff(want, w.log); d != "" {
		t.Error(d)
	}
}

func TestLeaseThatWasLeftStartingIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	w := newLeaseStory(-time.Minute, time.Hour)
	l, err := lease.Begin(w.lease, lease.Start, w.began)
	if err != nil {
		t.Fatal(err)
	}
	w.lease = l

	w.run(t)

	want := []string{"0s: STARTING", "0s: ACTIVE with 1 wired", "1h0m0s: TERMINATING", "1h0m0s: TERMINATED with 0 wired"}
	if d := cmp.Diff(want, w.log); d != "" {
		t.Error(d)
	}
}

func TestRefusedStepPausesInsteadOfSpinning(t *testing.T) {
	t.Parallel()
	w := newLeaseStory(time.Minute, time.Hour)
	w.conflicts = 3

	w.run(t)

	if len(w.log) == 0 || w.log[0] != "1m3s: STARTING" {
		t.Errorf("want the start 3 pauses late, got %v", w.log)
	}
}

func TestReservationThatCannotBeWiredEndsInErrorAndFreesItsHosts(t *testing.T) {
	t.Parallel()
	w := newLeaseStory(time.Minute, time.Hour)
	w.wireErr = temporal.NewNonRetryableApplicationError("the provider has no room", activities.Conflict, nil)

	w.run(t)

	want := []string{"1m0s: STARTING", "1m0s: ERROR with 0 wired", "1h0m0s: TERMINATING", "1h0m0s: ERROR with 0 wired"}
	if d := cmp.Diff(want, w.log); d != "" {
		t.Error(d)
	}
	if w.lease.Reservations[0].LastError == "" {
		t.Error("nobody can say why")
	}
}

func TestWaitingLeaseSaysUntilWhen(t *testing.T) {
	t.Parallel()
	w := newLeaseStory(time.Hour, 2*time.Hour)
	after(w.env, time.Minute, func() {
		why := ask(t, w.env)
		if why.State != "PENDING" || len(why.Waiting) != 1 || !why.Waiting[0].Deadline.Equal(w.began.Add(time.Hour)) {
			t.Errorf("want PENDING until the start, got %+v", why)
		}
	})

	w.run(t)
}
