package rpc

import (
	"testing"
	"time"
)

// A pause also lasts until the delays that have caused it are forgotten.
func TestHostPublisher_PausesOfASlowVirtualHostGrow(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := &hostPublisher{reconnectedAt: now}
	if p.addDelay(t.Context(), now, delayBurst); p.misses() {
		t.Fatalf("a virtual host that has delayed others for %s: got a pause, want none", delayBurst)
	}
	for _, c := range []struct{ delay, pause time.Duration }{
		{time.Millisecond, virtualHostPoll},
		{time.Millisecond, 2 * virtualHostPoll},
		{time.Millisecond, 4 * virtualHostPoll},
		{hostPublishTimeout, delayShare * hostPublishTimeout},
		{time.Millisecond, maxHostPause},
	} {
		p.delay = delayBucket{delayBurst, now} // full again
		p.addDelay(t.Context(), now, c.delay)
		if !p.misses() || p.pause != c.pause {
			t.Errorf("a virtual host that is slow again for %s: got the pause %s, in force: %t; want %s",
				c.delay, p.pause, p.misses(), c.pause)
		}
		now = now.Add(p.pause) // the pause is over
		p.missingSince, p.reconnectedAt = time.Time{}, now
	}
	if p.addDelay(t.Context(), now, 0); p.misses() {
		t.Error("a virtual host that is quick after a pause: got a pause, want none")
	}
}

// If the connections to a virtual host fail soon after they begin, berth uses the virtual host again after a
// longer pause each time.
func TestNextPause_GrowsUntilAConnectionWorksForLong(t *testing.T) {
	t.Parallel()
	var pause, total time.Duration
	for range 12 {
		pause = nextPause(pause, time.Second)
		total += pause
	}
	if pause != maxHostPause || total < time.Hour/2 {
		t.Errorf(
			"12 connections that work for a second each: the last pause is %s and all pauses together are %s, want %s and at least 30 minutes",
			pause, total, maxHostPause,
		)
	}
	if pause = nextPause(pause, maxHostPause+time.Second); pause != 0 {
		t.Errorf("a connection that has worked for more than %s: got the pause %s, want none",
			maxHostPause, pause)
	}
}
