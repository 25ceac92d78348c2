package figure

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"berth/bench/harness"
)

// single is a value of the parameter `n` of newDeadlineSet: each object gets a deadline of its own. If `n` is
// greater than 1, `n` objects have the same deadline.
const single = 1

// deadlineSet holds the deadlines of events, and how late each event came.
type deadlineSet struct {
	deadlines []time.Time
	mu        sync.Mutex
	lateness  []time.Duration
}

// deadlineSpacing is the time between two successive deadlines if `n` is `single`, so that every object has a
// deadline of its own.
const deadlineSpacing = 500 * time.Millisecond

// newDeadlineSet returns n deadlines at the instant `at`. If n is `single`, newDeadlineSet instead returns
// deadlines that are spread over the window that begins at `at`.
func newDeadlineSet(n int, window time.Duration, at time.Time) *deadlineSet {
	d := &deadlineSet{}
	if n == single {
		for i := range max(2, int(window/deadlineSpacing)) {
			d.deadlines = append(d.deadlines, at.Add(time.Duration(i)*deadlineSpacing))
		}
		return d
	}
	for range n {
		d.deadlines = append(d.deadlines, at)
	}
	return d
}

// record stores how late the i-th event came. record returns an error if the event came before the i-th
// deadline.
func (d *deadlineSet) record(i int, at time.Time) error {
	late := at.Sub(d.deadlines[i])
	if late < 0 {
		return fmt.Errorf("the event came %s before its deadline", -late)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lateness = append(d.lateness, late)
	return nil
}

// latenessSample returns a sample of how late the events of all sets came.
func latenessSample(sets ...*deadlineSet) harness.Sample {
	s := harness.Sample{CPU: harness.CPUTimes{}}
	for _, d := range sets {
		s.Times = append(s.Times, d.lateness...)
		if len(d.lateness) > 0 {
			s.Seconds += harness.Percentile(d.lateness, 100).Seconds()
		}
	}
	s.Count = len(s.Times)
	return s
}

// trialCount is the number of objects that a measurement creates first, as a trial. From the duration of the
// trial, preparationTime estimates how long the creation of all objects takes.
const trialCount = 32

// preparationTime estimates how long the creation of n objects takes. The parameter `took` is the time that
// the creation of `trial` objects took; the parameter `margin` is a safety factor.
func preparationTime(n, trial int, took time.Duration, margin float64) time.Duration {
	estimate := time.Duration(margin * float64(took) * float64(n) / float64(trial))
	return time.Duration(margin*2*float64(time.Second)) + estimate.Round(time.Second)
}

// retryWithMargin runs a round. If the round does not create all objects before their deadline,
// retryWithMargin repeats the round with a larger margin.
func retryWithMargin(round func(margin float64) (inTime bool, err error)) error {
	for margin := 1.5; margin < 20; margin *= 2 {
		if inTime, err := round(margin); inTime || err != nil {
			return err
		}
	}
	return errors.New("the machine is too slow: objects are created after their deadline")
}
