package rpc

import (
	"testing"
	"time"
)

// After each pause, the agents of a slow virtual host can delay one notification to the other hosts.
func TestHostPublisher_PausesOfASlowVirtualHostGrow(t *testing.T) {
	t.Parallel()
	p := &hostPublisher{reconnectedAt: time.Now()}
	for range maxSlowness/slowNotification - 1 {
		p.addSlow(t.Context(), time.Second)
		if p.misses() {
			t.Fatal("a virtual host that was slow less often than the limit: got a pause, want none")
		}
	}
	for _, want := range []time.Duration{virtualHostPoll, 2 * virtualHostPoll, 4 * virtualHostPoll} {
		p.addSlow(t.Context(), time.Second)
		if !p.misses() || p.pause != want {
			t.Errorf("a virtual host that is slow again: got the pause %s, in force: %t; want %s", p.pause, p.misses(), want)
		}
		p.missingSince, p.reconnectedAt = time.Time{}, time.Now() // the pause is over
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
