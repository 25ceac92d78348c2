package activities

import "time"

// SetDrainTime sets the time that one attempt of an activity spends on the backlog of the journal. One batch is always sent.
func (a *Activities) SetDrainTime(d time.Duration) { a.drainTime = d }
