package journal

import (
	"fmt"
	"time"
)

// MaxReason is the maximum length of the reason that an administrator gives for a decision, in bytes.
const MaxReason = 1000

// Pause means that an administrator has stopped the journal: no entry is sent until an administrator resumes
// it.
type Pause struct {
	At     time.Time
	Actor  string
	Reason string
}

// Sentence describes the pause in one line.
func (p Pause) Sentence() string {
	return fmt.Sprintf("the journal is paused by %s since %s: %s",
		p.Actor, p.At.UTC().Format(time.RFC3339), p.Reason)
}
