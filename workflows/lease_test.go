package workflows_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
	unwilling int   // so many attempts at the cloud are in vain
	attempts  int   // at the cloud
	hang      bool  // what wires in the cloud ends with its cancellation
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

// logged holds what happened against what should have.
func (w *leaseWorld) logged(t *testing.T, want []string) {
	t.Helper()
	if d := cmp.Diff(want, w.log); d != "" {
		t.Error(d)
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
	apart, due, l := w.conflicts > 0 || w.wireErr != nil || w.unwilling > 0 || w.hang, lease.Next(w.lease, w.now()), w.lease
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

// cloud is one attempt at it. Nobody waits for long within a workflow's own task.
func (w *leaseWorld) cloud(ctx context.Context, hangs bool) error {
	w.mu.Lock()
	w.attempts++
	hang := hangs && !activity.GetInfo(ctx).IsLocalActivity
	w.unwilling--
	unwilling := w.unwilling >= 0 || hangs
	w.mu.Unlock()
	if hang {
		for ctx.Err() == nil {
			activity.RecordHeartbeat(ctx)
			time.Sleep(10 * time.Millisecond)
		}
		return ctx.Err()
	}
	if unwilling {
		return temporal.NewApplicationError("the cloud answered 503", activities.Unwilling)
	}
	return nil
}

func (w *leaseWorld) WireReservation(ctx context.Context, id uuid.UUID) error {
	if err := w.cloud(ctx, w.hang); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wireErr != nil {
		return w.wireErr
	}
	w.wired[id] = true
	if r := &w.lease.Reservations[0]; r.Outdated() {
		w.lease.Reservations = slices.Clone(w.lease.Reservations)
		w.lease.Reservations[0].Shaped = r.Shape
		w.note("shape %d is told", r.Shape)
	}
	return nil
}

func (w *leaseWorld) UnwireReservation(ctx context.Context, id uuid.UUID) error {
	if err := w.cloud(ctx, false); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.wired, id)
	return nil
}

func (w *leaseWorld) PrepareEnd(ctx context.Context, _ uuid.UUID) error {
	if err := w.cloud(ctx, false); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("images are made")
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
	w.logged(t, want)
}

// TestLeaseBehindManyComesLater: the first take what is due for all, so that the others look at even intervals afterwards.
func TestLeaseBehindManyComesLater(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[int]string{0: "1h0m0s", 3: "1h0m0s", 4: "1h0m6s", 100: "1h0m10s", 1000: "1h0m29s", 10000: "1h2m43s"} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			t.Parallel()
			w := newLeaseStory(time.Hour, 48*time.Hour)
			w.lease.Ahead = ahead

			w.run(t)

			if got := w.log[0]; got != want+": STARTING" {
				t.Errorf("%s, not at %s", got, want)
			}
		})
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
	w.logged(t, want)
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
	w.logged(t, want)
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
	w.logged(t, want)
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
	w.logged(t, want)
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

func TestUnwillingCloudIsAskedAgain(t *testing.T) {
	t.Parallel()
	w := newLeaseStory(time.Minute, time.Hour)
	w.unwilling = 4

	w.run(t)

	// Pauses of 0.5, 1 and 2 seconds follow the first attempts.
	want := []string{"1m0s: STARTING", "1m4s: ACTIVE with 1 wired", "1h0m0s: TERMINATING", "1h0m0s: TERMINATED with 0 wired"}
	w.logged(t, want)
}

func TestCloudThatStaysUnwillingFailsTheLeaseAndIsClearedBeforeItsEnd(t *testing.T) {
	t.Parallel()
	w := newLeaseStory(time.Minute, time.Hour)
	w.unwilling = 1_000_000
	after(w.env, 30*time.Minute, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.lease.Status != lease.Error || w.lease.Reservations[0].LastError != "the cloud answered 503" {
			t.Errorf("%+v", w.lease)
		}
		w.unwilling, w.attempts = 0, 0
	})

	w.run(t)

	if len(w.log) < 2 || w.log[0] != "1m0s: STARTING" || w.log[len(w.log)-1] != "1h0m0s: ERROR with 0 wired" || w.attempts != 1 {
		t.Errorf("%d attempts after the cloud came back: %v", w.attempts, w.log)
	}
}

func TestDeletionWinsOverAStartThatHangs(t *testing.T) {
	t.Parallel()
	w := newLeaseWorld(time.Now, -time.Second, time.Hour)
	w.hang = true
	s := newStage(t, contract.Lease, contract.LeaseID(leaseID.String()), w)
	if why := s.until(string(lease.Starting)); why.LastError != "the cloud answered 503" || len(why.Waiting) != 1 || why.Waiting[0].For != "cloud" {
		t.Errorf("nobody can say for whom it waits: %+v", why)
	}
	w.mu.Lock()
	w.lease.DeleteRequested = true
	w.mu.Unlock()
	s.signal(contract.SignalChanged, nil)
	s.finish("lease-hung", "")
	if !w.gone || slices.ContainsFunc(w.log, func(line string) bool { return strings.Contains(line, "ERROR") }) {
		t.Errorf("gone %t: %v", w.gone, w.log)
	}
}

func TestCloudHearsWhatAnActiveLeaseBecomes(t *testing.T) {
	t.Parallel()
	w := newLeaseStory(time.Minute, 2*time.Hour)
	w.lease.Reservations[0].BeforeEnd = "snapshot"
	w.lease.Events = append(w.lease.Events, lease.Event{ID: uuid.New(), Type: lease.BeforeEndLease, At: w.began.Add(time.Hour), Status: lease.Undone})
	after(w.env, 30*time.Minute, func() {
		w.mu.Lock()
		w.lease.Reservations = slices.Clone(w.lease.Reservations)
		w.lease.Reservations[0].Shape = 1
		w.unwilling = 2
		w.mu.Unlock()
		w.env.SignalWorkflow(contract.SignalChanged, nil)
	})

	w.run(t)

	want := []string{"1m0s: STARTING", "1m0s: ACTIVE with 1 wired", "30m1s: shape 1 is told", "1h0m0s: ACTIVE", "1h0m0s: images are made",
		"1h0m0s: ACTIVE with 1 wired", "2h0m0s: TERMINATING", "2h0m0s: TERMINATED with 0 wired"}
	w.logged(t, want)
}

func TestEndIsOnTimeThoughTheCloudDoesNotWantToHear(t *testing.T) {
	t.Parallel()
	w := newLeaseStory(time.Minute, time.Hour)
	after(w.env, 59*time.Minute+30*time.Second, func() {
		w.mu.Lock()
		w.lease.Reservations = slices.Clone(w.lease.Reservations)
		w.lease.Reservations[0].Shape = 1
		w.unwilling = 1_000_000
		w.mu.Unlock()
		w.env.SignalWorkflow(contract.SignalChanged, nil)
	})
	after(w.env, 60*time.Minute+20*time.Second, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.unwilling = 0
	})

	w.run(t)

	if len(w.log) < 3 || w.log[2] != "1h0m0s: TERMINATING" || !strings.HasSuffix(w.log[len(w.log)-1], "TERMINATED with 0 wired") {
		t.Errorf("%v", w.log)
	}
}

func TestEndThatIsMovedIsNotHeldUpByWhatIsOnlyConvenient(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(w leaseStory){
		"the cloud is told what it has become": func(w leaseStory) {
			w.lease.Reservations = slices.Clone(w.lease.Reservations)
			w.lease.Reservations[0].Shape = 1
		},
		"images are made": func(w leaseStory) {
			w.lease.Reservations[0].BeforeEnd = "snapshot"
			w.lease.Events = append(w.lease.Events, lease.Event{ID: uuid.New(), Type: lease.BeforeEndLease, At: w.now(), Status: lease.Undone})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLeaseStory(time.Minute, 2*time.Hour)
			at := func(in time.Duration, change func()) {
				after(w.env, in, func() {
					w.mu.Lock()
					change()
					w.mu.Unlock()
					w.env.SignalWorkflow(contract.SignalChanged, nil)
				})
			}
			at(30*time.Minute, func() { w.unwilling = 1_000_000; begin(w) })
			at(30*time.Minute+5*time.Second, func() {
				w.lease.Events = slices.Clone(w.lease.Events)
				w.lease.Events[1].At = w.began.Add(30*time.Minute + 20*time.Second)
			})
			at(40*time.Minute, func() { w.unwilling = 0 })

			w.run(t)

			if !slices.Contains(w.log, "30m20s: TERMINATING") && !slices.Contains(w.log, "30m21s: TERMINATING") {
				t.Errorf("%v", w.log)
			}
		})
	}
}
