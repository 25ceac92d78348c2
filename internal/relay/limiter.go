package relay

import (
	"cmp"
	"math"
	"sync"
	"time"

	"berth/internal/store/outbox"
)

const (
	maxConcurrency = 16
	// defaultMinDeadline and defaultMaxDeadline are the defaults of Options.MinDeadline and
	// Options.MaxDeadline. Temporal's SDK gives up a call after ten seconds at the latest.
	defaultMinDeadline = 5 * time.Second
	defaultMaxDeadline = 10 * time.Second
	// claimMargin is how long the claim of a note lasts beyond the deadline of the call; in this time the
	// relay writes the result.
	claimMargin = outbox.ClaimDuration - defaultMinDeadline
	// maxBackoff is the longest pause before the next attempt to deliver a
	// note, and the longest pause of the relay while Temporal is overloaded.
	maxBackoff = 5 * time.Second
)

// limiter decides how many calls the relay makes to Temporal at the same time, and how long it waits for an
// answer. While Temporal answers, each answer increases the number of calls a little; if Temporal is
// overloaded, the number of calls is halved, and the relay pauses.
type limiter struct {
	minDeadline, maxDeadline time.Duration // see Options

	mu       sync.Mutex
	limit    float64 // number of calls, from 1 to maxConcurrency
	inFlight int     // number of running calls
	// moving average of the time until Temporal's answer; grows at once after a time-out
	latency  time.Duration
	failures int       // number of overloads since the last answer
	cutAt    time.Time // when limit was halved last
	resumeAt time.Time // end of the pause
}

func newLimiter(o Options) *limiter {
	return &limiter{
		limit:       maxConcurrency,
		minDeadline: cmp.Or(o.MinDeadline, defaultMinDeadline),
		maxDeadline: cmp.Or(o.MaxDeadline, defaultMaxDeadline),
	}
}

// free returns how many calls may start now and, if the relay pauses, how long the pause still lasts.
func (l *limiter) free(now time.Time) (calls int, pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if pause = l.resumeAt.Sub(now); pause > 0 {
		return 0, pause
	}
	return max(int(l.limit)-l.inFlight, 0), 0
}

// deadline returns the longest time to wait for an answer.
func (l *limiter) deadline() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(max(4*l.latency, l.minDeadline), l.maxDeadline)
}

// overloaded reports whether Temporal was overloaded at the last answer.
func (l *limiter) overloaded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures > 0
}

// concurrency returns the number of calls that may run at the same time.
func (l *limiter) concurrency() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return math.Floor(l.limit)
}

// add changes the number of running calls.
func (l *limiter) add(calls int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight += calls
}

// record adapts the number of calls and the deadline to the result of a call.
func (l *limiter) record(f fault, started, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	took := now.Sub(started)
	if f != temporalOverloaded {
		l.latency += (took - l.latency) / 8
		l.limit = min(l.limit+1/l.limit, maxConcurrency)
		l.failures, l.resumeAt = 0, time.Time{}
		return
	}
	l.latency = max(l.latency, took)
	if started.Before(l.cutAt) {
		return // the call began before the limit was halved, so its failure does not halve the limit again
	}
	l.limit, l.cutAt = max(l.limit/2, 1), now
	l.failures++
	l.resumeAt = now.Add(backoff(l.failures))
}

// backoff returns the pause after the given number of failures.
func backoff(failures int) time.Duration {
	return min(100*time.Millisecond<<min(failures, 10), maxBackoff)
}
