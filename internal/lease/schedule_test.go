package lease

import (
	"testing"
	"time"
)

func atInstant(t time.Time) RequestedDate { return RequestedDate{At: t} }

func TestNewSchedule_DatesOfADraft(t *testing.T) {
	t.Parallel()
	now := noon.Add(30 * time.Second)
	in := func(d time.Duration) *time.Time { at := noon.Add(d); return &at }
	for _, c := range []struct {
		name   string
		start  RequestedDate
		end    RequestedDate
		before *time.Time
		kind   Kind
		want   Schedule
	}{
		{"now is this minute", RequestedDate{Now: true}, atInstant(noon.Add(2 * time.Hour)), nil, "", Schedule{noon, noon.Add(time.Hour), noon.Add(2 * time.Hour)}},
		{"a short lease has its before_end at its start", atInstant(noon.Add(time.Hour)), atInstant(noon.Add(90 * time.Minute)), nil, "",
			Schedule{noon.Add(time.Hour), noon.Add(time.Hour), noon.Add(90 * time.Minute)}},
		{"before_end inside", RequestedDate{Now: true}, atInstant(noon.Add(time.Hour)), in(time.Minute), "", Schedule{noon, noon.Add(time.Minute), noon.Add(time.Hour)}},
		{"before_end at the start", RequestedDate{Now: true}, atInstant(noon.Add(time.Hour)), in(0), NotAuthorized, Schedule{}},
		{"before_end at the end", RequestedDate{Now: true}, atInstant(noon.Add(time.Hour)), in(time.Hour), NotAuthorized, Schedule{}},
		{"before_end outside", RequestedDate{Now: true}, atInstant(noon.Add(time.Hour)), in(2 * time.Hour), NotAuthorized, Schedule{}},
		{"a start a minute ago", atInstant(noon.Add(-time.Minute)), atInstant(noon.Add(time.Hour)), nil, InvalidInput, Schedule{}},
		{"an end at the start", atInstant(noon.Add(time.Hour)), atInstant(noon.Add(time.Hour)), nil, InvalidInput, Schedule{}},
		{"an end before the start", atInstant(noon.Add(time.Hour)), atInstant(noon), nil, InvalidInput, Schedule{}},
		{"an end in this minute that is over", RequestedDate{Now: true}, atInstant(noon.Add(20 * time.Second)), nil, InvalidInput, Schedule{}},
		{"an end in this minute to come", RequestedDate{Now: true}, atInstant(noon.Add(40 * time.Second)), nil, "", Schedule{noon, noon, noon.Add(40 * time.Second)}},
		{"from now to now", RequestedDate{Now: true}, RequestedDate{Now: true}, nil, InvalidInput, Schedule{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := NewSchedule(Draft{Start: c.start, End: c.end, BeforeEnd: c.before},
				DefaultBeforeEndLead, now)
			if kindOf(err) != c.kind {
				t.Errorf("NewSchedule: want a fault of kind %q (empty: no fault), got %v", c.kind, err)
			}
			if err == nil && got != c.want {
				t.Errorf("NewSchedule: want the schedule %v, got %v", c.want, got)
			}
		})
	}
}

func TestUpdatedSchedule_DatesOfAChange(t *testing.T) {
	t.Parallel()
	now := noon.Add(30 * time.Second)
	at := func(d time.Duration) *RequestedDate { return &RequestedDate{At: noon.Add(d)} }
	early := sample(1)
	early.StartAt, early.EndAt = noon.Add(2*time.Hour), noon.Add(4*time.Hour)
	early.event(BeforeEndLease).At = noon.Add(3 * time.Hour)
	active := leaseIn(t, Active)
	over := leaseIn(t, Active)
	over.EndAt = noon.Add(-time.Hour)
	for _, c := range []struct {
		name string
		l    Lease
		c    Change
		kind Kind
		want Schedule
	}{
		{"all later", early, Change{Start: at(3 * time.Hour), End: at(5 * time.Hour)}, "", Schedule{noon.Add(3 * time.Hour), noon.Add(4 * time.Hour), noon.Add(5 * time.Hour)}},
		{"before_end never before the start", early, Change{End: at(150 * time.Minute)}, "", Schedule{noon.Add(2 * time.Hour), noon.Add(2 * time.Hour), noon.Add(150 * time.Minute)}},
		{"a pending lease starts now", early, Change{Start: &RequestedDate{Now: true}}, "", Schedule{noon, noon.Add(3 * time.Hour), noon.Add(4 * time.Hour)}},
		{"a pending lease into the past", early, Change{Start: at(-time.Minute)}, InvalidInput, Schedule{}},
		{"end before start", early, Change{End: at(time.Hour)}, InvalidInput, Schedule{}},
		{"end equal to start", early, Change{End: at(2 * time.Hour)}, "", Schedule{noon.Add(2 * time.Hour), noon.Add(2 * time.Hour), noon.Add(2 * time.Hour)}},
		{"an active lease keeps its start", active, Change{Start: at(time.Minute)}, InvalidInput, Schedule{}},
		{"the same start is no change", active, Change{Start: at(0), End: at(2 * time.Hour)}, "", Schedule{noon, noon.Add(110 * time.Minute), noon.Add(2 * time.Hour)}},
		{"an active lease ends now", active, Change{End: &RequestedDate{Now: true}}, "", Schedule{noon, noon, noon}},
		{"an active lease ends in the past", active, Change{End: at(-time.Minute)}, InvalidInput, Schedule{}},
		{"an end that is due", over, Change{End: at(time.Hour)}, InvalidInput, Schedule{}},
		{"a terminated lease", leaseIn(t, Terminated), Change{End: at(time.Hour)}, InvalidInput, Schedule{}},
		{"before_end outside", active, Change{BeforeEnd: &noon}, NotAuthorized, Schedule{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := UpdatedSchedule(c.l, c.c, now)
			if kindOf(err) != c.kind {
				t.Errorf("UpdatedSchedule: want a fault of kind %q (empty: no fault), got %v", c.kind, err)
			}
			if err == nil && got != c.want {
				t.Errorf("UpdatedSchedule: want the schedule %v, got %v", c.want, got)
			}
		})
	}
}

func TestUpdatedSchedule_NowIsNotBeforeTheStart(t *testing.T) {
	t.Parallel()
	l := leaseIn(t, Active)
	l.StartAt = noon.Add(5 * time.Second)
	s, err := UpdatedSchedule(l, Change{End: &RequestedDate{Now: true}}, noon.Add(30*time.Second))
	if err != nil || !s.End.Equal(l.StartAt) {
		t.Errorf(
			"set the end of a lease that started within this minute to now: got schedule %v and error %v, want the end at the start",
			s,
			err,
		)
	}
}

func TestApplySchedule_BeforeEndRunsAgainOnlyInTheFuture(t *testing.T) {
	t.Parallel()
	end := noon.Add(3 * time.Hour)
	for _, c := range []struct {
		was    EventStatus
		to     time.Time
		now    time.Time
		is     EventStatus
		reason string
	}{
		{EventDone, noon.Add(2 * time.Hour), noon, EventUndone, "in the future"},
		{EventFailed, noon.Add(2 * time.Hour), noon, EventUndone, "in the future"},
		{EventInProgress, noon.Add(2 * time.Hour), noon, EventUndone, "in the future, running"},
		{EventDone, noon.Add(time.Minute), noon.Add(time.Hour), EventDone, "in the past"},
		{EventInProgress, noon.Add(time.Minute), noon.Add(time.Hour), EventInProgress, "in the past, running"},
		{EventInProgress, noon.Add(50 * time.Minute), noon, EventInProgress, "not moved"},
	} {
		t.Run(string(c.was)+" "+c.reason, func(t *testing.T) {
			t.Parallel()
			l := leaseIn(t, Active)
			l.event(BeforeEndLease).Status = c.was
			moved := ApplySchedule(l, Schedule{noon, c.to, end}, c.now)
			if got := moved.event(BeforeEndLease).Status; got != c.is {
				t.Errorf(
					"status of the before_end_lease event after the schedule changed: got %s, want %s",
					got,
					c.is,
				)
			}
			if _, err := FinishStep(moved, StepBeforeEnd, nil); (err == nil) != (c.is != EventUndone) {
				t.Errorf(
					"finish the before_end step that began before the schedule changed: got error %v, want success: %t",
					err,
					c.is != EventUndone,
				)
			}
			if l.event(BeforeEndLease).Status != c.was || !l.EndAt.Equal(noon.Add(time.Hour)) {
				t.Error(
					"ApplySchedule changed the lease that it got as its argument, want the argument unchanged",
				)
			}
		})
	}
}
