package journal

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSentence_OfEachState(t *testing.T) {
	t.Parallel()
	by := func(seq int64, s State) Blocker {
		return Blocker{
			Seq:       seq,
			Object:    Ref{Type: "network", ID: "n"},
			Operation: Create,
			State:     s,
		}
	}
	other := int64(7)
	for want, tt := range map[string]struct {
		e Entry
		b []Blocker
	}{
		"the controller has the change":                                     {Entry{State: Completed}, nil},
		"the controller has the change; sent by the workflow journal/7":     {Entry{State: Completed, SentBy: &other}, nil},
		"is being sent, attempt 1; sent by the workflow journal/7":          {Entry{State: Processing, Attempt: 1, SentBy: &other}, nil},
		"skipped by admin: made by hand":                                    {Entry{State: Completed, LastError: "skipped by admin: made by hand"}, nil},
		"the controller refused it 5 times, retry or skip it: no":           {Entry{State: Failed, Failures: 5, LastError: "no"}, nil},
		"the controller refused it once, retry or skip it: no":              {Entry{State: Failed, Failures: 1, LastError: "no"}, nil},
		"waits for entry 3 (create network n), which is pending":            {Entry{State: Pending}, []Blocker{by(3, Pending)}},
		"waits for entry 4 (create network n), which is failed, and 2 more": {Entry{State: Pending}, []Blocker{by(3, Pending), by(4, Failed), by(5, Failed)}},
		"is being sent, attempt 2":                                          {Entry{State: Processing, Attempt: 2}, nil},
		"will be sent again after attempt 2: the controller answered 503":   {Entry{State: Pending, Attempt: 2, LastError: "the controller answered 503"}, nil},
		"will be sent as soon as a worker takes it":                         {Entry{State: Pending}, nil},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			if got := Sentence(tt.e, tt.b, nil); got != want {
				t.Errorf("Sentence of the entry: got %q, want %q", got, want)
			}
		})
	}
	if got := Summary(Entry{Operation: Update, Object: Ref{Type: "port", ID: "p"}}); got != "update port p" {
		t.Errorf("Summary of the entry: got %q, want update port p", got)
	}
}

func TestWaitingFor_EveryUnfinishedEntryWaitsForSomething(t *testing.T) {
	t.Parallel()
	recorded, taken := time.Unix(1, 0), time.Unix(2, 0)
	blocked := []Blocker{{Seq: 3, Since: recorded}}
	for _, tt := range []struct {
		e    Entry
		b    []Blocker
		want []Waiting
	}{
		{Entry{State: Completed}, nil, nil},
		{Entry{State: Pending, CreatedAt: recorded}, nil, []Waiting{{"controller", recorded}}},
		{Entry{State: Processing, CreatedAt: recorded, TakenAt: &taken}, nil, []Waiting{{"controller", taken}}},
		{Entry{State: Failed, CreatedAt: recorded, TakenAt: &taken}, nil, []Waiting{{"an administrator", taken}}},
		{Entry{State: Pending, CreatedAt: recorded}, blocked, []Waiting{{"journal/3", recorded}}},
	} {
		t.Run(string(tt.e.State), func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tt.want, WaitingFor(tt.e, tt.b, nil)); d != "" {
				t.Errorf("WaitingFor: parties differ (-want +got):\n%s", d)
			}
		})
	}
}

func TestSentence_WhilePausedSaysWhoPausedSinceWhenAndWhy(t *testing.T) {
	t.Parallel()
	p := &Pause{At: time.Unix(100, 0), Actor: "ann", Reason: "upgrade"}
	const paused = "the journal is paused by ann since 1970-01-01T00:01:40Z: upgrade"
	blocked := []Blocker{
		{
			Seq:       3,
			Object:    Ref{Type: "network", ID: "n"},
			Operation: Create,
			State:     Pending,
			Since:     time.Unix(1, 0),
		},
	}
	for _, tt := range []struct {
		name  string
		e     Entry
		b     []Blocker
		want  string
		waits []Waiting
	}{
		{"pending", Entry{State: Pending}, nil, paused, []Waiting{{"an administrator", p.At}}},
		{"pending after an error", Entry{State: Pending, LastError: "x", Attempt: 2}, nil, paused, []Waiting{{"an administrator", p.At}}},
		{"blocked", Entry{State: Pending}, blocked, "waits for entry 3 (create network n), which is pending; " + paused, []Waiting{{"journal/3", time.Unix(1, 0)}}},
		{"processing", Entry{State: Processing, Attempt: 1}, nil, "is being sent, attempt 1; " + paused, []Waiting{{"an administrator", p.At}}},
		{"failed", Entry{State: Failed, Failures: 1, LastError: "x"}, nil, "the controller refused it once, retry or skip it: x", []Waiting{{"an administrator", time.Time{}}}},
		{"completed", Entry{State: Completed}, nil, "the controller has the change", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Sentence(tt.e, tt.b, p); got != tt.want {
				t.Errorf("Sentence while the journal is paused: got %q, want %q", got, tt.want)
			}
			if d := cmp.Diff(tt.waits, WaitingFor(tt.e, tt.b, p)); d != "" {
				t.Errorf("WaitingFor while the journal is paused: parties differ (-want +got):\n%s", d)
			}
		})
	}
}
