package activities

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/panics"
	"berth/internal/store/leasestore"
)

// fakeCloud records the calls that it gets. It rejects the calls for the reservation `rejected`, hangs in the
// calls for the reservation `hanging`, and panics in those for the reservation `panicking`.
type fakeCloud struct {
	Cloud
	mu                sync.Mutex
	calls             []string
	rejected, hanging uuid.UUID
	panicking         uuid.UUID
}

func (h *fakeCloud) ResourceTypes() []string { return []string{lease.PhysicalHost} }

func (h *fakeCloud) record(ctx context.Context, what string, c lease.CloudReservation) error {
	h.mu.Lock()
	h.calls = append(h.calls, what+" "+c.Project)
	h.mu.Unlock()
	switch c.ID {
	case h.rejected:
		return errors.New("the fake cloud rejects the call")
	case h.hanging:
		<-ctx.Done()
		return ctx.Err()
	case h.panicking:
		panic("scripted")
	}
	return nil
}

func (h *fakeCloud) Provision(ctx context.Context, c lease.CloudReservation) (lease.CloudIDs, error) {
	return lease.CloudIDs{AggregateID: new(int64(7))}, h.record(ctx, "provision", c)
}

func (h *fakeCloud) BeforeEnd(ctx context.Context, c lease.CloudReservation) error {
	return h.record(ctx, c.BeforeEnd, c)
}

func (h *fakeCloud) Deprovision(ctx context.Context, c lease.CloudReservation) error {
	return h.record(ctx, "deprovision", c)
}

func (h *fakeCloud) sortedCalls() []string {
	slices.Sort(h.calls)
	return h.calls
}

func ignoreCall(_ context.Context, _ uuid.UUID, err error) error { return err }

func startedStep(step lease.Step, name, typ string) leasestore.StartedStep {
	r := lease.Reservation{ID: uuid.New()}
	r.Type, r.BeforeEnd = typ, "default"
	return leasestore.StartedStep{
		Lease:             lease.Lease{ID: uuid.New(), Name: name},
		Step:              step,
		CloudReservations: []lease.CloudReservation{{Reservation: r, Project: name}},
	}
}

// Each step of a lease makes its own calls to Nova and Neutron. A call that fails or hangs for one lease does
// not affect the steps of other leases.
func TestReservationBackend_FailedAndHangingCallsAreLeftOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := []leasestore.StartedStep{
			startedStep(lease.StepStart, "rejected", lease.PhysicalHost),
			startedStep(lease.StepStart, "start", lease.PhysicalHost),
			startedStep(lease.StepStart, "hanging", lease.PhysicalHost),
			startedStep(lease.StepBeforeEnd, "warning", lease.PhysicalHost),
			startedStep(lease.StepEnd, "end", lease.PhysicalHost),
			startedStep(lease.StepStart, "other type", lease.FloatingIP),
		}
		h := &fakeCloud{rejected: all[0].CloudReservations[0].ID, hanging: all[2].CloudReservations[0].ID}
		w := reservationBackend{
			New(Options{Cloud: h, SnapshotByDefault: true}),
			ignoreCall,
			func(context.Context, lease.CloudReservation, error) {},
		}

		succeeded := map[string]int{}
		for _, b := range w.Apply(t.Context(), all) {
			succeeded[b.Name] = len(b.CloudIDs)
		}

		if d := cmp.Diff(map[string]int{
			"start":      1,
			"warning":    0,
			"end":        0,
			"other type": 0,
		}, succeeded); d != "" {
			t.Errorf("steps that succeeded, with the IDs from Nova (-want +got):\n%s", d)
		}
		want := []string{
			"deprovision end",
			"provision hanging",
			"provision rejected",
			"provision start",
			"snapshot warning",
		}
		if d := cmp.Diff(want, h.sortedCalls()); d != "" {
			t.Errorf("calls that the fake cloud received (-want +got):\n%s", d)
		}
	})
}

// A panic in a goroutine ends the process, and with it the steps of all leases, again and again.
func TestReservationBackend_PanicIsAFailedCall(t *testing.T) {
	t.Parallel()
	bad := startedStep(lease.StepStart, "bad", lease.PhysicalHost)
	good := startedStep(lease.StepStart, "good", lease.PhysicalHost)
	var failed, left []error
	w := reservationBackend{
		New(Options{Cloud: &fakeCloud{panicking: bad.CloudReservations[0].ID}}),
		func(_ context.Context, _ uuid.UUID, err error) error { failed = append(failed, err); return err },
		func(_ context.Context, _ lease.CloudReservation, err error) { left = append(left, err) },
	}
	w.Timeouts.Round = time.Hour

	succeeded := w.Apply(t.Context(), []leasestore.StartedStep{bad, good})
	w.Undo(t.Context(), []leasestore.StartedStep{bad, good})

	if len(succeeded) != 1 || succeeded[0].Name != "good" {
		t.Errorf("steps that succeeded: got %v, want the one whose call does not panic", succeeded)
	}
	if len(failed) != 1 || !errors.Is(failed[0], panics.Err) {
		t.Errorf("failed calls that were recorded: got %v, want the panic", failed)
	}
	if len(left) != 1 || !errors.Is(left[0], panics.Err) {
		t.Errorf("reservations whose removal has failed: got the errors %v, want the panic", left)
	}
}

func TestReservationBackend_UndoContinuesAfterFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := []leasestore.StartedStep{
			startedStep(lease.StepStart, "hanging", lease.PhysicalHost),
			startedStep(lease.StepStart, "good", lease.PhysicalHost),
		}
		all[0].CloudReservations = append(
			all[0].CloudReservations,
			startedStep(lease.StepStart, "second", lease.PhysicalHost).CloudReservations...)
		all[1].CloudReservations = append(
			startedStep(lease.StepStart, "rejected", lease.PhysicalHost).CloudReservations,
			all[1].CloudReservations...)
		h := &fakeCloud{hanging: all[0].CloudReservations[0].ID, rejected: all[1].CloudReservations[0].ID}

		reservationBackend{
			New(Options{Cloud: h}),
			ignoreCall,
			func(context.Context, lease.CloudReservation, error) {},
		}.Undo(
			t.Context(),
			all,
		)

		if d := cmp.Diff([]string{"deprovision good", "deprovision hanging", "deprovision rejected", "deprovision second"}, h.sortedCalls()); d != "" {
			t.Error(d)
		}
	})
}
