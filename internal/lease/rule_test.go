package lease

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func kind(err error) Kind {
	var f *Fault
	if errors.As(err, &f) {
		return f.Kind
	}
	if err != nil {
		return Kind(err.Error())
	}
	return ""
}

func on(t time.Time) Moment { return Moment{At: t} }

func TestPlan(t *testing.T) {
	t.Parallel()
	now := noon.Add(30 * time.Second)
	in := func(d time.Duration) *time.Time { at := noon.Add(d); return &at }
	for _, c := range []struct {
		name   string
		start  Moment
		end    Moment
		before *time.Time
		kind   Kind
		want   Schedule
	}{
		{"now is this minute", Moment{Now: true}, on(noon.Add(2 * time.Hour)), nil, "", Schedule{noon, noon.Add(time.Hour), noon.Add(2 * time.Hour)}},
		{"a short lease has its before_end at its start", on(noon.Add(time.Hour)), on(noon.Add(90 * time.Minute)), nil, "",
			Schedule{noon.Add(time.Hour), noon.Add(time.Hour), noon.Add(90 * time.Minute)}},
		{"before_end inside", Moment{Now: true}, on(noon.Add(time.Hour)), in(time.Minute), "", Schedule{noon, noon.Add(time.Minute), noon.Add(time.Hour)}},
		{"before_end at the start", Moment{Now: true}, on(noon.Add(time.Hour)), in(0), NotAuthorized, Schedule{}},
		{"before_end at the end", Moment{Now: true}, on(noon.Add(time.Hour)), in(time.Hour), NotAuthorized, Schedule{}},
		{"before_end outside", Moment{Now: true}, on(noon.Add(time.Hour)), in(2 * time.Hour), NotAuthorized, Schedule{}},
		{"a start a minute ago", on(noon.Add(-time.Minute)), on(noon.Add(time.Hour)), nil, InvalidInput, Schedule{}},
		{"an end at the start", on(noon.Add(time.Hour)), on(noon.Add(time.Hour)), nil, InvalidInput, Schedule{}},
		{"an end before the start", on(noon.Add(time.Hour)), on(noon), nil, InvalidInput, Schedule{}},
		{"an end in this minute that is over", Moment{Now: true}, on(noon.Add(20 * time.Second)), nil, InvalidInput, Schedule{}},
		{"an end in this minute to come", Moment{Now: true}, on(noon.Add(40 * time.Second)), nil, "", Schedule{noon, noon, noon.Add(40 * time.Second)}},
		{"from now to now", Moment{Now: true}, Moment{Now: true}, nil, InvalidInput, Schedule{}},
	} {
		got, err := Plan(Draft{Start: c.start, End: c.end, BeforeEnd: c.before}, BeforeEndLead, now)
		if kind(err) != c.kind {
			t.Errorf("%s: want %q, got %v", c.name, c.kind, err)
		}
		if err == nil && got != c.want {
			t.Errorf("%s: want %v, got %v", c.name, c.want, got)
		}
	}
}

func TestReplan(t *testing.T) {
	t.Parallel()
	now := noon.Add(30 * time.Second)
	at := func(d time.Duration) *Moment { return &Moment{At: noon.Add(d)} }
	early := sample(1)
	early.StartAt, early.EndAt = noon.Add(2*time.Hour), noon.Add(4*time.Hour)
	early.event(BeforeEndLease).At = noon.Add(3 * time.Hour)
	active := in(t, Active)
	over := in(t, Active)
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
		{"a pending lease starts now", early, Change{Start: &Moment{Now: true}}, "", Schedule{noon, noon.Add(3 * time.Hour), noon.Add(4 * time.Hour)}},
		{"a pending lease into the past", early, Change{Start: at(-time.Minute)}, InvalidInput, Schedule{}},
		{"end before start", early, Change{End: at(time.Hour)}, InvalidInput, Schedule{}},
		{"end equal to start", early, Change{End: at(2 * time.Hour)}, "", Schedule{noon.Add(2 * time.Hour), noon.Add(2 * time.Hour), noon.Add(2 * time.Hour)}},
		{"an active lease keeps its start", active, Change{Start: at(time.Minute)}, InvalidInput, Schedule{}},
		{"the same start is no change", active, Change{Start: at(0), End: at(2 * time.Hour)}, "", Schedule{noon, noon.Add(110 * time.Minute), noon.Add(2 * time.Hour)}},
		{"an active lease ends now", active, Change{End: &Moment{Now: true}}, "", Schedule{noon, noon, noon}},
		{"an active lease ends in the past", active, Change{End: at(-time.Minute)}, InvalidInput, Schedule{}},
		{"an end that is due", over, Change{End: at(time.Hour)}, InvalidInput, Schedule{}},
		{"a terminated lease", in(t, Terminated), Change{End: at(time.Hour)}, InvalidInput, Schedule{}},
		{"before_end outside", active, Change{BeforeEnd: &noon}, NotAuthorized, Schedule{}},
	} {
		got, err := Replan(c.l, c.c, now)
		if kind(err) != c.kind {
			t.Errorf("%s: want %q, got %v", c.name, c.kind, err)
		}
		if err == nil && got != c.want {
			t.Errorf("%s: want %v, got %v", c.name, c.want, got)
		}
	}
}

func TestNowNeverEndsALeaseBeforeItBegan(t *testing.T) {
	t.Parallel()
	l := in(t, Active)
	l.StartAt = noon.Add(5 * time.Second)
	s, err := Replan(l, Change{End: &Moment{Now: true}}, noon.Add(30*time.Second))
	if err != nil || !s.End.Equal(l.StartAt) {
		t.Errorf("want the end at the start, got %v, %v", s, err)
	}
}

func TestBeforeEndIsArmedAgainOnlyIfItLiesAhead(t *testing.T) {
	t.Parallel()
	end := noon.Add(3 * time.Hour)
	for _, c := range []struct {
		was    EventStatus
		to     time.Time
		now    time.Time
		is     EventStatus
		reason string
	}{
		{Done, noon.Add(2 * time.Hour), noon, Undone, "ahead"},
		{Failed, noon.Add(2 * time.Hour), noon, Undone, "ahead"},
		{InProgress, noon.Add(2 * time.Hour), noon, Undone, "ahead, of one that runs"},
		{Done, noon.Add(time.Minute), noon.Add(time.Hour), Done, "past"},
		{InProgress, noon.Add(time.Minute), noon.Add(time.Hour), InProgress, "past, of one that runs"},
		{InProgress, noon.Add(50 * time.Minute), noon, InProgress, "where it was"},
	} {
		l := in(t, Active)
		l.event(BeforeEndLease).Status = c.was
		moved := Reschedule(l, Schedule{noon, c.to, end}, c.now)
		if got := moved.event(BeforeEndLease).Status; got != c.is {
			t.Errorf("%s: %s became %s, want %s", c.reason, c.was, got, c.is)
		}
		if _, err := Finish(moved, BeforeEnd, nil); (err == nil) != (c.is != Undone) {
			t.Errorf("%s: the run before the move ends with %v", c.reason, err)
		}
		if l.event(BeforeEndLease).Status != c.was || !l.EndAt.Equal(noon.Add(time.Hour)) {
			t.Error("the lease that was given changed")
		}
	}
}

func TestParseRequirements(t *testing.T) {
	t.Parallel()
	vcpus := Requirement{">=", "vcpus", "2"}
	for _, c := range []struct {
		text string
		want []Requirement
		bad  bool
	}{
		{"", nil, false},
		{"  ", nil, false},
		{"[]", nil, false},
		{`[">=","$vcpus","2"]`, []Requirement{vcpus}, false},
		{`["=", "$gpu", "True"]`, []Requirement{{"==", "gpu", "True"}}, false},
		{`["and",[">=","$vcpus","2"]]`, []Requirement{vcpus}, false},
		{`["and",[">=","$vcpus","2"],["!=","$gpu","x"]]`, []Requirement{vcpus, {"!=", "gpu", "x"}}, false},
		{`["and"]`, nil, true},
		{`["or",[">=","$vcpus","2"],["!=","$gpu","x"]]`, nil, true},
		{`["and",["and",[">=","$vcpus","2"]]]`, nil, true},
		{`[">=","$vcpus",2]`, nil, true},
		{`[">=","$vcpus",null]`, nil, true},
		{`[">=","$vcpus"]`, nil, true},
		{`[">=","$vcpus","2","3"]`, nil, true},
		{`[">=","vcpus","2"]`, nil, true},
		{`[">=","$","2"]`, nil, true},
		{`[">=","$vcpus",""]`, nil, true},
		{`["in","$vcpus","2"]`, nil, true},
		{`[["and"]]`, nil, true},
		{`[null,"$a","b"]`, nil, true},
		{`null`, nil, true},
		{`{}`, nil, true},
		{`"x"`, nil, true},
		{`[">=","$vcpus","2"`, nil, true},
		{`[">=","$vcpus","2"] x`, nil, true},
	} {
		got, err := ParseRequirements(c.text)
		if c.bad != (kind(err) == MalformedRequirements) {
			t.Errorf("%s: %v", c.text, err)
		}
		if d := cmp.Diff(c.want, got); !c.bad && d != "" {
			t.Errorf("%s: %s", c.text, d)
		}
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	have := Host{VCPUs: 8, Hostname: "cmp-1", Reservable: true, Capabilities: map[string]string{"n": "10", "gpu": "a100", "vcpus": "99"}}.Properties()
	for _, c := range []struct {
		r    Requirement
		want bool
	}{
		{Requirement{"==", "vcpus", "8"}, true}, // a capability does not hide the fact
		{Requirement{"==", "vcpus", "8.0"}, true},
		{Requirement{">=", "n", "9"}, true}, // numbers compare as numbers
		{Requirement{"<", "n", "9"}, false},
		{Requirement{">", "gpu", "9"}, true}, // text as text
		{Requirement{"!=", "gpu", "b"}, true},
		{Requirement{"<=", "gpu", "a100"}, true},
		{Requirement{"!=", "missing", "b"}, false}, // who lacks it never matches
		{Requirement{"==", "status", "null"}, true},
		{Requirement{"!=", "vcpus", "null"}, true},
		{Requirement{"==", "vcpus", "null"}, false},
	} {
		if got := c.r.Holds(have); got != c.want {
			t.Errorf("%v: %t", c.r, got)
		}
	}
}

func TestUnknownPropertyIsRefused(t *testing.T) {
	t.Parallel()
	hosts := []Candidate{{Host: Host{ID: 1, Capabilities: map[string]string{"gpu": "x"}}}, {Host: Host{ID: 2}}}
	matching, err := Matching(hosts, []Requirement{{"==", "gpu", "x"}, {"==", "trust_id", "null"}})
	if err != nil || len(matching) != 1 || matching[0].ID != 1 {
		t.Errorf("want host 1, got %v, %v", matching, err)
	}
	if _, err := Matching(hosts, []Requirement{{"==", "gpo", "x"}}); kind(err) != MalformedRequirements {
		t.Errorf("want a refusal, got %v", err)
	}
}

func TestPick(t *testing.T) {
	t.Parallel()
	virgin := func(id int64) Candidate { return Candidate{Host: Host{ID: id, Reservable: true}, Free: true} }
	free := func(id int64) Candidate { c := virgin(id); c.Booked = true; return c }
	taken := func(id int64) Candidate { c := free(id); c.Free = false; return c }
	broken := func(id int64) Candidate { c := virgin(id); c.Reservable = false; return c }
	for _, c := range []struct {
		name        string
		all         []Candidate
		least, most int
		want        []int64
		kind        Kind
	}{
		{"those never booked alone, if enough", []Candidate{free(1), virgin(2), free(3)}, 1, 3, []int64{2}, ""},
		{"no more than most", []Candidate{virgin(1), virgin(2), virgin(3)}, 1, 2, []int64{1, 2}, ""},
		{"else the free ones first", []Candidate{virgin(1), free(2), free(3)}, 2, 3, []int64{2, 3, 1}, ""},
		{"taken and broken ones never", []Candidate{taken(1), broken(2)}, 1, 1, nil, NotEnoughHosts},
		{"too few", []Candidate{virgin(1), free(2)}, 3, 3, nil, NotEnoughHosts},
		{"none asked", nil, 0, 2, []int64{}, ""},
	} {
		got, err := Pick(c.all, c.least, c.most)
		if kind(err) != c.kind {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.kind == "" && len(got)+len(c.want) > 0 {
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s: %s", c.name, d)
			}
		}
	}
}

func TestCheckReservation(t *testing.T) {
	t.Parallel()
	good := ReservationDraft{Type: PhysicalHost, Min: 1, Max: 2, BeforeEnd: "default"}
	if err := CheckReservation(good); err != nil {
		t.Error(err)
	}
	for want, spoil := range map[Kind]func(*ReservationDraft){
		UnsupportedType:       func(r *ReservationDraft) { r.Type = "virtual:fridge" },
		MalformedParameter:    func(r *ReservationDraft) { r.Min = 0 },
		InvalidInput:          func(r *ReservationDraft) { r.Min = 3 },
		MalformedRequirements: func(r *ReservationDraft) { r.ResourceProperties = "[" },
	} {
		r := good
		spoil(&r)
		if err := CheckReservation(r); kind(err) != want {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	long := good
	long.HypervisorProperties = `["=","$rack","` + strings.Repeat("<", longestText) + `"]`
	if err := CheckReservation(long); kind(err) != MalformedRequirements {
		t.Errorf("long requirements: %v", err)
	}
	many := Draft{Name: "l", Reservations: slices.Repeat([]ReservationDraft{good}, maxReservations+1)}
	if err := CheckDraft(many); kind(err) != InvalidInput {
		t.Errorf("%d reservations: %v", len(many.Reservations), err)
	}
	bad := good
	bad.BeforeEnd = "email"
	if err := CheckReservation(bad); kind(err) != MalformedParameter {
		t.Errorf("before_end: %v", err)
	}
}

func TestNoTextBreaksTheGrammar(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`\[("and",)?(\[?"(=|>=|or)","\$[a-z]*","?[0-9a-z]*"?\]?,?)*\]`)).Draw(t, "text")
		rs, err := ParseRequirements(text)
		if err != nil && kind(err) != MalformedRequirements {
			t.Fatalf("%q: %v", text, err)
		}
		for _, r := range rs {
			if r.Key == "" || r.Value == "" {
				t.Fatalf("%q: %+v", text, r)
			}
			r.Holds(map[string]string{r.Key: r.Value})
		}
	})
}
