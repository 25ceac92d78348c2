package rpc

import (
	"testing"
	"time"
)

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
