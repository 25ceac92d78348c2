package leasestore

import (
	"time"

	"berth/internal/lease"
)

// reportLateness reports how late the start or the end of a lease was finished, after the commit.
func (s *Store) reportLateness(done transition) {
	if s.config.OnFinished == nil {
		return
	}
	switch {
	case done.step == lease.StepStart && done.after.Status == lease.Active:
		s.config.OnFinished(done.step, max(0, time.Since(done.after.StartAt)))
	case done.step == lease.StepEnd && done.after.Status == lease.Terminated:
		s.config.OnFinished(done.step, max(0, time.Since(done.after.EndAt)))
	}
}
