package lease

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

var noon = time.Date(2040, 1, 1, 12, 0, 0, 0, time.UTC)

// sample returns a pending lease from noon to one o'clock with the given number of reservations.
func sample(reservations int) Lease {
	l := Lease{
		ID:        uuid.UUID{1},
		Name:      "l",
		Status:    Pending,
		StartAt:   noon,
		EndAt:     noon.Add(time.Hour),
		CreatedAt: noon.Add(-time.Hour),
	}
	for i := range reservations {
		l.Reservations = append(l.Reservations, Reservation{
			ReservationDraft: ReservationDraft{Type: PhysicalHost, Min: 1, Max: 1},
			ID:               uuid.UUID{2, byte(i)},
			Status:           ReservationPending,
			Hosts:            []int64{int64(i + 1)},
		})
	}
	l.Events = []Event{
		{
			ID:     uuid.UUID{3},
			Type:   StartLease,
			At:     l.StartAt,
			Status: EventUndone,
		},
		{
			ID:     uuid.UUID{4},
			Type:   EndLease,
			At:     l.EndAt,
			Status: EventUndone,
		},
		{
			ID:     uuid.UUID{5},
			Type:   BeforeEndLease,
			At:     l.EndAt.Add(-10 * time.Minute),
			Status: EventUndone,
		},
	}
	return l
}

// leaseIn returns the sample lease in the given status, reached by the regular steps.
func leaseIn(t *testing.T, s Status) Lease {
	t.Helper()
	l := sample(1)
	late := l.EndAt.Add(time.Hour)
	step := func(f func() (Lease, error)) {
		t.Helper()
		var err error
		if l, err = f(); err != nil {
			t.Fatal(err)
		}
	}
	fail := map[uuid.UUID]string{}
	if s == Error {
		fail[l.Reservations[0].ID] = "no"
	}
	if s == Pending {
		return l
	}
	if s == Deleting {
		l.DeleteRequested = true
		step(func() (Lease, error) { return BeginStep(l, StepDelete, late) })
		return l
	}
	step(func() (Lease, error) { return BeginStep(l, StepStart, late) })
	if s == Starting {
		return l
	}
	step(func() (Lease, error) { return FinishStep(l, StepStart, fail) })
	if s == Active || s == Error {
		return l
	}
	step(func() (Lease, error) { return BeginStep(l, StepEnd, late) })
	if s == Terminating {
		return l
	}
	step(func() (Lease, error) { return FinishStep(l, StepEnd, nil) })
	return l
}

func TestNext_StepByStatusAndTime(t *testing.T) {
	t.Parallel()
	blocked := sample(1)
	blocked.Blockers = []Blocker{{Name: "a"}}
	warned := leaseIn(t, Active)
	warned.event(BeforeEndLease).Status = EventDone
	warning := leaseIn(t, Active)
	warning.event(BeforeEndLease).Status = EventInProgress
	ended := leaseIn(t, Error)
	ended.event(EndLease).Status = EventFailed
	cleared := ended.clone()
	cleared.Reservations[0].Hosts = nil
	remains := leaseIn(t, Error)
	remains.Reservations[0].Failure = &CallFailure{Party: PartyNova}
	stuck := sample(1)
	stuck.Blockers = []Blocker{{Stuck: true}}
	late := noon.Add(24 * time.Hour)
	for _, c := range []struct {
		name string
		l    Lease
		now  time.Time
		want Due
	}{
		{"a pending lease waits for its start", sample(1), noon.Add(-1), Due{StepWait, noon}},
		{"a pending lease starts on the second", sample(1), noon, Due{Step: StepStart}},
		{"an overdue start", sample(1), late, Due{Step: StepStart}},
		{"a blocked lease waits for its host", blocked, noon, Due{StepWait, noon.Add(RecheckInterval)}},
		{"blockers matter only after the start", blocked, noon.Add(-time.Hour), Due{StepWait, noon}},
		{"a start that has begun is repeated", leaseIn(t, Starting), noon.Add(-time.Hour), Due{Step: StepStart}},
		{"an active lease waits for before_end", leaseIn(t, Active), noon, Due{StepWait, noon.Add(50 * time.Minute)}},
		{"before_end is due", leaseIn(t, Active), noon.Add(50 * time.Minute), Due{Step: StepBeforeEnd}},
		{"before_end comes before an overdue end", leaseIn(t, Active), late, Due{Step: StepBeforeEnd}},
		{"before_end that has begun is repeated", warning, noon, Due{Step: StepBeforeEnd}},
		{"after before_end the lease waits for its end", warned, noon, Due{StepWait, noon.Add(time.Hour)}},
		{"an active lease ends on the second", warned, noon.Add(time.Hour), Due{Step: StepEnd}},
		{"an end that has begun is repeated", leaseIn(t, Terminating), noon, Due{Step: StepEnd}},
		{"a failed lease waits for its end", leaseIn(t, Error), noon, Due{StepWait, noon.Add(time.Hour)}},
		{"a failed lease ends", leaseIn(t, Error), late, Due{Step: StepEnd}},
		{"a lease whose end has failed is cleared", ended, late, Due{Step: StepClear}},
		{"a failed lease that holds nothing after its end stops", cleared, late, Due{Step: StepStop}},
		{"a failed start whose resources remain is cleared", remains, noon, Due{Step: StepClear}},
		{"a failed start whose resources remain ends", remains, late, Due{Step: StepEnd}},
		{"a lease that a stuck lease blocks waits", stuck, noon, Due{StepWait, noon.Add(RecheckInterval)}},
		{"a lease that a stuck lease blocks waits until its end at most", stuck, noon.Add(time.Hour - time.Second), Due{StepWait, noon.Add(time.Hour)}},
		{"a lease that a stuck lease blocks expires at its end", stuck, noon.Add(time.Hour), Due{Step: StepExpire}},
		{"a terminated lease stops", leaseIn(t, Terminated), late, Due{Step: StepStop}},
		{"a deletion that has begun is repeated", leaseIn(t, Deleting), noon, Due{Step: StepDelete}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Next(c.l, c.now); got != c.want {
				t.Errorf("next step of the lease: got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestNext_DeletionHasPriorityInEveryStatus(t *testing.T) {
	t.Parallel()
	for _, s := range []Status{Pending, Starting, Active, Terminating, Terminated, Error, Deleting} {
		l := leaseIn(t, s)
		l.DeleteRequested = true
		if got := Next(l, noon); got.Step != StepDelete {
			t.Errorf("next step of a lease in %s with a delete request: got %+v, want a deletion", s, got)
		}
		for _, step := range []Step{StepStart, StepBeforeEnd, StepEnd} {
			if _, err := BeginStep(l, step, noon.Add(time.Hour)); !errors.Is(err, ErrTransition) {
				t.Errorf(
					"begin %[2]s of a lease in %[1]s with a delete request: got no error, want ErrTransition",
					s,
					step,
				)
			}
		}
		l, err := BeginStep(l, StepDelete, noon)
		if err != nil {
			t.Errorf("begin the deletion of a lease in %s: got error %v, want none", s, err)
		}
		if err := CheckStatus(l); err != nil || l.Status != Deleting {
			t.Errorf(
				"lease in %s after its deletion began: got status %s, CheckStatus returned %v; want DELETING and no error",
				s, l.Status, err,
			)
		}
	}
}

func TestBeginStep_RefusesDeletionWithoutRequest(t *testing.T) {
	t.Parallel()
	if _, err := BeginStep(sample(1), StepDelete, noon); !errors.Is(err, ErrTransition) {
		t.Errorf("begin a deletion without a delete request: got %v, want ErrTransition", err)
	}
}

func TestSteps_RefusedIfNotDueOrNotBegun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		from Status
		do   func(Lease) (Lease, error)
	}{
		{"start before its time", Pending, func(l Lease) (Lease, error) { return BeginStep(l, StepStart, noon.Add(-time.Minute)) }},
		{"end before its time", Active, func(l Lease) (Lease, error) { return BeginStep(l, StepEnd, noon) }},
		{"before_end before its time", Active, func(l Lease) (Lease, error) { return BeginStep(l, StepBeforeEnd, noon) }},
		{"start of an active lease", Active, func(l Lease) (Lease, error) { return BeginStep(l, StepStart, noon) }},
		{"end of a pending lease", Pending, func(l Lease) (Lease, error) { return BeginStep(l, StepEnd, noon.Add(time.Hour)) }},
		{"finish of a start after the end began", Terminating, func(l Lease) (Lease, error) { return FinishStep(l, StepStart, nil) }},
		{"finish of a start after the end", Terminated, func(l Lease) (Lease, error) { return FinishStep(l, StepStart, nil) }},
		{"finish of a start while deleting", Deleting, func(l Lease) (Lease, error) { return FinishStep(l, StepStart, nil) }},
		{"success of a start that failed", Error, func(l Lease) (Lease, error) { return FinishStep(l, StepStart, nil) }},
		{"failure of a start that succeeded", Active, func(l Lease) (Lease, error) {
			return FinishStep(l, StepStart, map[uuid.UUID]string{l.Reservations[0].ID: "late"})
		}},
		{"finish of an end that was not begun", Active, func(l Lease) (Lease, error) { return FinishStep(l, StepEnd, nil) }},
		{"finish of an end that was not begun, after a failed start", Error, func(l Lease) (Lease, error) { return FinishStep(l, StepEnd, nil) }},
		{"finish of a before_end that was not begun", Active, func(l Lease) (Lease, error) { return FinishStep(l, StepBeforeEnd, nil) }},
		{"finish of a deletion that was not begun", Active, func(l Lease) (Lease, error) { return FinishStep(l, StepDelete, nil) }},
		{"finish of a deletion with a failed reservation", Deleting, func(l Lease) (Lease, error) {
			return FinishStep(l, StepDelete, map[uuid.UUID]string{l.Reservations[0].ID: "busy"})
		}},
		{"wait is not a step", Pending, func(l Lease) (Lease, error) { return BeginStep(l, StepWait, noon) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := leaseIn(t, c.from)
			if _, err := c.do(l); !errors.Is(err, ErrTransition) {
				t.Errorf("step that the status does not allow: got error %v, want ErrTransition", err)
			}
			if d := cmp.Diff(leaseIn(t, c.from), l); d != "" {
				t.Errorf(
					"refused step changed the lease that it got as its argument, want the argument unchanged (-before +after):\n%s",
					d,
				)
			}
		})
	}
}

// TestSteps_EverySequenceKeepsTheStatusTables tries all sequences of steps until the sequences reach no new
// combination of statuses. In the sequences of this test, every reservation may fail, a delete request may
// come at any time, and each step is repeated as after a crash.
func TestSteps_EverySequenceKeepsTheStatusTables(t *testing.T) {
	t.Parallel()
	type state struct {
		status             Status
		start, before, end EventStatus
		first, second      ReservationStatus
		deletion           bool
	}
	of := func(l Lease) state {
		return state{
			l.Status,
			l.event(StartLease).Status,
			l.event(BeforeEndLease).Status,
			l.event(EndLease).Status,
			l.Reservations[0].Status,
			l.Reservations[1].Status,
			l.DeleteRequested,
		}
	}
	late := noon.Add(24 * time.Hour)
	seen := map[state]bool{}
	reached := map[Status]bool{}
	todo := []Lease{sample(2)}
	for len(todo) > 0 {
		l := todo[0]
		todo = todo[1:]
		if seen[of(l)] {
			continue
		}
		seen[of(l)], reached[l.Status] = true, true
		if err := CheckStatus(l); err != nil {
			t.Errorf(
				"sequence of steps reached a wrong combination of statuses, want only allowed combinations: %v",
				err,
			)
		}
		for _, next := range successors(t, l, late) {
			checkTransitions(t, l, next)
			todo = append(todo, next)
		}
	}
	for _, s := range []Status{Pending, Starting, Active, Terminating, Terminated, Error, Deleting} {
		if !reached[s] {
			t.Errorf("sequences of steps did not reach the lease status %s, want every status", s)
		}
	}
	if len(seen) < 20 {
		t.Errorf("number of states that the sequences of steps reached: got %d, want at least 20", len(seen))
	}
}

// successors returns every lease that can result from one step or one delete request on the lease l.
func successors(t *testing.T, l Lease, now time.Time) []Lease {
	t.Helper()
	var all []Lease
	if !l.DeleteRequested {
		asked := l.clone()
		asked.DeleteRequested = true
		all = append(all, asked)
	}
	a, b := l.Reservations[0].ID, l.Reservations[1].ID
	for _, step := range []Step{StepStart, StepBeforeEnd, StepEnd, StepDelete} {
		if next, err := BeginStep(l, step, now); err == nil {
			if again, err := BeginStep(next, step, now); err != nil || !cmp.Equal(next, again) {
				t.Errorf(
					"begin %s twice from %s: got error %v or another lease the second time, want the same lease",
					step, l.Status, err,
				)
			}
			all = append(all, next)
		}
		for _, failed := range []map[uuid.UUID]string{nil, {a: "a"}, {b: "b"}, {a: "a", b: "b"}} {
			next, err := FinishStep(l, step, failed)
			if err != nil {
				continue
			}
			if again, err := FinishStep(next, step, failed); err != nil || !cmp.Equal(next, again) {
				t.Errorf(
					"finish %s twice from %s: got error %v or another lease the second time, want the same lease",
					step, l.Status, err,
				)
			}
			all = append(all, next)
		}
	}
	return all
}

// checkTransitions checks that the transition tables allow every status change between two states of one
// lease.
func checkTransitions(t *testing.T, from, to Lease) {
	t.Helper()
	if from.Status != to.Status && !from.Status.CanBecome(to.Status) {
		t.Errorf("lease changed from %s to %s, want only changes that the transition table allows",
			from.Status, to.Status)
	}
	for i, r := range from.Reservations {
		if next := to.Reservations[i].Status; r.Status != next &&
			!slices.Contains(reservationTransitions[r.Status], next) {
			t.Errorf(
				"reservation changed from %s to %s, want only changes that the transition table allows",
				r.Status,
				next,
			)
		}
	}
	for i, e := range from.Events {
		if next := to.Events[i].Status; e.Status != next &&
			!slices.Contains(eventTransitions[e.Status], next) {
			t.Errorf(
				"event %s changed from %s to %s, want only changes that the transition table allows",
				e.Type, e.Status, next,
			)
		}
	}
}
