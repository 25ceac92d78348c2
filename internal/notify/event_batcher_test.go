package notify_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/notify"
)

// blockingSender replaces the requests of an EventBatcher to Nova. Each call to the method send waits until
// the test lets the call continue.
type blockingSender struct {
	mu       sync.Mutex
	requests [][]string
	begun    chan struct{}
	go_      chan error
}

func (s *blockingSender) send(_ context.Context, events []notify.Event) ([]int, error) {
	var tags []string
	codes := make([]int, len(events))
	for i, e := range events {
		tags = append(tags, e.Tag)
		codes[i] = len(e.Tag)
	}
	slices.Sort(tags)
	s.mu.Lock()
	s.requests = append(s.requests, tags)
	s.mu.Unlock()
	s.begun <- struct{}{}
	return codes, <-s.go_
}

// outcome is the result of a call to Send.
type outcome struct {
	codes []int
	err   error
}

func (s *blockingSender) call(ctx context.Context, b *notify.EventBatcher, tags ...string) <-chan outcome {
	return s.callOf(ctx, b, "p", tags...)
}

// callOf sends events of a project.
func (s *blockingSender) callOf(
	ctx context.Context,
	b *notify.EventBatcher,
	project string,
	tags ...string,
) <-chan outcome {
	got := make(chan outcome, 1)
	var events []notify.Event
	for _, tag := range tags {
		events = append(events, notify.Event{Tag: tag, Project: project})
	}
	go func() {
		codes, err := b.Send(ctx, events)
		got <- outcome{codes, err}
	}()
	return got
}

func newBlockingSender() (*blockingSender, *notify.EventBatcher) {
	s := &blockingSender{begun: make(chan struct{}, 100), go_: make(chan error)}
	return s, notify.NewEventBatcher(s.send)
}

// awaitWaiting waits until n calls wait for the end of the request in progress.
func awaitWaiting(b *notify.EventBatcher, n int) {
	for b.Waiting() < n {
	}
}

func TestEventBatcher_SendsFirstAtOnceAndOthersTogether(t *testing.T) {
	t.Parallel()
	s, b := newBlockingSender()
	first := s.call(t.Context(), b, "a")
	<-s.begun
	second, third := s.call(t.Context(), b, "bb"), s.call(t.Context(), b, "ccc", "d")
	awaitWaiting(b, 2)
	s.go_ <- nil
	<-s.begun
	s.go_ <- nil

	for i, want := range []outcome{{[]int{1}, nil}, {[]int{2}, nil}, {[]int{3, 1}, nil}} {
		got := <-[]<-chan outcome{first, second, third}[i]
		if d := cmp.Diff(want.codes, got.codes); d != "" || got.err != nil {
			t.Errorf("codes of caller %d (-want +got):\n%s\nerror %v, want none", i, d, got.err)
		}
	}
	if d := cmp.Diff([][]string{{"a"}, {"bb", "ccc", "d"}}, s.requests); d != "" {
		t.Error(d)
	}
}

func TestEventBatcher_RejectedRequestIsSplitByCaller(t *testing.T) {
	t.Parallel()
	s, b := newBlockingSender()
	first := s.call(t.Context(), b, "first")
	<-s.begun
	good, bad := s.call(t.Context(), b, "good"), s.call(t.Context(), b, "bad")
	awaitWaiting(b, 2)
	s.go_ <- errors.New("connection refused")
	<-s.begun
	s.go_ <- notify.ErrRejected
	for range 2 {
		<-s.begun
		s.mu.Lock()
		alone := s.requests[len(s.requests)-1]
		s.mu.Unlock()
		if slices.Equal(alone, []string{"bad"}) {
			s.go_ <- notify.ErrRejected
		} else {
			s.go_ <- nil
		}
	}

	if o := <-first; o.err == nil || errors.Is(o.err, notify.ErrRejected) {
		t.Errorf("send the event of the request that failed: got %+v, want a transient error", o)
	}
	if o := <-good; o.err != nil || len(o.codes) != 1 {
		t.Errorf("send a valid event beside a rejected one: got %+v, want one code", o)
	}
	if o := <-bad; !errors.Is(o.err, notify.ErrRejected) {
		t.Errorf("send a rejected event: got %+v, want ErrRejected", o)
	}
}

func TestEventBatcher_SkipsCallersWhoseContextEnded(t *testing.T) {
	t.Parallel()
	s, b := newBlockingSender()
	first := s.call(t.Context(), b, "first")
	<-s.begun
	ctx, cancel := context.WithCancel(t.Context())
	gone := s.call(ctx, b, "gone")
	awaitWaiting(b, 1)
	cancel()
	if o := <-gone; !errors.Is(o.err, context.Canceled) {
		t.Errorf("send events with a context that is cancelled: got %+v, want context.Canceled", o)
	}
	s.go_ <- nil
	<-first
	after := s.call(t.Context(), b, "after")
	<-s.begun
	s.go_ <- nil
	<-after
	if d := cmp.Diff([][]string{{"first"}, {"after"}}, s.requests); d != "" {
		t.Error(d)
	}
}

func TestEventBatcher_LimitsEventsPerRequest(t *testing.T) {
	t.Parallel()
	s, b := newBlockingSender()
	all := []<-chan outcome{s.call(t.Context(), b, "first")}
	<-s.begun
	const callers = 450
	for i := range callers {
		all = append(all, s.call(t.Context(), b, fmt.Sprint(i)))
	}
	awaitWaiting(b, callers)
	go func() {
		for range 4 {
			s.go_ <- nil
		}
	}()
	for _, c := range all {
		if o := <-c; o.err != nil {
			t.Fatal(o.err)
		}
	}
	var sizes []int
	for _, r := range s.requests {
		sizes = append(sizes, len(r))
	}
	if d := cmp.Diff([]int{1, 200, 200, 50}, sizes); d != "" {
		t.Error(d)
	}
}

func TestEventBatcher_ProjectsTakeTurns(t *testing.T) {
	t.Parallel()
	s, b := newBlockingSender()
	tags := make([]string, 200) // as many as one request has
	for i := range tags {
		tags[i] = fmt.Sprint(i)
	}
	all := []<-chan outcome{s.callOf(t.Context(), b, "busy", tags...)}
	<-s.begun
	const more = 4
	for range more {
		all = append(all, s.callOf(t.Context(), b, "busy", tags...))
	}
	awaitWaiting(b, more)
	all = append(all, s.callOf(t.Context(), b, "quiet", "plugged"))
	awaitWaiting(b, more+1)
	go func() {
		for range more + 2 {
			s.go_ <- nil
		}
	}()
	for _, c := range all {
		if o := <-c; o.err != nil {
			t.Fatal(o.err)
		}
	}
	if d := cmp.Diff([]string{"plugged"}, s.requests[1]); d != "" {
		t.Errorf("request after the one that ran when another project sent an event (-want +got):\n%s", d)
	}
}

func TestEventBatcher_TooLargeRequestIsSplit(t *testing.T) {
	t.Parallel()
	isHuge := func(e notify.Event) bool { return e.Tag == "huge" }
	b := notify.NewEventBatcher(func(_ context.Context, events []notify.Event) ([]int, error) {
		if len(events) > 3 || slices.ContainsFunc(events, isHuge) {
			return nil, notify.ErrTooLarge
		}
		var codes []int
		for _, e := range events {
			codes = append(codes, len(e.Tag))
		}
		return codes, nil
	})
	var events []notify.Event
	for _, tag := range []string{"a", "bb", "ccc", "huge", "eeeee", "ffffff", "ggggggg"} {
		events = append(events, notify.Event{Tag: tag})
	}

	codes, err := b.Send(t.Context(), events)

	if d := cmp.Diff([]int{1, 2, 3, 413, 5, 6, 7}, codes); d != "" || err != nil {
		t.Errorf("codes of events that are too large for one request (-want +got):\n%s\nerror %v, want none", d, err)
	}
}
