package relay

import (
	"testing"
	"time"
)

func TestLimiter_OverloadHalvesTheCallsOnceForAllCallsThatRanTogether(t *testing.T) {
	t.Parallel()
	l, start := newLimiter(Options{}), time.Now()
	for i := range maxConcurrency {
		l.record(temporalOverloaded, start, start.Add(time.Duration(i+1)*time.Second))
	}
	if got := l.concurrency(); got != maxConcurrency/2 {
		t.Errorf("calls after 16 calls timed out together: got %v, want %d", got, maxConcurrency/2)
	}
	if calls, pause := l.free(start.Add(time.Second)); calls != 0 || pause <= 0 {
		t.Errorf("free calls after an overload: got %d, pause %s; want a pause", calls, pause)
	}
	for i := range 10 {
		at := start.Add(time.Duration(i+1) * time.Minute)
		l.record(temporalOverloaded, at, at.Add(time.Second))
	}
	if got := l.concurrency(); got != 1 {
		t.Errorf("calls after many overloads: got %v, want 1", got)
	}
}

func TestLimiter_EachAnswerAddsCallsUpToTheMaximum(t *testing.T) {
	t.Parallel()
	l, now := newLimiter(Options{}), time.Now()
	l.limit = 1
	l.record(noteRefused, now, now.Add(time.Millisecond)) // Temporal answers, so it is not overloaded
	if got := l.concurrency(); got != 2 {
		t.Errorf("calls after the first answer: got %v, want 2", got)
	}
	for range 1000 {
		l.record(noFault, now, now.Add(time.Millisecond))
	}
	if got := l.concurrency(); got != maxConcurrency {
		t.Errorf("calls after many answers: got %v, want %d", got, maxConcurrency)
	}
}

func TestLimiter_DeadlineGrowsWithTheLatencyAndEndsBeforeTheClaim(t *testing.T) {
	t.Parallel()
	l, now := newLimiter(Options{}), time.Now()
	if got := l.deadline(); got != l.minDeadline {
		t.Errorf("deadline at first: got %s, want %s", got, l.minDeadline)
	}
	l.record(temporalOverloaded, now, now.Add(l.minDeadline))
	if got := l.deadline(); got != l.maxDeadline {
		t.Errorf("deadline after a time-out: got %s, want %s", got, l.maxDeadline)
	}
	for range 100 {
		l.record(noFault, now, now.Add(10*time.Millisecond))
	}
	if got := l.deadline(); got != l.minDeadline {
		t.Errorf("deadline after fast answers: got %s, want %s", got, l.minDeadline)
	}
	if claimMargin < 2*time.Second {
		t.Errorf(
			"claimMargin, the time that a claim remains valid after the deadline of the call: got %s, want at least 2s, so that the relay can write the result",
			claimMargin,
		)
	}
}

func TestShares_EveryPriorityGetsAShare(t *testing.T) {
	t.Parallel()
	normal, bulk := 0, 0
	for i := range 80 {
		s := sharesOf(i)
		normal, bulk = normal+s.Normal, bulk+s.Bulk
	}
	if normal != 20 || bulk != 10 {
		t.Errorf("shares of 80 claims: got %d normal and %d bulk notes, want 20 and 10", normal, bulk)
	}
}
