package odl

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// threshold is how many failures in a row open the breaker.
	threshold = 5
	// probeEvery is how often a request is let through an open breaker, to see whether the controller is back.
	probeEvery = time.Second
	// longestSpread bounds the moment over which those who were turned away come back.
	longestSpread = 15 * time.Second
)

// breaker keeps thousands of waiting senders from storming a controller that is in trouble. It is open after a
// few failures in a row, lets a probe through once a second, and closes with the first success.
type breaker struct {
	now func() time.Time

	mu       sync.Mutex
	failures int // in a row
	last     string
	probe    time.Time // when open: the next probe is due
}

func newBreaker(now func() time.Time) *breaker { return &breaker{now: now} }

// admit answers with zero if a request may go out, else with the time after which to come back and with the
// last failure.
func (b *breaker) admit() (wait time.Duration, last string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wait, last = b.rest(); wait == 0 && b.failures >= threshold {
		b.probe = b.now().Add(probeEvery)
	}
	return wait, last
}

// rests is admit for somebody who will not send.
func (b *breaker) rests() (wait time.Duration, last string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rest()
}

// rest is how long the one who asks is turned away. The longer the trouble lasts, the wider those who were are spread.
func (b *breaker) rest() (wait time.Duration, last string) {
	due := b.probe.Sub(b.now())
	if b.failures < threshold || due <= 0 {
		return 0, ""
	}
	spread := min(probeEvery<<min(b.failures-threshold, 10), longestSpread)
	return due + rand.N(spread), b.last
}

// open tells whether requests are turned away.
func (b *breaker) open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures >= threshold
}

// report takes in how a request ended: what was wrong with the controller, empty if nothing was.
func (b *breaker) report(sick string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if sick == "" {
		b.failures, b.last = 0, ""
		return
	}
	b.failures++
	b.last = sick
	if b.failures == threshold {
		b.probe = b.now().Add(probeEvery)
	}
}
