package odl

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// failuresToOpen is how many consecutive failures open the breaker.
	failuresToOpen = 5
	// probeInterval is how often an open breaker lets one request through, to find out whether the controller is back.
	probeInterval = time.Second
	// returnSpacing is the time between the retries of two rejected callers, so that the load does not depend on their number.
	returnSpacing = 50 * time.Millisecond
	// maxWait is the longest wait that a rejected caller is given.
	maxWait = time.Minute
	// sharedTimeout limits a call of the SharedBreaker.
	sharedTimeout = 2 * time.Second
)

// SharedBreaker is the breaker state that all processes share for one controller. Without it a process knows only its own
// failures.
type SharedBreaker interface {
	// Opened stores that the breaker is open and that no process may probe the controller for this long.
	Opened(ctx context.Context, probeIn time.Duration) error
	// Probe returns 0 if this process may send a request. If the breaker is open, Probe then reserves the probe for this
	// process for one interval. Else it returns how long to wait.
	Probe(ctx context.Context, every time.Duration) (wait time.Duration, err error)
	// Closed stores that the breaker is closed.
	Closed(ctx context.Context) error
}

// breaker is a circuit breaker: it limits the requests of many callers to a controller that fails. It opens after
// failuresToOpen consecutive failures, lets one request of all processes through per probeInterval, and closes after the first
// success.
type breaker struct {
	now    func() time.Time
	shared SharedBreaker // nil: this process only

	mu          sync.Mutex
	failures    int // consecutive
	lastFailure string
	nextProbe   time.Time // when open: the time of the next probe
	lastReturn  time.Time // when open: the retry time that was given to a rejected caller last
}

func newBreaker(now func() time.Time, others SharedBreaker) *breaker {
	return &breaker{now: now, shared: others}
}

// admit returns 0 if a request may be sent, else the time to wait and the last failure.
func (b *breaker) admit(ctx context.Context) (wait time.Duration, last string) {
	b.mu.Lock()
	if wait, last = b.waitLocked(); wait > 0 || b.failures < failuresToOpen {
		b.mu.Unlock()
		return wait, last
	}
	b.nextProbe = b.now().Add(probeInterval)
	b.mu.Unlock()
	if b.deferToOthers(ctx) {
		return b.wait()
	}
	return 0, ""
}

// deferToOthers asks the shared breaker whether this process must wait. If it must, the local breaker opens and deferToOthers
// returns true.
func (b *breaker) deferToOthers(ctx context.Context) bool {
	var wait time.Duration
	b.callShared(ctx, func(ctx context.Context) (err error) {
		wait, err = b.shared.Probe(ctx, probeInterval)
		return err
	})
	if wait <= 0 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = max(b.failures, failuresToOpen)
	b.nextProbe = b.now().Add(wait)
	return true
}

// callShared calls the shared breaker, if there is one. An error is logged; then only the local breaker counts.
func (b *breaker) callShared(ctx context.Context, f func(context.Context) error) {
	if b.shared == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedTimeout)
	defer cancel()
	if err := f(ctx); err != nil {
		slog.WarnContext(ctx, "shared breaker state is unavailable; using this process's own", "error", err)
	}
}

// wait returns the same as admit but reserves no probe. It is for a caller that does not send a request now.
func (b *breaker) wait() (wait time.Duration, last string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waitLocked()
}

// waitLocked returns how long a caller must wait. Each rejected caller gets a later time than the one before.
func (b *breaker) waitLocked() (wait time.Duration, last string) {
	now := b.now()
	due := b.nextProbe.Sub(now)
	if b.failures < failuresToOpen || due <= 0 {
		return 0, ""
	}
	if b.lastReturn.Before(b.nextProbe) {
		b.lastReturn = b.nextProbe
	} else {
		b.lastReturn = b.lastReturn.Add(returnSpacing)
	}
	if wait = b.lastReturn.Sub(now); wait > maxWait {
		b.lastReturn = now.Add(maxWait)
		wait = due + rand.N(maxWait-due)
	}
	return wait, b.lastFailure
}

// isOpen reports whether requests are rejected.
func (b *breaker) isOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures >= failuresToOpen
}

// report counts the outcome of a request: the failure of the controller, empty for a success. It tells the shared breaker when
// the local one opens or closes. After the first failure it asks the shared breaker, because other processes may have opened
// it.
func (b *breaker) report(ctx context.Context, sick string) {
	before, now := b.countResult(sick)
	switch {
	case before >= failuresToOpen && now == 0:
		b.callShared(ctx, func(ctx context.Context) error { return b.shared.Closed(ctx) })
	case before < failuresToOpen && now == failuresToOpen:
		b.callShared(ctx, func(ctx context.Context) error { return b.shared.Opened(ctx, probeInterval) })
	case before == 0 && now == 1:
		b.deferToOthers(ctx)
	}
}

// countResult counts consecutive failures and returns their number before and after this result.
func (b *breaker) countResult(sick string) (before, now int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before = b.failures
	if sick == "" {
		b.failures, b.lastFailure = 0, ""
		return before, 0
	}
	b.failures++
	b.lastFailure = sick
	if b.failures == failuresToOpen {
		b.nextProbe = b.now().Add(probeInterval)
	}
	return before, b.failures
}
