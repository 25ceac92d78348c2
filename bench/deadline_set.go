package main

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// single is the special value of the parameter `n` for deadlines that are spread over the window.
const single = 1

// deadlineSet holds deadlines, and for each deadline how late its event came.
type deadlineSet struct {
	deadlines []time.Time
	mu        sync.Mutex
	lateness  []time.Duration
}

// deadlineSpacing is the time between two deadlines that are spread over the window.
const deadlineSpacing = 500 * time.Millisecond

// newDeadlineSet returns n deadlines at the same instant, or, if n is `single`, deadlines that are spread over the window from
// that instant on.
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

// record notes the time of the i-th event. An event before its deadline is an error.
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

// latenessSample returns the lateness of all events as a sample.
func latenessSample(sets ...*deadlineSet) sample {
	s := sample{CPU: cpuTimes{}}
	for _, d := range sets {
		s.Times = append(s.Times, d.lateness...)
		if len(d.lateness) > 0 {
			s.Seconds += percentile(d.lateness, 100).Seconds()
		}
	}
	s.Count = len(s.Times)
	return s
}

// trialCount is the number of objects that are created first. Their creation time gives an estimate for all objects.
const trialCount = 32

// preparationTime estimates how long the creation of n objects takes, if the creation of trial objects took this long.
func preparationTime(n, trial int, took time.Duration, margin float64) time.Duration {
	return time.Duration(margin*2*float64(time.Second)) + time.Duration(margin*float64(took)*float64(n)/float64(trial)).Round(time.Second)
}

// retryWithMargin repeats a round with a larger margin until all its objects are created before their deadline.
func retryWithMargin(round func(margin float64) (inTime bool, err error)) error {
	for margin := 1.5; margin < 20; margin *= 2 {
		if inTime, err := round(margin); inTime || err != nil {
			return err
		}
	}
	return errors.New("the machine is too slow: objects are created after their deadline")
}
