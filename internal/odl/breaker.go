package odl

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// failuresToOpen is how many consecutive failures open the breaker.
	failuresToOpen = 5
	// defaultProbeInterval is the default of Config.ProbeInterval.
	defaultProbeInterval = time.Second
	// returnSpacing is the time between the retries of two rejected callers. returnSpacing keeps the rate of
	// retries independent of the number of callers.
	returnSpacing = 50 * time.Millisecond
	// defaultSharedTimeout is the default of Config.SharedTimeout.
	defaultSharedTimeout = 2 * time.Second
)

// SharedBreaker stores the state of the circuit breaker that all processes share for one controller. Without
// it, a process knows only about failures of its own requests.
type SharedBreaker interface {
	// Opened stores that the breaker is open, and that no process may send a probe to the controller before
	// the duration has passed.
	Opened(ctx context.Context, probeIn time.Duration) error
	// Probe returns 0 if this process may send a request. If the breaker is open, this request is a probe,
	// and no other process may send a probe before the interval `every` has passed. If the process may not
	// send a request, Probe returns how long the process must wait.
	Probe(ctx context.Context, every time.Duration) (wait time.Duration, err error)
	// Closed stores that the breaker is closed.
	Closed(ctx context.Context) error
}

// breaker is a circuit breaker: it limits the requests of many callers to a controller that fails. The
// breaker opens after failuresToOpen consecutive failures. While the breaker is open, it admits one request
// (a probe) per probeInterval, counted over all processes, to find out whether the controller is available
// again. The breaker closes after the first successful request.
type breaker struct {
	now           func() time.Time
	shared        SharedBreaker // nil: this process only
	probeInterval time.Duration
	sharedTimeout time.Duration // limits a call to the SharedBreaker

	mu          sync.Mutex
	failures    int // consecutive
	lastFailure string
	nextProbe   time.Time // when open: the time of the next probe
	lastReturn  time.Time // when open: the retry time that was given to a rejected caller last
}

func newBreaker(c Config, now func() time.Time, others SharedBreaker) *breaker {
	return &breaker{
		now:           now,
		shared:        others,
		probeInterval: cmp.Or(c.ProbeInterval, defaultProbeInterval),
		sharedTimeout: cmp.Or(c.SharedTimeout, defaultSharedTimeout),
	}
}

// admit returns 0 if a request may be sent. Otherwise admit returns how long to wait, and the last failure.
func (b *breaker) admit(ctx context.Context) (wait time.Duration, last string) {
	b.mu.Lock()
	if wait, last = b.waitLocked(); wait > 0 || b.failures < failuresToOpen {
		b.mu.Unlock()
		return wait, last
	}
	b.nextProbe = b.now().Add(b.probeInterval)
	b.mu.Unlock()
	if b.deferToOthers(ctx) {
		return b.wait()
	}
	return 0, ""
}

// deferToOthers asks the shared breaker whether this process must wait because of other processes. If this
// process must wait, deferToOthers opens the local breaker and returns true.
func (b *breaker) deferToOthers(ctx context.Context) bool {
	var wait time.Duration
	b.callShared(ctx, func(ctx context.Context) (err error) {
		wait, err = b.shared.Probe(ctx, b.probeInterval)
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

// callShared calls f, which uses the shared breaker, if there is a shared breaker. If f returns an error,
// callShared logs it, and only the local breaker limits requests.
func (b *breaker) callShared(ctx context.Context, f func(context.Context) error) {
	if b.shared == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.sharedTimeout)
	defer cancel()
	if err := f(ctx); err != nil {
		slog.WarnContext(
			ctx, "shared breaker state is unavailable; using the breaker state of this process alone",
			"error", err,
		)
	}
}

// wait returns the same as admit, but does not reserve a probe, because its callers do not send a request
// now.
func (b *breaker) wait() (wait time.Duration, last string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waitLocked()
}

// waitLocked returns how long a caller must wait, and the last failure. b.mu must be locked. Each rejected
// caller gets a later retry time than the caller before; if that time were more than maxWait away, the caller
// gets a random time within maxWait.
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
	maxWait := b.maxWait()
	if wait = b.lastReturn.Sub(now); wait > maxWait {
		b.lastReturn = now.Add(maxWait)
		wait = due + rand.N(maxWait-due)
	}
	return wait, b.lastFailure
}

// maxWait returns the longest time for which a rejected caller is told to wait.
func (b *breaker) maxWait() time.Duration { return 60 * b.probeInterval }

// isOpen reports whether the breaker is open and rejects requests.
func (b *breaker) isOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures >= failuresToOpen
}

// report counts the outcome of a request. `sick` describes the controller's failure; it is empty
// for a success. When the local breaker opens or closes, report tells the shared breaker. After
// the first failure, report asks the shared breaker whether other processes have opened it.
func (b *breaker) report(ctx context.Context, sick string) {
	before, now := b.countResult(sick)
	switch {
	case before >= failuresToOpen && now == 0:
		b.callShared(ctx, func(ctx context.Context) error { return b.shared.Closed(ctx) })
	case before < failuresToOpen && now == failuresToOpen:
		b.callShared(ctx, func(ctx context.Context) error { return b.shared.Opened(ctx, b.probeInterval) })
	case before == 0 && now == 1:
		b.deferToOthers(ctx)
	}
}

// countResult counts consecutive failures. countResult returns the number of failures before and after this
// result.
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
		b.nextProbe = b.now().Add(b.probeInterval)
	}
	return before, b.failures
}
