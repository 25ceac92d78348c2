package odl

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// threshold is how many failures in a row open the breaker.
	threshold = 5
	// probeEvery is how often a request is let through an open breaker, to see whether the controller is back.
	probeEvery = time.Second
	// apart is the time between two of those who were turned away and come back: however many wait, asking costs no more.
	apart = 50 * time.Millisecond
	// longestRest is how long anybody is turned away at most.
	longestRest = time.Minute
	// asking bounds a question to the other processes.
	asking = 2 * time.Second
)

// Others is what the processes that speak to one controller know of it together. Without them a process knows what it
// has seen itself.
type SharedBreaker interface {
	// Opened tells them that the controller is in trouble, and that nobody shall probe it for so long.
	Opened(ctx context.Context, probeIn time.Duration) error
	// Probe is zero if a probe may go out, and then keeps the others from sending one for so long; else it is
	// how long to wait. While nobody finds the controller in trouble everything may go out.
	Probe(ctx context.Context, every time.Duration) (wait time.Duration, err error)
	// Closed tells them that the controller is back.
	Closed(ctx context.Context) error
}

// breaker keeps thousands of waiting senders from storming a controller that is in trouble. It is open after a
// few failures in a row, lets a probe through once a second, over all processes, and closes with the first success.
type breaker struct {
	now    func() time.Time
	others SharedBreaker // nil: there are none

	mu       sync.Mutex
	failures int // in a row
	last     string
	probe    time.Time // when open: the next probe is due
	slot     time.Time // when open: the last of those who were turned away comes back
}

func newBreaker(now func() time.Time, others SharedBreaker) *breaker {
	return &breaker{now: now, others: others}
}

// admit answers with zero if a request may go out, else with the time after which to come back and with the
// last failure.
func (b *breaker) admit(ctx context.Context) (wait time.Duration, last string) {
	b.mu.Lock()
	if wait, last = b.rest(); wait > 0 || b.failures < threshold {
		b.mu.Unlock()
		return wait, last
	}
	b.probe = b.now().Add(probeEvery)
	b.mu.Unlock()
	if b.yield(ctx) {
		return b.rests()
	}
	return 0, ""
}

// yield asks the others whether the controller is to be left alone now, and heeds it.
func (b *breaker) yield(ctx context.Context) bool {
	var wait time.Duration
	b.tell(ctx, func(ctx context.Context) (err error) {
		wait, err = b.others.Probe(ctx, probeEvery)
		return err
	})
	if wait <= 0 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = max(b.failures, threshold)
	b.probe = b.now().Add(wait)
	return true
}

// tell speaks to the others, if there are any. When they do not answer, the process is on its own.
func (b *breaker) tell(ctx context.Context, say func(context.Context) error) {
	if b.others == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), asking)
	defer cancel()
	if err := say(ctx); err != nil {
		slog.WarnContext(ctx, "what other processes know of the controller", "error", err)
	}
}

// rests is admit for somebody who will not send.
func (b *breaker) rests() (wait time.Duration, last string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rest()
}

// rest is how long the one who asks is turned away. They come back one after the other, so that their number does not
// matter.
func (b *breaker) rest() (wait time.Duration, last string) {
	now := b.now()
	due := b.probe.Sub(now)
	if b.failures < threshold || due <= 0 {
		return 0, ""
	}
	if b.slot.Before(b.probe) {
		b.slot = b.probe
	} else {
		b.slot = b.slot.Add(apart)
	}
	if wait = b.slot.Sub(now); wait > longestRest {
		b.slot = now.Add(longestRest)
		wait = due + rand.N(longestRest-due)
	}
	return wait, b.last
}

// open tells whether requests are turned away.
func (b *breaker) open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures >= threshold
}

// report takes in how a request ended: what was wrong with the controller, empty if nothing was. The others are told of
// every opening and closing, and asked after the first failure, since they may know more.
func (b *breaker) report(ctx context.Context, sick string) {
	before, now := b.count(sick)
	switch {
	case before >= threshold && now == 0:
		b.tell(ctx, func(ctx context.Context) error { return b.others.Closed(ctx) })
	case before < threshold && now == threshold:
		b.tell(ctx, func(ctx context.Context) error { return b.others.Opened(ctx, probeEvery) })
	case before == 0 && now == 1:
		b.yield(ctx)
	}
}

// count counts failures in a row, and returns how many there were before and are now.
func (b *breaker) count(sick string) (before, now int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before = b.failures
	if sick == "" {
		b.failures, b.last = 0, ""
		return before, 0
	}
	b.failures++
	b.last = sick
	if b.failures == threshold {
		b.probe = b.now().Add(probeEvery)
	}
	return before, b.failures
}
