package oslomsg

import (
	"testing"
	"time"
)

// A caller can send many calls whose reply queue never exists.
func TestResendPause_GrowsWithTheAgeOfTheReply(t *testing.T) {
	t.Parallel()
	var age time.Duration
	repetitions := 0
	for ; age <= replyTimeout; repetitions++ {
		age += resendPause(age)
	}
	if first, last := resendPause(0), resendPause(replyTimeout); first != replyResendPause || last != maxReplyResendPause {
		t.Errorf("pauses before the repetitions of a reply: got %s to %s, want %s to %s",
			first, last, replyResendPause, maxReplyResendPause)
	}
	if repetitions > 15 {
		t.Errorf("repetitions of a reply whose queue does not exist: got %d, want at most 15", repetitions)
	}
}
